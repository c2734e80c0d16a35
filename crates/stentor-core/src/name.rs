//! Validated strings: a constructed name always satisfies its rule. Lengths are counted in characters, as callers count them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::limits;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident($field:literal, $max:expr, $rule:expr, $help:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the text once; the error names the field.
            pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                let rule: fn(char) -> bool = $rule;
                let short = text.len() <= $max || text.chars().nth($max).is_none();
                if !text.is_empty() && short && text.chars().all(rule) {
                    return Ok(Self(text));
                }
                Err(Invalid::new($field, format!("{} (1 to {} characters)", $help, $max)))
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(text: String) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )*};
}

names! {
    /// The app's own id of a person.
    ExternalId("user", limits::NAME_MAX_CHARS, |c| !c.is_control(), "must be printable text");
    /// The app's name of a group.
    GroupName("group", limits::NAME_MAX_CHARS, |c| c.is_ascii_alphanumeric() || "-_.~%:".contains(c), "must be letters, digits or -_.~%:");
    /// An opt-in channel of an app (FCM's alphabet).
    TopicName("topic", limits::TOPIC_NAME_MAX_BYTES, |c| c.is_ascii_alphanumeric() || "-_.~%".contains(c), "must be letters, digits or -_.~%");
    /// A mark an app puts on a device.
    Tag("tags", limits::TAG_MAX_BYTES, |c| c.is_ascii_alphanumeric() || "-_.:=".contains(c), "must be letters, digits or -_.:=");
    /// A BCP 47 language tag.
    Locale("locale", limits::LOCALE_MAX_BYTES, |c| c.is_ascii_alphanumeric() || c == '-' || c == '_', "must be a language tag such as `de-CH`");
    /// An IANA time zone name; its existence is checked by the code that has the time zone database.
    TimeZoneName("time_zone", limits::TIME_ZONE_MAX_BYTES, |c| c.is_ascii_alphanumeric() || "/_+-".contains(c), "must be an IANA name such as `Europe/Rome`");
    /// A key of messages to the same device; a newer message replaces an older one with the same key.
    CollapseKey("collapse_key", limits::COLLAPSE_KEY_MAX_CHARS, |c| !c.is_control(), "must be printable text");
    /// A caller's name for one request, so that repeating it is harmless.
    IdempotencyKey("Idempotency-Key", limits::IDEMPOTENCY_KEY_MAX_BYTES, |c| c.is_ascii_graphic(), "must be visible ASCII without spaces");
    /// The name of a published service: also a label of DNS, except for capitals and underscores.
    ServiceName("service", limits::SERVICE_NAME_MAX_CHARS, |c| c.is_ascii_alphanumeric() || "-_".contains(c), "must be letters, digits or -_");
    /// The protocol of a published service.
    ServiceKind("kind", limits::SERVICE_KIND_MAX_CHARS, |c| c.is_ascii_alphanumeric() || "-_.+".contains(c), "must be letters, digits or -_.+");
    /// The address of a published service.
    ServiceAddress("address", limits::SERVICE_ADDRESS_MAX_BYTES, |c| c.is_ascii_graphic(), "must be visible ASCII without spaces");
    /// The description of a published service.
    ServiceText("description", limits::SERVICE_DESCRIPTION_MAX_CHARS, |c| !c.is_control(), "must be printable text");
    /// The name of an app or key, for people.
    Label("name", limits::NAME_MAX_CHARS, |c| !c.is_control(), "must be printable text");
}

impl TopicName {
    /// Prefix of topics to which devices cannot subscribe by themselves.
    pub const PRIVATE_PREFIX: &str = "private-";

    /// Returns true if only the app's backend may subscribe devices to it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.0.starts_with(Self::PRIVATE_PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_as_many_letters_in_every_script() {
        for letter in ["a", "ä", "語", "\u{1F600}"] {
            assert!(ExternalId::new(letter.repeat(limits::NAME_MAX_CHARS)).is_ok(), "{letter}");
            assert!(ExternalId::new(letter.repeat(limits::NAME_MAX_CHARS + 1)).is_err(), "{letter}");
        }
        assert!(ExternalId::new("").is_err() && TopicName::new("ä").is_err());
    }
}
