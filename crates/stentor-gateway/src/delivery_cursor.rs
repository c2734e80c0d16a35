//! The delivery cursor: the messages handed to a device, as a text that the device returns.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stentor_core::id::MessageId;
use stentor_core::varint;

use crate::limits::WINDOW_MAX_COUNT;

/// Prefix of a cursor of several messages.
const PREFIX: &str = "cur_";

/// Exactly the messages that a device was given.
///
/// The last message alone would not suffice: a later message may have a lower number if it was due later, was accepted by another server,
/// or if its campaign was paused or overtaken. As text the cursor is the id of a single message, or `cur_` and the encoded numbers of
/// several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryCursor(Vec<MessageId>);

/// The error for a text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor: give one as it came, or the id of a message")]
pub struct DeliveryCursorError;

impl DeliveryCursor {
    /// Creates a cursor of these messages, at most as many as a device may have unconfirmed; further ones are ignored. Returns `None` if
    /// there are none.
    #[must_use]
    pub fn new(messages: &[MessageId]) -> Option<Self> {
        let mut messages: Vec<_> = messages.iter().copied().take(WINDOW_MAX_COUNT).collect();
        messages.sort_unstable();
        messages.dedup();
        (!messages.is_empty()).then_some(Self(messages))
    }

    /// Returns the messages, in order of their numbers.
    #[must_use]
    pub fn messages(&self) -> &[MessageId] {
        &self.0
    }
}

impl fmt::Display for DeliveryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [message] = self.0[..] {
            return message.fmt(f);
        }
        let (mut bytes, mut last) = (Vec::new(), 0);
        for message in &self.0 {
            varint::put(&mut bytes, message.raw() - last);
            last = message.raw();
        }
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for DeliveryCursor {
    type Err = DeliveryCursorError;

    fn from_str(text: &str) -> Result<Self, DeliveryCursorError> {
        match text.strip_prefix(PREFIX) {
            Some(numbers) => several(numbers).map(Self).ok_or(DeliveryCursorError),
            None => text.parse().map(|message| Self(vec![message])).map_err(|_| DeliveryCursorError),
        }
    }
}

/// Decodes the numbers of messages; each is stored as the difference to the previous one.
fn several(numbers: &str) -> Option<Vec<MessageId>> {
    let bytes = URL_SAFE_NO_PAD.decode(numbers).ok()?;
    let (mut rest, mut last, mut messages) = (&bytes[..], 0_u64, Vec::new());
    while !rest.is_empty() {
        last = last.checked_add(varint::take(&mut rest)?)?;
        let message = MessageId::from_raw(last);
        // `from_raw` drops the top bit: such a number would name another message.
        if message.raw() != last || messages.len() == WINDOW_MAX_COUNT {
            return None;
        }
        messages.push(message);
    }
    (!messages.is_empty()).then_some(messages)
}

impl serde::Serialize for DeliveryCursor {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DeliveryCursor {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages(raw: &[u64]) -> Vec<MessageId> {
        raw.iter().map(|raw| MessageId::from_raw(*raw)).collect()
    }

    #[test]
    fn one_message_is_named_by_its_id_and_none_by_nothing() {
        let [message] = messages(&[77])[..] else { unreachable!("one") };
        let cursor = DeliveryCursor::new(&[message, message]).expect("a cursor");
        assert_eq!(cursor.to_string(), message.to_string());
        assert_eq!(message.to_string().parse(), Ok(cursor));
        assert_eq!(DeliveryCursor::new(&[]), None);
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let many = DeliveryCursor(messages(&(1..=101).collect::<Vec<_>>())).to_string();
        // A number above the range of messages, and one that ends early.
        let above = format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode([0xff; 9].iter().chain(&[1]).copied().collect::<Vec<u8>>())
        );
        let early = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([0x80]));
        for text in ["", "cur_", "cur_!", "msg_", "dev_0000000000001", &many, &above, &early] {
            assert_eq!(text.parse::<DeliveryCursor>(), Err(DeliveryCursorError), "{text}");
        }
    }

    #[test]
    fn a_full_window_is_named_in_a_text_that_fits_into_any_request() {
        let hour = 3_600_000_u64 << 20;
        let hourly: Vec<_> =
            (1..=WINDOW_MAX_COUNT as u64).map(|number| 1_700_000_000_000 + number * hour).collect();
        let text = DeliveryCursor::new(&messages(&hourly)).expect("a cursor").to_string();
        assert!(text.len() < 1_400, "{}", text.len());
    }

    proptest! {
        #[test]
        fn a_cursor_names_what_it_was_made_of(raw in prop::collection::btree_set(0..=i64::MAX as u64, 1..100)) {
            let given = messages(&raw.into_iter().collect::<Vec<_>>());
            let cursor = DeliveryCursor::new(&given).expect("a cursor");
            prop_assert_eq!(cursor.messages(), &given[..]);
            prop_assert_eq!(cursor.to_string().parse::<DeliveryCursor>(), Ok(cursor));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(cur_)?[A-Za-z0-9_-]{0,40}") {
            let _any = text.parse::<DeliveryCursor>();
        }
    }
}
