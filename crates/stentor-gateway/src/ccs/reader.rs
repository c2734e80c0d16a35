//! An incremental reader of XML streams (RFC 6120). It yields whole stanzas and limits its memory.

use rxml::error::EndOrError;
use rxml::{AttrMap, Event, Options, Parse as _, Parser, QName, WithOptions as _};

use super::element::CcsElement;
use crate::limits::{
    CCS_LOGIN_ELEMENTS_MAX_COUNT, CCS_LOGIN_STANZA_MAX_BYTES, CCS_STANZA_ELEMENTS_MAX_COUNT,
    CCS_STANZA_MAX_BYTES, CCS_STANZA_MAX_DEPTH, CCS_TOKEN_MAX_BYTES,
};

/// An event in a peer's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum XmppEvent {
    /// The start of the stream; its element has no children yet.
    Opened(CcsElement),
    /// A whole stanza.
    Stanza(CcsElement),
    /// The end of the stream.
    Closed,
}

/// The reason for which a stream is unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmppReadError {
    /// It is not well-formed XML, or has a construct that XMPP forbids: a comment, a processing instruction, a document type.
    #[error("not-well-formed")]
    Malformed,
    /// A stanza exceeds the limits of size or depth.
    #[error("policy-violation")]
    TooLarge,
}

/// A reader of one stream.
pub(super) struct XmppReader {
    parser: Parser,
    /// The open elements, including the stream's own.
    open: Vec<CcsElement>,
    /// Bytes of the open stanza.
    stanza_bytes: usize,
    /// Elements of the open stanza: each takes far more memory than its four bytes.
    stanza_elements: usize,
    limits: XmppLimits,
    /// True while nothing but white space has come.
    is_fresh: bool,
}

/// The limits of one stanza.
#[derive(Debug, Clone, Copy)]
pub(super) struct XmppLimits {
    bytes: usize,
    elements: usize,
}

impl XmppLimits {
    /// Limits before the login, which has one element.
    pub(super) const BEFORE_LOGIN: Self =
        Self { bytes: CCS_LOGIN_STANZA_MAX_BYTES, elements: CCS_LOGIN_ELEMENTS_MAX_COUNT };
    /// Limits for an app server.
    pub(super) const AFTER_LOGIN: Self =
        Self { bytes: CCS_STANZA_MAX_BYTES, elements: CCS_STANZA_ELEMENTS_MAX_COUNT };
}

impl XmppReader {
    pub(super) fn new(limits: XmppLimits) -> Self {
        let max_token_length = CCS_TOKEN_MAX_BYTES.min(limits.bytes);
        let parser = Parser::with_options(Options { max_token_length, ..Options::default() });
        let (open, stanza_bytes, stanza_elements) = Default::default();
        Self { parser, open, stanza_bytes, stanza_elements, limits, is_fresh: true }
    }

    /// Parses received bytes and returns the events they complete.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<XmppEvent>, XmppReadError> {
        if self.is_fresh {
            // Between two streams a client may send white space, which must not precede a declaration.
            bytes = bytes.trim_ascii_start();
        }
        let mut events = Vec::new();
        while !bytes.is_empty() {
            self.is_fresh = false;
            match self.parser.parse(&mut bytes, false) {
                Ok(Some(event)) => events.extend(self.take(event)?),
                Ok(None) | Err(EndOrError::NeedMoreData) => break,
                Err(EndOrError::Error(_)) => return Err(XmppReadError::Malformed),
            }
        }
        Ok(events)
    }

    fn take(&mut self, event: Event) -> Result<Option<XmppEvent>, XmppReadError> {
        self.count(event.metrics().len())?;
        match event {
            Event::XmlDeclaration(..) => Ok(None),
            Event::StartElement(_, name, attributes) => self.begin(&name, &attributes),
            Event::Text(_, text) => {
                // Between stanzas there is only white space, which keeps the connection alive.
                if let Some(element) = self.open.get_mut(1..).and_then(<[_]>::last_mut) {
                    element.text.push_str(&text);
                }
                Ok(None)
            }
            Event::EndElement(_) => Ok(self.end()),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), XmppReadError> {
        // Between stanzas each token counts alone, because the stream itself has no limit.
        self.stanza_bytes = if self.open.len() > 1 { self.stanza_bytes + bytes } else { bytes };
        if self.stanza_bytes > self.limits.bytes { Err(XmppReadError::TooLarge) } else { Ok(()) }
    }

    fn begin(&mut self, name: &QName, attributes: &AttrMap) -> Result<Option<XmppEvent>, XmppReadError> {
        self.stanza_elements += 1;
        if self.open.len() > CCS_STANZA_MAX_DEPTH || self.stanza_elements > self.limits.elements {
            return Err(XmppReadError::TooLarge);
        }
        let own = attributes.iter().filter(|((namespace, _), _)| namespace.is_empty());
        let element = CcsElement {
            name: name.1.to_string(),
            namespace: name.0.to_string(),
            attributes: own.map(|((_, name), value)| (name.to_string(), value.clone())).collect(),
            ..CcsElement::default()
        };
        let opened = self.open.is_empty().then(|| XmppEvent::Opened(element.clone()));
        self.open.push(element);
        Ok(opened)
    }

    fn end(&mut self) -> Option<XmppEvent> {
        let element = self.open.pop()?;
        match self.open.len() {
            0 => Some(XmppEvent::Closed),
            1 => {
                (self.stanza_bytes, self.stanza_elements) = (0, 0);
                Some(XmppEvent::Stanza(element))
            }
            _ => {
                self.open.last_mut()?.children.push(element);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
        xmlns:stream='http://etherx.jabber.org/streams' to='x' version='1.0'>";
    const STANZA: &str =
        "<message id='7'><data:gcm xmlns:data='google:mobile:data'>{\"a\":\"&lt;\"}</data:gcm></message>";

    #[test]
    fn a_stanza_is_whole_wherever_it_was_cut() {
        let text = format!(" \n{STREAM}{STANZA} {STANZA}</stream:stream>");
        for size in 1..text.len() {
            let mut reader = XmppReader::new(XmppLimits::AFTER_LOGIN);
            let read =
                text.as_bytes().chunks(size).flat_map(|piece| reader.read(piece).expect("well-formed"));
            let events: Vec<_> = read.collect();
            let [
                XmppEvent::Opened(stream),
                XmppEvent::Stanza(one),
                XmppEvent::Stanza(two),
                XmppEvent::Closed,
            ] = &events[..]
            else {
                panic!("{size}: {events:?}");
            };
            assert_eq!((stream.attribute("to"), one), ("x", two));
            let gcm = one.child("gcm", "google:mobile:data").expect("a child");
            assert_eq!((gcm.text.as_str(), one.attribute("id")), ("{\"a\":\"<\"}", "7"));
        }
    }

    #[test]
    fn what_is_too_large_or_too_deep_is_refused() {
        let large = format!("{STREAM}<message>{}", "x".repeat(CCS_STANZA_MAX_BYTES + 1));
        assert_eq!(
            XmppReader::new(XmppLimits::AFTER_LOGIN).read(large.as_bytes()),
            Err(XmppReadError::TooLarge)
        );
        let deep = format!("{STREAM}{}", "<a>".repeat(CCS_STANZA_MAX_DEPTH + 2));
        assert_eq!(
            XmppReader::new(XmppLimits::AFTER_LOGIN).read(deep.as_bytes()),
            Err(XmppReadError::TooLarge)
        );
        let many = format!("{STREAM}{}", STANZA.repeat(2 * CCS_STANZA_MAX_BYTES / STANZA.len()));
        assert!(
            XmppReader::new(XmppLimits::AFTER_LOGIN).read(many.as_bytes()).is_ok(),
            "the limit is of each stanza"
        );
    }

    #[test]
    fn many_small_elements_are_too_much_and_few_are_allowed_before_a_login() {
        let read = |limits, inner: String| {
            XmppReader::new(limits)
                .read(format!("{STREAM}<auth>{inner}</auth>").as_bytes())
                .map(|read| read.len())
        };
        let before = XmppLimits::BEFORE_LOGIN;
        assert_eq!(read(before, "<a/>".repeat(CCS_LOGIN_ELEMENTS_MAX_COUNT - 2)), Ok(2));
        assert_eq!(read(before, "<a/>".repeat(CCS_LOGIN_ELEMENTS_MAX_COUNT)), Err(XmppReadError::TooLarge));
        assert_eq!(read(before, "x".repeat(CCS_LOGIN_STANZA_MAX_BYTES)), Err(XmppReadError::TooLarge));
        let attributes: String = (0..1_000).map(|number| format!("<a a{number}='x'>")).collect();
        assert_eq!(read(before, attributes), Err(XmppReadError::TooLarge));
        let (after, count) = (XmppLimits::AFTER_LOGIN, CCS_STANZA_ELEMENTS_MAX_COUNT);
        assert_eq!(read(after, "<a/>".repeat(count)), Err(XmppReadError::TooLarge));
        let many = format!("{STREAM}{}", STANZA.repeat(count));
        assert!(XmppReader::new(after).read(many.as_bytes()).is_ok(), "the limit is of each stanza");
    }

    #[test]
    fn what_xmpp_forbids_is_refused() {
        for text in ["<!DOCTYPE a><a>", "<a><!-- x -->", "<a><?x y?>", "<a></b>", "<a>&x;", "<a b='1' b='2'>"]
        {
            assert_eq!(
                XmppReader::new(XmppLimits::AFTER_LOGIN).read(text.as_bytes()),
                Err(XmppReadError::Malformed),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = XmppReader::new(XmppLimits::AFTER_LOGIN);
            let _ = reader.read(STREAM.as_bytes());
            let _ = reader.read(&bytes);
        }
    }
}
