//! Messages: content, target and options as sent by the app server.

mod record;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::id::{AppId, MessageId, ScheduleId, first_number_at};
use crate::limits::{
    DATA_ENTRIES_MAX_COUNT, MESSAGE_MAX_BYTES, NAME_MAX_CHARS, OVERRIDE_DEPTH_MAX_LEVELS, TTL_MAX_SECONDS,
};
use crate::name::{CollapseKey, TopicName};
use crate::provider::ProviderKind;
use crate::target::Target;
use crate::time::Timestamp;
use crate::word::words;

/// The visible part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// Title line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// The text below the title.
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

/// Longest time that a message may wait, in whole seconds, at most four weeks; zero means now or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Ttl(u32);

impl Ttl {
    /// Creates a ttl. Fails if it exceeds four weeks.
    pub fn from_seconds(seconds: u64) -> Result<Self, Invalid> {
        match u32::try_from(seconds) {
            Ok(fits) if seconds <= TTL_MAX_SECONDS => Ok(Self(fits)),
            _ => Err(Invalid::new("ttl_seconds", format!("at most {TTL_MAX_SECONDS} (four weeks)"))),
        }
    }

    /// Returns the seconds.
    #[must_use]
    pub const fn as_seconds(self) -> u64 {
        self.0 as u64
    }

    /// Returns the span.
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

/// The content of a message, without its target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "record::ContentRecord")]
pub struct Content {
    /// The visible part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notification: Option<Notification>,
    /// The invisible part.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub data: BTreeMap<String, String>,
    /// Fields in the push service's own format; they take precedence over ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub overrides: BTreeMap<ProviderKind, Map<String, Value>>,
}

impl Content {
    /// Returns true if the content is meant for devices of a provider: Live Activities get only what is written for them, and other devices
    /// get the rest. A start goes to the tokens for starts; anything else goes to the activities that run.
    #[must_use]
    pub fn is_for(&self, provider: ProviderKind) -> bool {
        let fields = self.overrides.get(&ProviderKind::LiveActivity);
        let is_start =
            |fields: &Map<String, Value>| fields.get("event").is_some_and(|event| event == "start");
        match provider {
            ProviderKind::LiveActivityStart => fields.is_some_and(is_start),
            ProviderKind::LiveActivity | ProviderKind::LiveActivityChannel => {
                fields.is_some_and(|fields| !is_start(fields))
            }
            _ => fields.is_none(),
        }
    }
}

/// A complete request to send a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageSpec {
    /// The recipients.
    pub target: Target,
    /// The content for the devices.
    pub content: Content,
    /// Urgency for the device.
    pub priority: Priority,
    /// Longest waiting time, counted from its due time.
    pub ttl: Ttl,
    /// A newer message replaces an older one with the same key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub collapse_key: Option<CollapseKey>,
}

impl MessageSpec {
    /// Checks the rules that span fields: content is present, it is not too large, and its record can be read back. Errors name the
    /// override of a provider `overrides.{provider}`.
    pub fn checked(self) -> Result<Self, Invalid> {
        let content = &self.content;
        if content.data.len() > DATA_ENTRIES_MAX_COUNT {
            return Err(Invalid::new("data", format!("at most {DATA_ENTRIES_MAX_COUNT} entries")));
        }
        let empty = content.notification.is_none() && content.data.is_empty();
        if empty && content.overrides.is_empty() {
            return Err(Invalid::new(
                "notification",
                "give a notification or data: there is nothing to send",
            ));
        }
        content.overrides.iter().try_for_each(|(provider, fields)| check_depth(*provider, fields))?;
        let record = self.encode();
        let record = record.map_err(|error| Invalid::new("message", format!("cannot be kept: {error}")))?;
        if record.len() > MESSAGE_MAX_BYTES {
            return Err(Invalid::new("message", format!("at most {MESSAGE_MAX_BYTES} bytes as JSON")));
        }
        if Self::decode(&record).as_ref() != Some(&self) {
            return Err(Invalid::new(
                "message",
                "cannot be kept unchanged: it would be read back as another value",
            ));
        }
        Ok(self)
    }

    /// Returns the topic that retains the message: new subscribers get it while it is the newest retained message of the topic. Returns
    /// `None` if the message is not retained.
    #[must_use]
    pub fn retained_topic(&self) -> Option<&TopicName> {
        let Target::Topic(topic) = &self.target else { return None };
        let fields = self.content.overrides.get(&ProviderKind::Gateway)?;
        fields.get("retain").and_then(Value::as_bool).unwrap_or_default().then_some(topic)
    }

    /// Encodes the stored record, with its version.
    pub fn encode(&self) -> serde_json::Result<String> {
        record::encode(self)
    }

    /// Decodes a stored record of any version so far. Returns `None` if the text is not a record.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        record::decode(text)
    }
}

fn check_depth(provider: ProviderKind, fields: &Map<String, Value>) -> Result<(), Invalid> {
    let deep = |(_, value): &(&String, &Value)| !fits_within(value, OVERRIDE_DEPTH_MAX_LEVELS);
    let Some((field, _)) = fields.iter().find(deep) else { return Ok(()) };
    let name = format!("overrides.{provider}");
    let path = if field.chars().count() <= NAME_MAX_CHARS { format!("{name}.{field}") } else { name };
    Err(Invalid::new(path, format!("may be nested at most {OVERRIDE_DEPTH_MAX_LEVELS} levels deep")))
}

/// Returns true if arrays and objects are nested at most `levels` deep; it looks no deeper.
fn fits_within(value: &Value, levels: usize) -> bool {
    let inner = |value: &Value| levels > 0 && fits_within(value, levels - 1);
    match value {
        Value::Array(values) => levels > 0 && values.iter().all(inner),
        Value::Object(fields) => levels > 0 && fields.values().all(inner),
        _ => true,
    }
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The owning app.
    pub app: AppId,
    /// The request.
    pub spec: MessageSpec,
    /// Time of acceptance.
    pub created_at: Timestamp,
    /// Start of its sending; the ttl counts from here.
    pub due_at: Timestamp,
    /// The schedule that created it, and the instant that it stands for.
    pub occurrence: Option<(ScheduleId, Timestamp)>,
}

impl Message {
    /// Returns the instant after which it is never sent.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.due_at.plus(self.spec.ttl.as_duration())
    }

    /// Returns true if it is too late at `now`; with ttl 0 the one attempt is always in time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.spec.ttl.as_seconds() > 0 && now >= self.expires_at()
    }

    /// Returns its place in the order in which newer messages replace older ones with the same collapse key. Messages are ordered by their
    /// due time; those due at once by their ids, which never decrease even if the clock does. Of two messages with the same place the one
    /// with the larger id is newer.
    #[must_use]
    pub fn place(&self) -> u64 {
        place(self.id, self.created_at, self.due_at)
    }

    /// Returns the remaining ttl at `now`, in whole seconds. It never exceeds the original ttl, although the current clock may be behind
    /// the clock by which the message was accepted: a push service may permanently refuse more than the longest ttl.
    #[must_use]
    pub fn remaining_ttl(&self, now: Timestamp) -> Ttl {
        let left = self.expires_at().since(now).as_secs() as u32;
        Ttl(left.min(self.spec.ttl.0))
    }
}

/// Returns the place of a message among those with the same collapse key; see [`Message::place`].
#[must_use]
pub fn place(id: MessageId, created_at: Timestamp, due_at: Timestamp) -> u64 {
    if due_at <= created_at { id.raw() } else { id.raw().max(first_number_at(due_at)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_for_live_activities_is_for_their_devices_and_all_other_content_for_the_rest() {
        let activity = |event: &str| {
            let fields = Map::from_iter([("event".to_owned(), Value::from(event))]);
            Content { overrides: [(ProviderKind::LiveActivity, fields)].into(), ..Content::default() }
        };
        let reached = |content: Content| {
            let all = ProviderKind::ALL.iter().copied();
            all.filter(|provider| content.is_for(*provider)).map(ProviderKind::as_str).collect::<Vec<_>>()
        };
        assert_eq!(reached(activity("start")), ["live_activity_start"]);
        for event in ["update", "end"] {
            assert_eq!(reached(activity(event)), ["live_activity", "live_activity_channel"]);
        }
        assert_eq!(reached(Content::default()).len(), ProviderKind::ALL.len() - 3);
    }

    #[test]
    fn what_is_due_later_is_newer_and_what_is_due_at_once_goes_by_its_id() {
        let at = |seconds: i64| Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000);
        let sent = |seconds: i64, due: i64| {
            let id = MessageId::from_raw(first_number_at(at(seconds)) + 7);
            place(id, at(seconds), at(due))
        };
        let (scheduled, before, after) = (sent(0, 4), sent(3, 3), sent(5, 5));
        assert!(before < scheduled && scheduled < after);
        assert!(sent(0, 4) < sent(1, 5) && sent(0, 5) > sent(1, 4));
        let behind = place(MessageId::from_raw(first_number_at(at(6))), at(2), at(2));
        assert!(behind > after, "a clock that went back makes nothing older");
    }

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

    fn overridden() -> MessageSpec {
        let fields = |json: &str| serde_json::from_str(json).expect("an object");
        let overrides =
            [(ProviderKind::Fcm, fields(r#"{"a":1}"#)), (ProviderKind::Apns, fields(r#"{"b":[]}"#))];
        MessageSpec { content: Content { overrides: overrides.into(), ..spec().content }, ..spec() }
    }

    #[test]
    fn the_stored_record_of_version_1_stays_as_it_is() {
        let golden = r#"{"v":1,"spec":{"target":"everyone","content":{"notification":{"title":"Hi"},"android":{"a":1},"apns":{"b":[]}},"priority":"high","ttl":2419200}}"#;
        assert_eq!(MessageSpec::decode(golden), Some(overridden()));
        let plain = r#"{"v":1,"spec":{"target":"everyone","content":{"notification":{"title":"Hi"}},"priority":"high","ttl":2419200}}"#;
        assert_eq!(spec().encode().expect("a record"), plain);
        assert_eq!(MessageSpec::decode(plain), Some(spec()));
    }

    #[test]
    fn the_stored_record_of_version_2_stays_as_it_is() {
        let golden = r#"{"v":2,"spec":{"target":"everyone","content":{"notification":{"title":"Hi"},"overrides":{"fcm":{"a":1},"apns":{"b":[]}}},"priority":"high","ttl":2419200}}"#;
        assert_eq!(overridden().encode().expect("a record"), golden);
        assert_eq!(MessageSpec::decode(golden), Some(overridden()));
    }

    #[test]
    fn a_record_of_an_unknown_version_is_not_guessed_at() {
        let record = spec().encode().expect("a record");
        assert_eq!(MessageSpec::decode(&record.replace("\"v\":1", "\"v\":9")), None);
    }

    #[test]
    fn a_message_without_content_is_refused() {
        let empty = MessageSpec { content: Content::default(), ..spec() };
        assert_eq!(empty.checked().expect_err("refused").field, "notification");
    }

    fn nested(levels: usize) -> Map<String, Value> {
        let value = (0..levels).fold(Value::from(1), |inner, _| serde_json::json!({ "a": inner }));
        Map::from_iter([("payload".to_owned(), value)])
    }

    #[test]
    fn an_override_is_nested_up_to_the_limit_and_a_deeper_one_is_refused_by_name() {
        let with = |levels| {
            let overrides = [(ProviderKind::Apns, nested(levels))].into();
            MessageSpec { content: Content { overrides, ..Content::default() }, ..spec() }.checked()
        };
        let deepest = with(OVERRIDE_DEPTH_MAX_LEVELS).expect("fits");
        assert_eq!(MessageSpec::decode(&deepest.encode().expect("a record")), Some(deepest));
        for levels in [OVERRIDE_DEPTH_MAX_LEVELS + 1, 124, 127] {
            assert_eq!(with(levels).expect_err("refused").field, "overrides.apns.payload");
        }
    }

    #[test]
    fn a_number_with_a_fraction_is_read_back_to_its_last_bit() {
        // Values that a quick parser of numbers misses by a bit.
        for number in
            [1.1111111111111112e-308, 8.98846567431158e307, 51.24817837550540_4, -0.0, 1e300, 5e-324]
        {
            let fields = Map::from_iter([("x".to_owned(), number.into())]);
            let content = Content { overrides: [(ProviderKind::Fcm, fields)].into(), ..Content::default() };
            let checked = MessageSpec { content, ..spec() }.checked().expect("can be read back");
            assert_eq!(MessageSpec::decode(&checked.encode().expect("a record")), Some(checked));
        }
    }

    #[test]
    fn only_what_a_topic_is_to_keep_is_retained() {
        let to = |target: Target, fields: &str| {
            let fields = serde_json::from_str(fields).expect("an object");
            let overrides = [(ProviderKind::Gateway, fields)].into();
            MessageSpec { target, content: Content { overrides, ..Content::default() }, ..spec() }
        };
        let door = || TopicName::new("door").expect("a name");
        assert_eq!(to(Target::Topic(door()), r#"{"retain":true}"#).retained_topic(), Some(&door()));
        for fields in ["{}", r#"{"retain":false}"#, r#"{"retain":"yes"}"#] {
            assert_eq!(to(Target::Topic(door()), fields).retained_topic(), None, "{fields}");
        }
        assert_eq!(to(Target::Everyone, r#"{"retain":true}"#).retained_topic(), None);
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
        assert_eq!(message.remaining_ttl(at(40)).as_seconds(), 60, "by a clock that is behind");
        message.spec.ttl = Ttl::from_seconds(0).expect("fits");
        assert!(!message.is_expired(at(500)));
    }
}
