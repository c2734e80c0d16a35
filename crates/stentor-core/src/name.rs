//! Validated strings: a constructed name always satisfies its rule. Lengths are counted in characters, as callers count them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::limits;

/// The characters that a text may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// All but control characters.
    Printable,
    /// ASCII without spaces and control characters.
    Visible,
    /// ASCII letters, digits, the hyphen, and these.
    Letters(&'static str),
}

impl Alphabet {
    /// Returns true if a text has no other characters.
    #[must_use]
    pub fn spells(self, text: &str) -> bool {
        match self {
            Self::Printable => !text.chars().any(char::is_control),
            Self::Visible => text.bytes().all(|byte| byte.is_ascii_graphic()),
            Self::Letters(more) => {
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                text.bytes().all(|byte| is_letter(byte) || more.as_bytes().contains(&byte))
            }
        }
    }

    /// Returns the characters as a class of a regular expression.
    #[must_use]
    pub fn class(self) -> String {
        match self {
            Self::Printable => "[^\\x00-\\x1f\\x7f-\\x9f]".to_owned(),
            Self::Visible => "[!-~]".to_owned(),
            Self::Letters(more) => format!("[A-Za-z0-9{more}-]"),
        }
    }
}

impl fmt::Display for Alphabet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Printable => f.write_str("printable text"),
            Self::Visible => f.write_str("visible ASCII without spaces"),
            Self::Letters(more) => write!(f, "letters, digits or -{more}"),
        }
    }
}

/// The rule of a text. Checks and descriptions both use it.
#[derive(Debug, Clone, Copy)]
pub struct TextRule {
    /// Name of the text's type in descriptions.
    pub name: &'static str,
    /// Description in a sentence.
    pub about: &'static str,
    /// Length of the longest text; the shortest has one character.
    pub max_chars: usize,
    /// Its characters.
    pub alphabet: Alphabet,
    /// A valid text.
    pub example: &'static str,
}

impl TextRule {
    /// Returns true if a text satisfies the rule.
    #[must_use]
    pub fn allows(&self, text: &str) -> bool {
        let is_short = text.len() <= self.max_chars || text.chars().nth(self.max_chars).is_none();
        !text.is_empty() && is_short && self.alphabet.spells(text)
    }

    /// Returns the regular expression of the texts, without their length.
    #[must_use]
    pub fn pattern(&self) -> String {
        format!("^{}+$", self.alphabet.class())
    }
}

/// Declares texts: the sentence that describes them, the field in errors, the length, the alphabet, an example, and the hint in errors if the
/// alphabet is not enough.
macro_rules! names {
    ($(#[doc = $about:literal] $name:ident $(as $shown:ident)?
        ($field:literal, $max:expr, $alphabet:expr, $example:literal $(, $hint:literal)?);)*) => {$(
        #[doc = $about]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Its rule.
            pub const RULE: TextRule = TextRule {
                name: names!(@last stringify!($name) $(, stringify!($shown))?),
                about: $about.trim_ascii(),
                max_chars: $max,
                alphabet: $alphabet,
                example: $example,
            };

            /// Checks the text once; the error names the field.
            pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                if Self::RULE.allows(&text) {
                    return Ok(Self(text));
                }
                let hint = names!(@last format!("must be {}", Self::RULE.alphabet) $(, $hint)?);
                Err(Invalid::new($field, format!("{hint} (1 to {} characters)", Self::RULE.max_chars)))
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
    (@last $usual:expr) => { $usual };
    (@last $usual:expr, $special:expr) => { $special };
}

names! {
    /// The app's own id of a person: printable text.
    ExternalId("user", limits::NAME_MAX_CHARS, Alphabet::Printable, "maria");
    /// The app's name of a group.
    GroupName("group", limits::NAME_MAX_CHARS, Alphabet::Letters("_.~%:"), "family");
    /// A topic.
    TopicName("topic", limits::TOPIC_NAME_MAX_BYTES, Alphabet::Letters("_.~%"), "news");
    /// A mark.
    Tag("tags", limits::TAG_MAX_BYTES, Alphabet::Letters("_.:="), "beta");
    /// A BCP 47 language tag such as `de-CH`.
    Locale("locale", limits::LOCALE_MAX_BYTES, Alphabet::Letters("_"), "de-CH", "must be a language tag such as `de-CH`");
    /// An IANA time zone name; its existence is checked by the code that has the time zone database.
    TimeZoneName as TimeZone("time_zone", limits::TIME_ZONE_MAX_BYTES, Alphabet::Letters("/_+"), "Europe/Rome", "must be an IANA name such as `Europe/Rome`");
    /// A newer message replaces an older one with the same key.
    CollapseKey("collapse_key", limits::COLLAPSE_KEY_MAX_CHARS, Alphabet::Printable, "order-1234");
    /// The push service's name of a broadcast channel.
    ChannelId("channel", limits::CHANNEL_ID_MAX_CHARS, Alphabet::Letters("+/=_"), "dHN0LXNyY2gtY2hubA==");
    /// A caller's name for one request, so that repeating it is harmless.
    IdempotencyKey("Idempotency-Key", limits::IDEMPOTENCY_KEY_MAX_BYTES, Alphabet::Visible, "order-1234");
    /// Name of a service.
    ServiceName("service", limits::SERVICE_NAME_MAX_CHARS, Alphabet::Letters("_"), "hall-sensors");
    /// Protocol of a service.
    ServiceKind("kind", limits::SERVICE_KIND_MAX_CHARS, Alphabet::Letters("_.+"), "mqtt");
    /// Address of a service: visible ASCII.
    ServiceAddress("address", limits::SERVICE_ADDRESS_MAX_BYTES, Alphabet::Visible, "mqtt.example.org:1883");
    /// Description of a service.
    ServiceText("description", limits::SERVICE_DESCRIPTION_MAX_CHARS, Alphabet::Printable, "Sensors of the hall");
    /// Name for people: printable text.
    Label("name", limits::NAME_MAX_CHARS, Alphabet::Printable, "Shop");
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
