//! The XML of a stream (RFC 6120, section 4), parsed incrementally: a root that stays open, and whole elements inside it.

#[cfg(test)]
mod tests;

use rxml::error::EndOrError;
use rxml::{AttrMap, Event, Options, Parse, Parser, WithOptions};

/// The maximum size of one element, markup included. CCS takes 4,096 bytes of data, which may be escaped.
const MAX_ELEMENT_BYTES: usize = 128 * 1024;
/// The maximum nesting depth of elements, the root not counted.
const MAX_DEPTH: usize = 16;
/// The maximum length of a name or of an attribute's value.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// An element with everything in it. Comments are refused; text between children is kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct XmppElement {
    pub(super) namespace: String,
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<XmppElement>,
    pub(super) text: String,
}

/// An event read from a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// The root has been opened.
    Opened(XmppElement),
    /// A whole element.
    Element(XmppElement),
    /// The root has been closed.
    Closed,
}

/// The reason why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFault {
    NotWellFormed,
    TooLarge,
}

/// Reads one stream, up to the end of its root.
pub(super) struct StreamReader {
    parser: Parser,
    started: bool,
    rooted: bool,
    /// The elements that are open below the root, outside in.
    open: Vec<XmppElement>,
    element_bytes: usize,
}

impl XmppElement {
    fn new(namespace: &str, name: &str, attributes: &AttrMap) -> Self {
        let plain = attributes.iter().filter(|((namespace, _), _)| namespace.is_none());
        let attributes = plain.map(|((_, name), value)| (name.to_string(), value.clone())).collect();
        Self { namespace: namespace.to_owned(), name: name.to_owned(), attributes, ..Self::default() }
    }

    /// Returns an attribute that is in no namespace.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the element has this namespace and name.
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// Returns the first child of this name.
    pub(super) fn child(&self, namespace: &str, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.is(namespace, name))
    }
}

impl StreamReader {
    /// Begins to read a stream.
    pub(super) fn new() -> Self {
        let options = Options { max_token_length: MAX_TOKEN_BYTES, ..Options::default() };
        let parser = Parser::with_options(options);
        Self { parser, started: false, rooted: false, open: Vec::new(), element_bytes: 0 }
    }

    /// Consumes bytes until an event is complete; `None` when all bytes are consumed and more are needed.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<StreamEvent>, StreamFault> {
        if !self.started {
            // Whitespace at a line's end between two streams belongs to neither of them.
            *bytes = bytes.trim_ascii_start();
            self.started = !bytes.is_empty();
            // The parser would wait for more of a text that can never be right.
            if bytes.first().is_some_and(|first| *first != b'<') {
                return Err(StreamFault::NotWellFormed);
            }
        }
        loop {
            let before = bytes.len();
            let parsed = self.parser.parse(bytes, false);
            self.element_bytes += before - bytes.len();
            if self.element_bytes > MAX_ELEMENT_BYTES {
                return Err(StreamFault::TooLarge);
            }
            match parsed {
                Ok(Some(event)) => {
                    if let Some(event) = self.take(event)? {
                        self.element_bytes = 0;
                        return Ok(Some(event));
                    }
                }
                Ok(None) | Err(EndOrError::NeedMoreData) => return Ok(None),
                Err(EndOrError::Error(_)) => return Err(StreamFault::NotWellFormed),
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<Option<StreamEvent>, StreamFault> {
        match event {
            Event::XmlDeclaration(..) => Ok(None),
            Event::StartElement(_, (namespace, name), attributes) => {
                let element = XmppElement::new(namespace.as_str(), name.as_str(), &attributes);
                if !self.rooted {
                    self.rooted = true;
                    return Ok(Some(StreamEvent::Opened(element)));
                }
                if self.open.len() == MAX_DEPTH {
                    return Err(StreamFault::TooLarge);
                }
                self.open.push(element);
                Ok(None)
            }
            Event::Text(_, text) => {
                match self.open.last_mut() {
                    Some(element) => element.text.push_str(&text),
                    // A blank between elements keeps a connection alive.
                    None => self.element_bytes = 0,
                }
                Ok(None)
            }
            Event::EndElement(_) => Ok(self.end()),
        }
    }

    fn end(&mut self) -> Option<StreamEvent> {
        let Some(element) = self.open.pop() else { return Some(StreamEvent::Closed) };
        match self.open.last_mut() {
            Some(parent) => {
                parent.children.push(element);
                None
            }
            None => Some(StreamEvent::Element(element)),
        }
    }
}

/// Escapes a text for XML, as content or as the value of an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&apos;"),
            // XML 1.0 (section 2.2) does not allow these characters, not even as a reference.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                written.push('\u{fffd}');
            }
            '\t' | '\n' | '\r' => written.push_str(&format!("&#{};", u32::from(letter))),
            other => written.push(other),
        }
    }
    written
}
