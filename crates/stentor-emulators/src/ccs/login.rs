//! The login of an app server: SASL PLAIN (RFC 4616) with a sender id and a key.

use super::CcsOptions;
use super::stanza::SASL;
use super::xml::XmppElement;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The maximum length of a sender id.
const MAX_SENDER_ID_BYTES: usize = 64;

/// Returns the sender id of an `<auth>`, or the condition with which it is refused.
pub(super) fn sender_of(element: &XmppElement, options: &CcsOptions) -> Result<String, &'static str> {
    if !element.is(SASL, "auth") || element.attribute("mechanism") != Some("PLAIN") {
        return Err("invalid-mechanism");
    }
    let decoded = STANDARD.decode(element.text.trim()).map_err(|_| "incorrect-encoding")?;
    let decoded = String::from_utf8(decoded).map_err(|_| "incorrect-encoding")?;
    // The first part, the identity to act for, is ignored: a sender acts for itself.
    let mut parts = decoded.split('\0');
    let (Some(_), Some(name), Some(key), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("malformed-request");
    };
    // Some clients send the sender id alone, others with the domain behind it.
    let sender_id = name.split('@').next().unwrap_or_default();
    let is_known = match options.senders.get(sender_id) {
        Some(keys) => keys.iter().any(|known| known == key),
        None => options.senders.is_empty(),
    };
    let is_sane = !sender_id.is_empty()
        && sender_id.len() <= MAX_SENDER_ID_BYTES
        && sender_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    if is_known && is_sane && !key.is_empty() { Ok(sender_id.to_owned()) } else { Err("not-authorized") }
}
