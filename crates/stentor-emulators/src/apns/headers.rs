//! The request headers of APNs and their validation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const APNS_ID: HeaderName = HeaderName::from_static("apns-id");
pub(super) const APNS_REQUEST_ID: HeaderName = HeaderName::from_static("apns-request-id");
pub(super) const APNS_CHANNEL_ID: HeaderName = HeaderName::from_static("apns-channel-id");
pub(super) const APNS_UNIQUE_ID: HeaderName = HeaderName::from_static("apns-unique-id");
const APNS_TOPIC: HeaderName = HeaderName::from_static("apns-topic");
const APNS_PUSH_TYPE: HeaderName = HeaderName::from_static("apns-push-type");
const APNS_PRIORITY: HeaderName = HeaderName::from_static("apns-priority");
const APNS_EXPIRATION: HeaderName = HeaderName::from_static("apns-expiration");
const APNS_COLLAPSE_ID: HeaderName = HeaderName::from_static("apns-collapse-id");

const MAX_COLLAPSE_ID_BYTES: usize = 64;
const MAX_TOPIC_BYTES: usize = 255;
/// Apple documents no length: this is room enough.
const MAX_CHANNEL_ID_BYTES: usize = 256;
const UUID_CHARS: usize = 36;
/// The push type of Live Activities, and the end of their topics.
const LIVE_ACTIVITY: &str = "liveactivity";
pub(super) const LIVE_ACTIVITY_SUFFIX: &str = ".push-type.liveactivity";

/// The push types; voip allows a larger payload.
const PUSH_TYPES: &[&str] = &[
    "alert",
    "background",
    "complication",
    "controls",
    "fileprovider",
    LIVE_ACTIVITY,
    "location",
    "mdm",
    "pushtotalk",
    "voip",
    "widgets",
];

/// The validated headers of a request.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    pub(super) topic: &'a str,
    pub(super) push_type: Option<&'a str>,
    pub(super) priority: u8,
    /// Seconds since 1970; 0 means: deliver now or never.
    pub(super) expiration: Option<u64>,
    pub(super) collapse_id: Option<&'a str>,
}

impl<'a> Headers<'a> {
    /// Reads the headers; the error is the reason.
    pub(super) fn read(map: &'a HeaderMap) -> Result<Self, &'static str> {
        // Comparing with `keys_len` rules out duplicate names without a scan, which is the case for nearly every request.
        if map.len() != map.keys_len() && has_duplicates(map) {
            return Err("DuplicateHeaders");
        }
        if map.get(APNS_ID).is_some_and(|id| !is_uuid(id.as_bytes())) {
            return Err("BadMessageId");
        }
        let push_type = read_push_type(map)?;
        Ok(Self {
            expiration: read_expiration(map)?,
            priority: read_priority(map, push_type)?,
            topic: read_topic(map, push_type)?,
            collapse_id: read_collapse_id(map)?,
            push_type,
        })
    }
}

/// The validated headers of a broadcast.
#[derive(Debug)]
pub(super) struct BroadcastHeaders {
    pub(super) priority: u8,
    /// Seconds since 1970; 0 means: deliver now or never.
    pub(super) expiration: u64,
}

impl BroadcastHeaders {
    /// Reads the headers for a channel that stores messages or not; the error is the reason.
    pub(super) fn read(map: &HeaderMap, stores_messages: bool) -> Result<Self, &'static str> {
        let push_type = map.get(APNS_PUSH_TYPE).ok_or("MissingPushType")?;
        if !is_live_activity(push_type.as_bytes()) {
            return Err("InvalidPushType");
        }
        // Apple requires the headers and names no reason for a missing one.
        let priority = map.get(APNS_PRIORITY).ok_or("BadPriority")?;
        let priority = priority_of(priority).ok_or("BadPriority")?;
        let expiration = read_expiration(map)?.ok_or("BadExpirationDate")?;
        if expiration > 0 && !stores_messages {
            return Err("BadExpirationDate");
        }
        check_request_id(map)?;
        Ok(Self { priority, expiration })
    }
}

/// Returns the channel id of a request; the error is the reason.
pub(super) fn read_channel_id(map: &HeaderMap) -> Result<&str, &'static str> {
    let value = map.get(APNS_CHANNEL_ID).ok_or("MissingChannelId")?;
    let sane = |id: &&str| !id.is_empty() && id.len() <= MAX_CHANNEL_ID_BYTES && STANDARD.decode(id).is_ok();
    text(value).filter(sane).ok_or("BadChannelId")
}

/// Checks the id of a request for channels; the error is the reason.
pub(super) fn check_request_id(map: &HeaderMap) -> Result<(), &'static str> {
    let bad = |name| map.get(name).is_some_and(|id: &HeaderValue| !is_uuid(id.as_bytes()));
    if bad(APNS_REQUEST_ID) || bad(APNS_ID) { Err("BadMessageId") } else { Ok(()) }
}

/// Returns true if this is the push type of channels, which Apple's pages write as LiveActivity, Liveactivity and liveactivity.
pub(super) fn is_live_activity(push_type: &[u8]) -> bool {
    push_type.eq_ignore_ascii_case(LIVE_ACTIVITY.as_bytes())
}

fn has_duplicates(map: &HeaderMap) -> bool {
    map.keys().any(|name| name.as_str().starts_with("apns-") && map.get_all(name).iter().nth(1).is_some())
}

/// Returns true if this is a UUID as RFC 9562 writes it.
fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() == UUID_CHARS
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn read_push_type(map: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let Some(value) = map.get(APNS_PUSH_TYPE) else { return Ok(None) };
    let known = value.to_str().ok().filter(|value| PUSH_TYPES.contains(value));
    known.map(Some).ok_or("InvalidPushType")
}

fn read_expiration(map: &HeaderMap) -> Result<Option<u64>, &'static str> {
    let Some(value) = map.get(APNS_EXPIRATION) else { return Ok(None) };
    text(value).and_then(|value| value.parse().ok()).map(Some).ok_or("BadExpirationDate")
}

fn read_priority(map: &HeaderMap, push_type: Option<&str>) -> Result<u8, &'static str> {
    // APNs takes a notification without the header as one with priority 10.
    let Some(value) = map.get(APNS_PRIORITY) else { return Ok(10) };
    match (priority_of(value), push_type) {
        // Apple's documentation calls priority 10 an error for a background notification.
        (Some(10), Some("background")) => Err("BadPriority"),
        // It allows 5 and 10 for a Live Activity.
        (Some(1), Some(LIVE_ACTIVITY)) => Err("BadPriority"),
        (priority, _) => priority.ok_or("BadPriority"),
    }
}

fn priority_of(value: &HeaderValue) -> Option<u8> {
    match value.as_bytes() {
        b"10" => Some(10),
        b"5" => Some(5),
        b"1" => Some(1),
        _ => None,
    }
}

fn read_topic<'a>(map: &'a HeaderMap, push_type: Option<&str>) -> Result<&'a str, &'static str> {
    let value = map.get(APNS_TOPIC).ok_or("MissingTopic")?;
    let sane = |topic: &&str| {
        !topic.is_empty()
            && topic.len() <= MAX_TOPIC_BYTES
            && topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            && (push_type != Some(LIVE_ACTIVITY) || topic.ends_with(LIVE_ACTIVITY_SUFFIX))
    };
    text(value).filter(sane).ok_or("BadTopic")
}

fn read_collapse_id(map: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let Some(value) = map.get(APNS_COLLAPSE_ID) else { return Ok(None) };
    let sane = |id: &&str| id.len() <= MAX_COLLAPSE_ID_BYTES;
    std::str::from_utf8(value.as_bytes()).ok().filter(sane).map(Some).ok_or("BadCollapseId")
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}
