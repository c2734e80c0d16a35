//! One registration of a program: for which sender, and how the program tells it from its others.

use std::fmt;

use stentor_core::limits::CHANNEL_NAME_MAX_BYTES;
use stentor_core::ports::store::Channel;

use crate::identity::DeviceIdentity;

/// Stands for what a registration does not have.
const NONE: &str = "-";

/// The keys for which a web client wants its messages encrypted, as base64url (RFC 8291).
#[derive(Clone, PartialEq, Eq)]
pub(super) struct McsWebKeys {
    pub(super) p256dh: String,
    pub(super) auth: String,
}

impl fmt::Debug for McsWebKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McsWebKeys").field("p256dh", &self.p256dh).finish_non_exhaustive()
    }
}

/// What a registration is known by. The name of a [`Channel`] says all of it, so that the store need not know what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McsChannelName {
    /// The program, `org.chromium.linux` for one.
    pub(super) category: String,
    /// Which of the program's own.
    pub(super) subtype: Option<String>,
    /// Whom messages come from: an app's id in decimal, or an application server's key.
    pub(super) sender: String,
    /// For whom messages are encrypted.
    pub(super) keys: Option<McsWebKeys>,
}

impl McsChannelName {
    /// Returns whether another is the same registration, whatever its keys.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.category, &self.subtype, &self.sender) == (&other.category, &other.subtype, &other.sender)
    }

    /// Writes it as a channel's name; `None` where a part cannot stand in one.
    pub(super) fn text(&self) -> Option<String> {
        let keys = self.keys.as_ref();
        let (p256dh, auth) = keys.map_or((NONE, NONE), |keys| (&keys.p256dh, &keys.auth));
        let parts = [&self.category, self.subtype.as_deref().unwrap_or(NONE), &self.sender, p256dh, auth];
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        // One that is spelled like none would be read as none.
        if self.subtype.as_deref() == Some(NONE) {
            return None;
        }
        let text = parts.join(" ");
        (parts.iter().all(|part| is_part(part)) && text.len() <= CHANNEL_NAME_MAX_BYTES).then_some(text)
    }

    /// Reads a channel's name; `None` where it is not ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let (category, subtype, sender) = (parts.next()?, parts.next()?, parts.next()?);
        let (p256dh, auth) = (parts.next()?, parts.next()?);
        let some = |part: &str| (part != NONE).then(|| part.to_owned());
        let keys = match (some(p256dh), some(auth)) {
            (Some(p256dh), Some(auth)) => Some(McsWebKeys { p256dh, auth }),
            (None, None) => None,
            // Half a pair is none of ours: taken for no keys, it would have content given in clear.
            _ => return None,
        };
        let (category, sender) = (category.to_owned(), sender.to_owned());
        parts.next().is_none().then_some(Self { category, subtype: some(subtype), sender, keys })
    }
}

/// A registration with the device that it is to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McsChannel {
    pub(super) name: McsChannelName,
    pub(super) identity: DeviceIdentity,
}

impl McsChannel {
    pub(super) fn read(channel: &Channel) -> Option<Self> {
        let identity = DeviceIdentity { app: channel.app, device: channel.device };
        Some(Self { name: McsChannelName::parse(&channel.name)?, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(subtype: Option<&str>, keys: bool) -> McsChannelName {
        McsChannelName {
            category: "org.chromium.linux".to_owned(),
            subtype: subtype.map(str::to_owned),
            sender: "12".to_owned(),
            keys: keys.then(|| McsWebKeys { p256dh: "BA".to_owned(), auth: "cc".to_owned() }),
        }
    }

    #[test]
    fn a_name_is_read_as_it_was_written() {
        for name in [name(None, false), name(Some("wp:https://a/#1"), true), name(Some("x"), false)] {
            assert_eq!(McsChannelName::parse(&name.text().expect("a name")), Some(name));
        }
    }

    #[test]
    fn what_would_be_read_as_another_is_no_name() {
        assert_eq!(name(Some("a b"), false).text(), None);
        assert_eq!(name(Some(""), false).text(), None);
        assert_eq!(name(Some("-"), false).text(), None);
        assert_eq!(name(Some(&"x".repeat(CHANNEL_NAME_MAX_BYTES)), false).text(), None);
        for text in ["", "a", "a b c d", "a b c d e f", "a b c - e", "a b c d -"] {
            assert_eq!(McsChannelName::parse(text), None, "{text}");
        }
    }
}
