//! A sender's request to send one message: its headers and its body (RFC 8030, 5; RFC 8188; the draft "aesgcm").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use stentor_core::limits::TTL_MAX_SECONDS;
use stentor_core::message::Priority;

use super::refusal::PushRefusal;
use super::vapid::parameter;

/// Largest body (RFC 8030, 7.2 requires at least this size).
pub const PUSH_BODY_MAX_BYTES: usize = 4_096;
/// Longest topic (RFC 8030, 5.4).
const TOPIC_MAX_BYTES: usize = 32;
/// Longest header with encryption parameters.
const CRYPTO_HEADER_MAX_BYTES: usize = 512;
/// Salt, record size and length of the key id, before the key (RFC 8188, 2.1).
const RECORD_HEADER_BYTES: usize = 21;
/// Length of the key id: an uncompressed point of P-256 (RFC 8291, 4).
const KEY_NAME_BYTES: usize = 65;
/// Smallest record: a delimiter and the tag, and one byte more for the size (RFC 8188, 2.1).
const RECORD_MIN_BYTES: u32 = 18;

/// The relevant headers of a request, as texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PushHeaders<'a> {
    /// `TTL`.
    pub ttl: Option<&'a str>,
    /// `Topic`.
    pub topic: Option<&'a str>,
    /// `Urgency`.
    pub urgency: Option<&'a str>,
    /// `Prefer`.
    pub prefer: Option<&'a str>,
    /// `Content-Encoding`.
    pub content_encoding: Option<&'a str>,
    /// `Encryption`, of the draft.
    pub encryption: Option<&'a str>,
    /// `Crypto-Key`, of the draft.
    pub crypto_key: Option<&'a str>,
}

/// A message as requested by its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushDraft {
    /// Time to live in seconds, cut to the maximum.
    pub ttl_seconds: u64,
    /// The collapse key, by which it replaces an earlier message.
    pub collapse_key: Option<String>,
    /// The priority; a high one wakes the device.
    pub priority: Priority,
    /// True if the sender wants a receipt.
    pub wants_receipt: bool,
    /// The fields for the device: `raw` in base64, `encoding`, and for the draft `encryption` and `crypto_key`.
    pub gateway: Map<String, Value>,
}

impl PushDraft {
    /// Parses headers and body.
    pub fn read(headers: &PushHeaders<'_>, body: &[u8]) -> Result<Self, PushRefusal> {
        if body.len() > PUSH_BODY_MAX_BYTES {
            return Err(PushRefusal::TooLarge);
        }
        Ok(Self {
            ttl_seconds: ttl(headers.ttl)?,
            collapse_key: headers.topic.map(topic).transpose()?,
            priority: priority(headers.urgency)?,
            wants_receipt: headers.prefer.is_some_and(is_async),
            gateway: content(headers, body)?,
        })
    }
}

fn ttl(text: Option<&str>) -> Result<u64, PushRefusal> {
    let text =
        text.ok_or(PushRefusal::NoHeader("the header TTL is missing: seconds that the message may wait"))?;
    let text = text.trim();
    // `parse` would also accept a sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(PushRefusal::WrongTtl);
    }
    // The text has only digits, so an overflow exceeds the maximum.
    Ok(text.parse::<u64>().unwrap_or(u64::MAX).min(TTL_MAX_SECONDS))
}

/// Returns the collapse key of a topic, with a prefix that the keys of the app's own messages do not have.
fn topic(text: &str) -> Result<String, PushRefusal> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let fits = (1..=TOPIC_MAX_BYTES).contains(&text.len()) && text.bytes().all(is_letter);
    if fits { Ok(format!("web_push:{text}")) } else { Err(PushRefusal::WrongTopic) }
}

/// Parses the urgency (RFC 8030, 5.3): only `high` is delivered regardless of the battery.
fn priority(text: Option<&str>) -> Result<Priority, PushRefusal> {
    // Words of a grammar are case-insensitive (RFC 5234, 2.3).
    match text.map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        Some("high") => Ok(Priority::High),
        None | Some("very-low" | "low" | "normal") => Ok(Priority::Normal),
        Some(_) => Err(PushRefusal::NoHeader("the header Urgency must be very-low, low, normal or high")),
    }
}

fn is_async(text: &str) -> bool {
    text.split(',').any(|one| one.trim().eq_ignore_ascii_case("respond-async"))
}

fn content(headers: &PushHeaders<'_>, body: &[u8]) -> Result<Map<String, Value>, PushRefusal> {
    let mut fields = Map::from_iter([("raw".to_owned(), Value::from(STANDARD.encode(body)))]);
    if body.is_empty() {
        return Ok(fields);
    }
    // Names of codings are case-insensitive (RFC 9110, 8.4.1).
    match headers.content_encoding.map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        // The app server of a distributor may omit the header, because the body describes itself.
        Some("aes128gcm") | None => {
            check_record(body, headers.content_encoding.is_some())?;
            fields.insert("encoding".to_owned(), "aes128gcm".into());
        }
        Some("aesgcm") => {
            fields.insert("encoding".to_owned(), "aesgcm".into());
            fields.insert("encryption".to_owned(), encryption(headers.encryption)?.into());
            fields.insert("crypto_key".to_owned(), crypto_key(headers.crypto_key)?.into());
        }
        Some(_) => {
            return Err(PushRefusal::WrongCryptoKeys("the content encoding must be aes128gcm or aesgcm"));
        }
    }
    Ok(fields)
}

/// Checks the header of a body in aes128gcm (RFC 8188, 2.1; RFC 8291, 4).
fn check_record(body: &[u8], is_named: bool) -> Result<(), PushRefusal> {
    // The key is followed by at least a record's tag of 16 bytes (RFC 8188, section 2).
    let is_sealed = body.len() > RECORD_HEADER_BYTES + KEY_NAME_BYTES + 16
        && usize::from(body[RECORD_HEADER_BYTES - 1]) == KEY_NAME_BYTES
        && body[RECORD_HEADER_BYTES] == 4;
    let size = body.get(16..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    match (is_sealed && size >= RECORD_MIN_BYTES, is_named) {
        (true, _) => Ok(()),
        (false, true) => Err(PushRefusal::WrongCryptoKeys("the body is not encrypted with aes128gcm")),
        (false, false) => Err(PushRefusal::NoCryptoKeys("the header Content-Encoding is missing")),
    }
}

fn encryption(text: Option<&str>) -> Result<String, PushRefusal> {
    let text = bounded(text.ok_or(PushRefusal::NoCryptoKeys("the header Encryption is missing"))?)?;
    parameter(text, "salt").ok_or(PushRefusal::NoCryptoKeys("the header Encryption lacks salt="))?;
    Ok(plain(text))
}

/// Returns the header without the sender's own key, which is not passed on (RFC 8292, 4.2).
fn crypto_key(text: Option<&str>) -> Result<String, PushRefusal> {
    let text = bounded(text.ok_or(PushRefusal::NoCryptoKeys("the header Crypto-Key is missing"))?)?;
    parameter(text, "dh").ok_or(PushRefusal::NoCryptoKeys("the header Crypto-Key lacks dh="))?;
    let is_passed_on = |pair: &&str| !pair.trim().to_ascii_lowercase().starts_with("p256ecdsa");
    let of_one = |one: &str| one.split(';').map(str::trim).filter(is_passed_on).collect::<Vec<_>>().join(";");
    let parts: Vec<String> = text.split(',').map(of_one).filter(|one| !one.is_empty()).collect();
    Ok(plain(&parts.join(",")))
}

/// Normalizes a header of the draft for devices: without quotation marks, and without padding after a value.
fn plain(header: &str) -> String {
    let unquoted = header.trim().replace('"', "");
    let mut parts = unquoted.split_inclusive([',', ';']);
    let unpadded = parts.by_ref().map(|part| {
        let (value, mark) = match part.char_indices().next_back() {
            Some((at, ',' | ';')) => part.split_at(at),
            _ => (part, ""),
        };
        format!("{}{mark}", value.trim_end().trim_end_matches('='))
    });
    unpadded.collect()
}

fn bounded(text: &str) -> Result<&str, PushRefusal> {
    if text.len() > CRYPTO_HEADER_MAX_BYTES {
        return Err(PushRefusal::WrongCryptoKeys("a header of the encryption is too long"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut body = vec![7; 16];
        body.extend_from_slice(&4_096_u32.to_be_bytes());
        body.push(65);
        body.push(4);
        body.extend_from_slice(&[9; 64 + 22]);
        body
    }

    fn headers() -> PushHeaders<'static> {
        PushHeaders { ttl: Some("60"), content_encoding: Some("aes128gcm"), ..PushHeaders::default() }
    }

    #[test]
    fn a_message_is_read_with_all_that_its_sender_says() {
        let push_headers = PushHeaders {
            topic: Some("score-1_x"),
            urgency: Some("high"),
            prefer: Some("wait=5, respond-async"),
            ..headers()
        };
        let draft = PushDraft::read(&push_headers, &sealed()).expect("read");
        assert_eq!((draft.ttl_seconds, draft.priority, draft.wants_receipt), (60, Priority::High, true));
        assert_eq!(draft.collapse_key.as_deref(), Some("web_push:score-1_x"));
        assert_eq!(draft.gateway["encoding"], "aes128gcm");
        assert_eq!(draft.gateway["raw"], STANDARD.encode(sealed()));
        let quiet = PushDraft::read(&headers(), &sealed()).expect("read");
        assert_eq!(
            (quiet.priority, quiet.wants_receipt, quiet.collapse_key),
            (Priority::Normal, false, None)
        );
    }

    #[test]
    fn how_long_it_may_wait_must_be_said_and_is_cut_to_four_weeks() {
        let of = |ttl| {
            PushDraft::read(&PushHeaders { ttl, ..headers() }, &sealed()).map(|draft| draft.ttl_seconds)
        };
        assert_eq!(of(Some("0")), Ok(0));
        assert_eq!(of(Some("99999999999999999999999")), Ok(TTL_MAX_SECONDS));
        assert_eq!(of(None).map_err(|refusal| refusal.number()), Err(111));
        for wrong in ["", "-1", "1.5", "+1", "soon"] {
            assert_eq!(of(Some(wrong)), Err(PushRefusal::WrongTtl), "{wrong}");
        }
    }

    #[test]
    fn topics_have_a_length_and_an_alphabet() {
        for topic in ["", "a b", "a/b", "é", &"a".repeat(33)] {
            let push_headers = PushHeaders { topic: Some(topic), ..headers() };
            assert_eq!(
                PushDraft::read(&push_headers, &sealed()).err(),
                Some(PushRefusal::WrongTopic),
                "{topic}"
            );
        }
    }

    #[test]
    fn a_body_must_be_sealed_and_have_its_size() {
        let of = |content_encoding, body: &[u8]| {
            let read = PushDraft::read(&PushHeaders { content_encoding, ..headers() }, body);
            read.map(|_| ()).map_err(|refusal| refusal.number())
        };
        assert_eq!(of(Some("aes128gcm"), b"clear text"), Err(110));
        assert_eq!(of(None, b"clear text"), Err(101));
        assert_eq!(of(None, &sealed()), Ok(()));
        assert_eq!(of(Some("gzip"), &sealed()), Err(110));
        assert_eq!(of(Some("aesgcm"), b"x"), Err(101));
        assert_eq!(of(None, b""), Ok(()));
        let mut largest = sealed();
        largest.resize(PUSH_BODY_MAX_BYTES, 1);
        assert_eq!(of(Some("aes128gcm"), &largest), Ok(()));
        largest.push(1);
        assert_eq!(of(Some("aes128gcm"), &largest), Err(104));
    }

    #[test]
    fn the_drafts_headers_are_passed_on_without_the_senders_key() {
        let push_headers = PushHeaders {
            ttl: Some("1"),
            content_encoding: Some("aesgcm"),
            encryption: Some("salt=abc"),
            crypto_key: Some("dh=def;p256ecdsa=ghi, p256ecdsa=jkl"),
            ..PushHeaders::default()
        };
        let draft = PushDraft::read(&push_headers, b"sealed").expect("read");
        assert_eq!(
            (&draft.gateway["encryption"], &draft.gateway["crypto_key"]),
            (&"salt=abc".into(), &"dh=def".into())
        );
    }

    #[test]
    fn words_of_headers_have_no_case() {
        for (encoding, urgency) in [("AES128GCM", "HIGH"), ("Aes128Gcm", "High"), ("aes128gcm", "hIGH")] {
            let push_headers =
                PushHeaders { content_encoding: Some(encoding), urgency: Some(urgency), ..headers() };
            let draft = PushDraft::read(&push_headers, &sealed()).expect("a message");
            assert_eq!((draft.priority, &draft.gateway["encoding"]), (Priority::High, &"aes128gcm".into()));
        }
    }

    #[test]
    fn headers_of_the_draft_reach_devices_without_quotes_and_padding() {
        let push_headers = PushHeaders {
            content_encoding: Some("AESGCM"),
            encryption: Some("keyid=\"http://example.org/bob/keys/123\";salt=\"XZwpw6o37R-6qoZjw6KwAw==\""),
            crypto_key: Some("keyid=p256dh;dh=\"BAA=\", p256ecdsa=BBB"),
            ..headers()
        };
        let gateway = PushDraft::read(&push_headers, b"sealed").expect("a message").gateway;
        assert_eq!(
            gateway["encryption"],
            "keyid=http://example.org/bob/keys/123;salt=XZwpw6o37R-6qoZjw6KwAw"
        );
        assert_eq!(gateway["crypto_key"], "keyid=p256dh;dh=BAA");
    }
}
