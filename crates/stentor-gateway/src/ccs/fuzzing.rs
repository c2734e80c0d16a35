//! Entry points for the fuzzer: parsing of untrusted bytes.

use super::connection::unreadable;
use super::element::CcsElement;
use super::payload::{CcsPayload, PAYLOAD_NAMESPACE, stanza};
use super::reader::{XmppEvent, XmppLimits, XmppReadError, XmppReader};
use super::{iq, login};

const HEAD: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";

/// The result of parsing an app server's stream.
#[derive(Debug, PartialEq, Eq)]
pub struct CcsReading {
    /// True if it can be parsed to its last byte.
    pub is_well_formed: bool,
    events: Vec<XmppEvent>,
}

/// Parses the bytes of a connection, cut into pieces.
#[must_use]
pub fn read(bytes: &[u8], piece_bytes: usize) -> CcsReading {
    let mut reader = XmppReader::new(XmppLimits::AFTER_LOGIN);
    let mut events = Vec::new();
    for piece in bytes.chunks(piece_bytes.max(1)) {
        match reader.read(piece) {
            Ok(some) => events.extend(some),
            Err(XmppReadError::Malformed | XmppReadError::TooLarge) => {
                return CcsReading { is_well_formed: false, events };
            }
        }
    }
    CcsReading { is_well_formed: true, events }
}

impl CcsReading {
    /// Returns the replies to its stanzas, as far as they require no app.
    #[must_use]
    pub fn answers(&self) -> Vec<String> {
        let stanza = |event: &XmppEvent| match event {
            XmppEvent::Stanza(stanza) => answer(stanza),
            XmppEvent::Opened(_) | XmppEvent::Closed => None,
        };
        self.events.iter().filter_map(stanza).collect()
    }
}

/// Returns true if a text is one well-formed stanza.
#[must_use]
pub fn is_stanza(text: &str) -> bool {
    let reading = read(format!("{HEAD}{text}").as_bytes(), usize::MAX);
    reading.is_well_formed && matches!(&reading.events[..], [XmppEvent::Opened(_), XmppEvent::Stanza(_)])
}

fn answer(element: &CcsElement) -> Option<String> {
    match element.name.as_str() {
        "auth" => {
            let _refused = login::plain(element);
            None
        }
        "iq" => iq::answer(element, "1@gcm.googleapis.com").1,
        _ => {
            let text = &element.child("gcm", PAYLOAD_NAMESPACE)?.text;
            Some(match CcsPayload::read(text) {
                Ok(CcsPayload::Send { message_id, to, .. }) => stanza(&super::payload::ack(&to, &message_id)),
                Ok(CcsPayload::Ack { .. } | CcsPayload::Nack { .. }) => return None,
                Err(problem) => unreadable(element, text, &problem),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Fragments of streams of app servers, valid and invalid.
    fn part() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            HEAD,
            "<iq type='get' id='&lt;'>",
            "</iq>",
            "<ping xmlns='urn:xmpp:ping'/>",
            "<message>",
            "</message>",
            "<gcm xmlns='google:mobile:data'>",
            "</gcm>",
            "{\"message_id\":\"m\",\"to\":\"<\"}",
            "{}",
            "&amp;",
            "]]>",
            "ü",
            " ",
            "<!--",
            "<a",
            "\u{0}",
        ])
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_in_any_pieces_and_answers_are_well_formed(
            parts in prop::collection::vec(part(), 0..12),
            piece_bytes in 1..40_usize,
        ) {
            let said = format!("{HEAD}{}", parts.concat()).into_bytes();
            let (whole, cut) = (read(&said, said.len()), read(&said, piece_bytes));
            prop_assert_eq!(whole.is_well_formed, cut.is_well_formed);
            if whole.is_well_formed {
                prop_assert_eq!(&whole, &cut);
            }
            for answer in cut.answers() {
                prop_assert!(is_stanza(&answer), "{}", answer);
            }
        }
    }

    #[test]
    fn what_is_answered_is_well_formed_whatever_was_asked() {
        let stanzas = format!(
            "{HEAD}<iq type='get' id='&lt;&apos;'><ping xmlns='urn:xmpp:ping'/></iq>\
             <message id='m'><gcm xmlns='{PAYLOAD_NAMESPACE}'>{{&lt;]]&gt;</gcm></message>\
             <message id='m'><gcm xmlns='{PAYLOAD_NAMESPACE}'>{{\"message_id\":\"\\u0000&amp;\"}}</gcm></message>"
        );
        let reading = read(stanzas.as_bytes(), 7);
        assert_eq!(reading, read(stanzas.as_bytes(), stanzas.len()));
        let answers = reading.answers();
        assert_eq!(answers.len(), 3, "{answers:?}");
        assert!(answers.iter().all(|answer| is_stanza(answer)), "{answers:?}");
    }
}
