//! The parts of a request that a sink understands, and its few responses.

use crate::json::JsonNode;
use crate::observer::token_hash;

/// The starts of FCM messages that begin with the address of a device.
const TOKEN_FIRST: &[u8] = br#"{"message":{"token":""#;
const FID_FIRST: &[u8] = br#"{"message":{"fid":""#;
pub(super) const APNS_PATH: &[u8] = b"/3/device/";
const PROJECTS_PATH: &[u8] = b"/v1/projects/";
const SEND_SUFFIX: &[u8] = b"/messages:send";
const TOKEN_PATHS: &[&[u8]] = &[b"/token", b"/oauth2/v4/token", b"/oauth2/v3/token", b"/o/oauth2/token"];

/// The response to every request for an access token.
pub(super) const GRANT: &[u8] =
    br#"{"access_token":"ya29.stentor-sink","expires_in":3599,"token_type":"Bearer"}"#;
/// The answer to an FCM request in which no token, topic or condition can be found.
pub(super) const NO_TARGET: &[u8] =
    br#"{"error":{"code":400,"message":"a message with a target is missing","status":"INVALID_ARGUMENT"}}"#;

/// The route of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Route {
    /// A push to this device, by the hash of its token.
    Apns { token_hash: u64 },
    /// A message, with its token in the body.
    Fcm,
    /// An access token.
    Grant,
    /// Anything else, which is answered 200 as well.
    #[default]
    Other,
}

impl Route {
    /// Routes a path. A project's name is copied into the given buffer.
    pub(super) fn of(path: &[u8], project: &mut Vec<u8>) -> Self {
        if let Some(token) = path.strip_prefix(APNS_PATH) {
            return Self::Apns { token_hash: apns_hash(token) };
        }
        let rest = path.strip_prefix(PROJECTS_PATH).and_then(|rest| rest.strip_suffix(SEND_SUFFIX));
        if let Some(name) = rest {
            project.clear();
            // A name that JSON would have to escape is not echoed.
            let plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-:._".contains(byte));
            project.extend_from_slice(if plain { name } else { b"sink" });
            return Self::Fcm;
        }
        if TOKEN_PATHS.contains(&path) { Self::Grant } else { Self::Other }
    }
}

/// Hashes a device token in lower case.
fn apns_hash(token: &[u8]) -> u64 {
    let upper = token.iter().fold(false, |upper, byte| upper | byte.is_ascii_uppercase());
    if upper { token_hash(&token.to_ascii_lowercase()) } else { token_hash(token) }
}

/// The target of an FCM message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkTarget {
    /// A device, by the hash of its token.
    Device(u64),
    /// Something that is not counted.
    Uncounted,
    /// No target: the body is not a message.
    Nobody,
}

impl SinkTarget {
    /// Finds the target in a body.
    ///
    /// A token or an installation id that comes first and has no escapes is taken without parsing the rest, because a sink must be fast.
    /// Every other body is parsed, and of equal names the last one counts.
    pub(super) fn of(body: &[u8]) -> Self {
        first_address(body).map_or_else(|| Self::parse(body), |address| Self::Device(token_hash(address)))
    }

    fn parse(body: &[u8]) -> Self {
        let root = JsonNode::parse(body);
        let Some(message) = root.as_ref().and_then(|root| root.field("message")) else { return Self::Nobody };
        let text = |name: &str| message.field(name).and_then(JsonNode::text);
        if let Some(token) = text("token").or_else(|| text("fid")) {
            return Self::Device(token_hash(token.as_bytes()));
        }
        let other = text("topic").or_else(|| text("condition"));
        if other.is_some() { Self::Uncounted } else { Self::Nobody }
    }
}

fn first_address(body: &[u8]) -> Option<&[u8]> {
    let rest = body.strip_prefix(TOKEN_FIRST).or_else(|| body.strip_prefix(FID_FIRST))?;
    let end = plain_bytes(rest);
    (rest.get(end) == Some(&b'"') && end > 0).then(|| &rest[..end])
}

/// Counts the bytes before the first one that ends or escapes a text, or is not ASCII.
///
/// The loop examines 16 bytes together, without a branch for each, so that the compiler can use wide registers.
fn plain_bytes(text: &[u8]) -> usize {
    let ends = |byte: u8| (byte == b'"') | (byte == b'\\') | !(0x20..0x80).contains(&byte);
    let is_plain = |chunk: &&[u8; 16]| chunk.map(|byte| u8::from(ends(byte))) == [0; 16];
    let plain = 16 * text.as_chunks().0.iter().take_while(is_plain).count();
    plain + text[plain..].iter().take_while(|byte| !ends(**byte)).count()
}

/// Writes the answer to an FCM message.
pub(super) fn write_message_name(body: &mut Vec<u8>, project: &[u8], id: u64) {
    body.extend_from_slice(br#"{"name":"projects/"#);
    body.extend_from_slice(project);
    body.extend_from_slice(b"/messages/0:");
    body.extend_from_slice(&hex(id));
    body.extend_from_slice(br#""}"#);
}

/// Builds an `apns-id` from two numbers.
pub(super) fn apns_id(high: u64, low: u64) -> [u8; 36] {
    let (high, low) = (hex(high), hex(low));
    let mut id = [b'-'; 36];
    id[..8].copy_from_slice(&high[..8]);
    id[9..13].copy_from_slice(&high[8..12]);
    id[14..18].copy_from_slice(&high[12..]);
    id[19..23].copy_from_slice(&low[..4]);
    id[24..].copy_from_slice(&low[4..]);
    id
}

fn hex(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = b"0123456789ABCDEF"[usize::from(byte >> 4)];
        pair[1] = b"0123456789ABCDEF"[usize::from(byte & 15)];
    }
    digits
}
