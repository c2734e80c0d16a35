//! A registration of a program: its sender, and its name among the program's registrations.

use std::fmt;

use stentor_core::limits::CHANNEL_NAME_MAX_BYTES;
use stentor_core::ports::store::Channel;

use crate::identity::DeviceIdentity;

/// Placeholder for an absent part of a name.
const NONE: &str = "-";

/// The public keys of a web client that wants encrypted messages, as base64url (RFC 8291).
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

/// The identity of a registration. The name of a [`Channel`] encodes all of it, so that the store need not understand it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McsChannelName {
    /// The program, for example `org.chromium.linux`.
    pub(super) category: String,
    /// The program's own subdivision.
    pub(super) subtype: Option<String>,
    /// The sender of messages: an app's id in decimal, or an application server's key.
    pub(super) sender: String,
    /// The keys for which messages are encrypted.
    pub(super) keys: Option<McsWebKeys>,
}

impl McsChannelName {
    /// Returns true if another one is the same registration; keys are ignored.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.category, &self.subtype, &self.sender) == (&other.category, &other.subtype, &other.sender)
    }

    /// Formats it as a channel's name; `None` if a part is not representable.
    pub(super) fn text(&self) -> Option<String> {
        let keys = self.keys.as_ref();
        let (p256dh, auth) = keys.map_or((NONE, NONE), |keys| (&keys.p256dh, &keys.auth));
        let parts = [&self.category, self.subtype.as_deref().unwrap_or(NONE), &self.sender, p256dh, auth];
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
        // A subtype equal to the placeholder would be read as absent.
        if self.subtype.as_deref() == Some(NONE) {
            return None;
        }
        let text = parts.join(" ");
        (parts.iter().all(|part| is_part(part)) && text.len() <= CHANNEL_NAME_MAX_BYTES).then_some(text)
    }

    /// Parses a channel's name; `None` if it belongs to another protocol.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let (category, subtype, sender) = (parts.next()?, parts.next()?, parts.next()?);
        let (p256dh, auth) = (parts.next()?, parts.next()?);
        let some = |part: &str| (part != NONE).then(|| part.to_owned());
        let keys = match (some(p256dh), some(auth)) {
            (Some(p256dh), Some(auth)) => Some(McsWebKeys { p256dh, auth }),
            (None, None) => None,
            // Half a pair is invalid. Read as no keys, it would cause delivery in clear.
            _ => return None,
        };
        let (category, sender) = (category.to_owned(), sender.to_owned());
        parts.next().is_none().then_some(Self { category, subtype: some(subtype), sender, keys })
    }
}

/// A registration with its device.
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
