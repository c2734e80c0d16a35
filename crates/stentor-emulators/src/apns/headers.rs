//! The request headers of APNs and their validation.

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const APNS_ID: HeaderName = HeaderName::from_static("apns-id");
pub(super) const APNS_UNIQUE_ID: HeaderName = HeaderName::from_static("apns-unique-id");
const APNS_TOPIC: HeaderName = HeaderName::from_static("apns-topic");
const APNS_PUSH_TYPE: HeaderName = HeaderName::from_static("apns-push-type");
const APNS_PRIORITY: HeaderName = HeaderName::from_static("apns-priority");
const APNS_EXPIRATION: HeaderName = HeaderName::from_static("apns-expiration");
const APNS_COLLAPSE_ID: HeaderName = HeaderName::from_static("apns-collapse-id");

const MAX_COLLAPSE_ID_BYTES: usize = 64;
const MAX_TOPIC_BYTES: usize = 255;
const UUID_CHARS: usize = 36;

/// The push types; voip allows a larger payload.
const PUSH_TYPES: &[&str] = &[
    "alert",
    "background",
    "complication",
    "controls",
    "fileprovider",
    "liveactivity",
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
            topic: read_topic(map)?,
            collapse_id: read_collapse_id(map)?,
            push_type,
        })
    }
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
    match value.as_bytes() {
        // Apple's documentation calls priority 10 an error for a background notification.
        b"10" if push_type == Some("background") => Err("BadPriority"),
        b"10" => Ok(10),
        b"5" => Ok(5),
        b"1" => Ok(1),
        _ => Err("BadPriority"),
    }
}

fn read_topic(map: &HeaderMap) -> Result<&str, &'static str> {
    let value = map.get(APNS_TOPIC).ok_or("MissingTopic")?;
    let sane = |topic: &&str| {
        !topic.is_empty()
            && topic.len() <= MAX_TOPIC_BYTES
            && topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
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
