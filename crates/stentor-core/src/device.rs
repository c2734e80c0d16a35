//! Devices and the addresses by which push services know them.

mod facts;
mod token_form;

use std::fmt;

use crate::codes::codes;
use crate::error::Invalid;
use crate::id::{AppId, DeviceId};
use crate::limits;
use crate::name::{Alphabet, TextRule, TopicName};
pub use crate::provider::ProviderKind;
use crate::reason::Reason;
use crate::time::Timestamp;
pub use facts::{DEVICE_TEXTS, DEVICE_TEXTS_COUNT, DeviceFacts, DevicePatch, DeviceText, with_device_texts};
pub use token_form::TokenForm;

codes! {
    /// OS family of a device.
    Platform {
        /// A device with Android.
        Android = 1, "android";
        /// iOS, iPadOS, macOS, watchOS, tvOS, visionOS.
        Apple = 2, "apple" | "ios" | "ipados" | "macos" | "watchos" | "tvos" | "visionos";
        /// A browser.
        Web = 3, "web";
        /// A device with Windows.
        Windows = 4, "windows";
        /// Linux: kiosks, phones, sensors, single-board computers.
        Linux = 5, "linux";
    }
}

codes! {
    /// The state of a device in lists and filters.
    DeviceState {
        /// Member of audiences.
        Active = 1, "active";
        /// Its token is dead.
        Retired = 2, "retired";
        /// Known only because a message named its token.
        Unlisted = 3, "unlisted";
    }
}

/// A device's address at its push service: opaque, and never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PushToken(String);

impl PushToken {
    /// Its rule, for every push service; the rules of a single one are with its adapter.
    pub const RULE: TextRule = TextRule {
        name: "PushToken",
        about: "A device's address at its push service: visible ASCII.",
        max_chars: limits::PUSH_TOKEN_MAX_BYTES,
        alphabet: Alphabet::Visible,
        example: "cJ4vGd1wRk2:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx",
    };

    /// Checks length and alphabet (visible ASCII), nothing else: only the push service knows more. Bytes as Apple's systems print them
    /// (`<ab01cd23 45ef6789>`) are reduced to their digits.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = digits_of_printed(text.into());
        if Self::RULE.allows(&text) {
            return Ok(Self(text));
        }
        let problem = format!("must be 1 to {} bytes of visible ASCII", Self::RULE.max_chars);
        Err(Invalid::new("token", problem))
    }

    /// Returns the same token with small letters.
    #[must_use]
    pub fn in_small_letters(mut self) -> Self {
        self.0.make_ascii_lowercase();
        self
    }

    /// Returns the same token with capitals.
    #[must_use]
    pub fn in_capitals(mut self) -> Self {
        self.0.make_ascii_uppercase();
        self
    }

    /// Returns the text that goes on the wire.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Removes the spaces and angle brackets from printed bytes; any other text is returned unchanged.
fn digits_of_printed(text: String) -> String {
    let is_print = |byte: u8| matches!(byte, b' ' | b'<' | b'>');
    let is_printed = text.bytes().any(is_print)
        && text.bytes().any(|byte| byte.is_ascii_hexdigit())
        && text.bytes().all(|byte| is_print(byte) || byte.is_ascii_hexdigit());
    if is_printed { text.chars().filter(char::is_ascii_hexdigit).collect() } else { text }
}

impl fmt::Debug for PushToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushToken([redacted], {} bytes)", self.0.len())
    }
}

/// A device as registered by an app; repeating a registration changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// OS family.
    pub platform: Platform,
    /// Adapter that reaches it.
    pub provider: ProviderKind,
    /// Its address there; one device per (app, provider, token).
    pub token: PushToken,
    /// Its address there before, which `token` replaces: the device that has it is this one.
    pub former: Option<PushToken>,
    /// The other facts that its app states.
    pub facts: DeviceFacts,
    /// Topics to subscribe to; existing subscriptions to other topics are kept.
    pub topics: Vec<TopicName>,
}

impl Registration {
    /// Creates a registration without optional fields.
    #[must_use]
    pub fn new(platform: Platform, provider: ProviderKind, token: PushToken) -> Self {
        Self { platform, provider, token, former: None, facts: DeviceFacts::default(), topics: Vec::new() }
    }

    /// Returns the token that this one replaces, if it is another one.
    #[must_use]
    pub fn replaces(&self) -> Option<&PushToken> {
        self.former.as_ref().filter(|former| **former != self.token)
    }

    /// Checks the number of tags and topics, and sorts the tags.
    pub fn checked(mut self) -> Result<Self, Invalid> {
        let tags = &mut self.facts.tags;
        tags.sort();
        tags.dedup();
        if tags.len() > limits::TAGS_PER_DEVICE_MAX_COUNT {
            return Err(Invalid::new("tags", format!("at most {}", limits::TAGS_PER_DEVICE_MAX_COUNT)));
        }
        if self.topics.len() > limits::TOPICS_PER_DEVICE_MAX_COUNT {
            return Err(Invalid::new("topics", format!("at most {}", limits::TOPICS_PER_DEVICE_MAX_COUNT)));
        }
        Ok(self)
    }
}

/// Keys by which messages are encrypted for one device alone (RFC 8291), in base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceKeys {
    /// Its public key, a point of P-256.
    pub p256dh: String,
    /// The secret that the device shares with its senders.
    pub auth: String,
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceKeys([redacted])")
    }
}

/// Time and reason of the removal of a device from all audiences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retirement {
    /// Time of the push service's report.
    pub at: Timestamp,
    /// The reported reason.
    pub reason: Reason,
}

/// A registered device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its id, given at the first registration; later devices have larger ids.
    pub id: DeviceId,
    /// The owning app.
    pub app: AppId,
    /// OS family.
    pub platform: Platform,
    /// Adapter that reaches it.
    pub provider: ProviderKind,
    /// Its address there.
    pub token: PushToken,
    /// The latest facts; subscriptions are queried separately.
    pub facts: DeviceFacts,
    /// Time of the first registration.
    pub registered_at: Timestamp,
    /// Time of the last registration of the current token: an older "unregistered" of the push service does not retire the device.
    pub token_since: Timestamp,
    /// Set when the push service reported the token as dead.
    pub retired: Option<Retirement>,
    /// False for a device known only because a message named its token; such a device is in no wider audience.
    pub listed: bool,
    /// The device's keys for encrypted messages, if it has provided any.
    pub keys: Option<DeviceKeys>,
}

impl Device {
    /// Returns its state; a dead token takes precedence over the listing.
    #[must_use]
    pub const fn state(&self) -> DeviceState {
        match (self.retired.is_some(), self.listed) {
            (true, _) => DeviceState::Retired,
            (false, true) => DeviceState::Active,
            (false, false) => DeviceState::Unlisted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_token_never_shows_itself_in_debug() {
        let token = PushToken::new("secret-address").expect("fits");
        assert!(!format!("{token:?}").contains("secret"));
    }

    #[test]
    fn keys_of_a_device_never_show_themselves_in_debug() {
        let keys = DeviceKeys { p256dh: "point".to_owned(), auth: "shared".to_owned() };
        let output = format!("{keys:?}");
        assert!(!output.contains("point") && !output.contains("shared"), "{output}");
    }

    #[test]
    fn a_push_token_with_a_line_break_is_refused() {
        assert_eq!(PushToken::new("a\r\nb").expect_err("refused").field, "token");
        assert!(PushToken::new("").is_err());
        assert!(PushToken::new("x".repeat(limits::PUSH_TOKEN_MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn a_push_token_as_apples_systems_print_bytes_is_its_digits() {
        for text in ["<AB01cd23 45ef>", "AB01 cd23 45ef", " AB01cd2345ef ", "AB01cd2345ef"] {
            assert_eq!(PushToken::new(text).expect("a token").expose(), "AB01cd2345ef", "{text}");
        }
        assert_eq!(PushToken::new("<token>").expect("a token").expose(), "<token>");
        for text in ["<  >", "ab01 xyz", "", " "] {
            assert!(PushToken::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn codes_and_words_lead_back_to_the_same_provider() {
        for kind in ProviderKind::ALL {
            assert_eq!(ProviderKind::from_code(kind.code()), Some(*kind));
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
    }
}
