//! Messages: what the app server asks us to send.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::id::{AppId, MessageId, ScheduleId};
use crate::limits::{DATA_ENTRIES_MAX_COUNT, MESSAGE_MAX_BYTES, TTL_MAX_SECONDS};
use crate::name::CollapseKey;
use crate::ports::clock::Timestamp;
use crate::target::Target;
use crate::word::words;

/// The visible part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// Title line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body: Option<String>,
    /// Address of a picture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub image: Option<String>,
}

/// Urgency for the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// May wait for the device's convenience.
    Normal,
    /// Wakes the device.
    #[default]
    High,
}

words! { Priority { Normal = "normal"; High = "high"; } }

/// How long a message may wait, in whole seconds, at most four weeks; zero means now or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Ttl(u32);

impl Ttl {
    /// Checks the bound.
    pub fn from_seconds(seconds: u64) -> Result<Self, Invalid> {
        match u32::try_from(seconds) {
            Ok(fits) if seconds <= TTL_MAX_SECONDS => Ok(Self(fits)),
            _ => Err(Invalid::new("ttl_seconds", format!("at most {TTL_MAX_SECONDS} (four weeks)"))),
        }
    }

    /// Gives the seconds.
    #[must_use]
    pub const fn as_seconds(self) -> u64 {
        self.0 as u64
    }

    /// Gives the span.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(TTL_MAX_SECONDS as u32)
    }
}

impl TryFrom<u64> for Ttl {
    type Error = Invalid;
    fn try_from(seconds: u64) -> Result<Self, Invalid> {
        Self::from_seconds(seconds)
    }
}

impl From<Ttl> for u64 {
    fn from(ttl: Ttl) -> Self {
        ttl.as_seconds()
    }
}

/// What to send, without to whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The visible part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notification: Option<Notification>,
    /// The invisible part.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub data: BTreeMap<String, String>,
    /// FCM `AndroidConfig` fields that win over ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub android: Option<serde_json::Map<String, serde_json::Value>>,
    /// APNs override: `{"headers": {...}, "payload": {...}}` fields that win over ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub apns: Option<serde_json::Map<String, serde_json::Value>>,
}

/// All that the app server asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// To whom.
    pub target: Target,
    /// What.
    pub content: Content,
    /// How urgent for the device.
    pub priority: Priority,
    /// How long it may wait, counted from its due time.
    pub ttl: Ttl,
    /// Newer replaces older with the same key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub collapse_key: Option<CollapseKey>,
}

impl MessageSpec {
    /// Checks what no single field can: that there is content, and not too much.
    pub fn checked(self) -> Result<Self, Invalid> {
        let content = &self.content;
        if content.data.len() > DATA_ENTRIES_MAX_COUNT {
            return Err(Invalid::new("data", format!("at most {DATA_ENTRIES_MAX_COUNT} entries")));
        }
        let empty = content.notification.is_none() && content.data.is_empty();
        if empty && content.android.is_none() && content.apns.is_none() {
            return Err(Invalid::new(
                "notification",
                "give a notification or data: there is nothing to send",
            ));
        }
        if self.encode().len() > MESSAGE_MAX_BYTES {
            return Err(Invalid::new("message", format!("at most {MESSAGE_MAX_BYTES} bytes as JSON")));
        }
        Ok(self)
    }

    /// Writes the stored record, with its version.
    #[must_use]
    pub fn encode(&self) -> String {
        let record = StoredSpec { v: 1, spec: std::borrow::Cow::Borrowed(self) };
        serde_json::to_string(&record).unwrap_or_default()
    }

    /// Reads a stored record of any version so far; `None` when it is none.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let record: StoredSpec<'_> = serde_json::from_str(text).ok()?;
        (record.v == 1).then(|| record.spec.into_owned())
    }
}

#[derive(Serialize, Deserialize)]
struct StoredSpec<'a> {
    v: u32,
    spec: std::borrow::Cow<'a, MessageSpec>,
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Whose it is.
    pub app: AppId,
    /// What was asked for.
    pub spec: MessageSpec,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its sending begins; ttl counts from here.
    pub due_at: Timestamp,
    /// The schedule that made it, and the instant it stands for.
    pub occurrence: Option<(ScheduleId, Timestamp)>,
}

impl Message {
    /// Gives the instant after which it is never sent.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.due_at.plus(self.spec.ttl.as_duration())
    }

    /// Tells whether it is too late at `now`; with ttl 0 the one attempt is always in time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.spec.ttl.as_seconds() > 0 && now >= self.expires_at()
    }

    /// Gives the life that is left at `now`, in whole seconds.
    #[must_use]
    pub fn remaining_ttl(&self, now: Timestamp) -> Ttl {
        Ttl(self.expires_at().since(now).as_secs() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> MessageSpec {
        let notification = Some(Notification { title: Some("Hi".into()), ..Default::default() });
        let content = Content { notification, ..Default::default() };
        MessageSpec {
            target: Target::Everyone,
            content,
            priority: Priority::High,
            ttl: Ttl::default(),
            collapse_key: None,
        }
    }

    #[test]
    fn the_stored_record_of_version_1_stays_as_it_is() {
        let golden = r#"{"v":1,"spec":{"target":"everyone","content":{"notification":{"title":"Hi"}},"priority":"high","ttl":2419200}}"#;
        assert_eq!(spec().encode(), golden);
        assert_eq!(MessageSpec::decode(golden), Some(spec()));
    }

    #[test]
    fn a_record_of_an_unknown_version_is_not_guessed_at() {
        assert_eq!(MessageSpec::decode(&spec().encode().replace("\"v\":1", "\"v\":9")), None);
    }

    #[test]
    fn a_message_without_content_is_refused() {
        let empty = MessageSpec { content: Content::default(), ..spec() };
        assert_eq!(empty.checked().expect_err("refused").field, "notification");
    }

    #[test]
    fn ttl_counts_from_due_time_and_zero_is_one_attempt() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let ttl = Ttl::from_seconds(60).expect("fits");
        let mut message = Message {
            id: MessageId::from_raw(1),
            app: AppId::from_raw(1),
            spec: MessageSpec { ttl, ..spec() },
            created_at: at(0),
            due_at: at(100),
            occurrence: None,
        };
        assert!(!message.is_expired(at(159)) && message.is_expired(at(160)));
        assert_eq!(message.remaining_ttl(at(130)).as_seconds(), 30);
        message.spec.ttl = Ttl::from_seconds(0).expect("fits");
        assert!(!message.is_expired(at(500)));
    }
}
