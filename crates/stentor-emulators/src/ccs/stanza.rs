//! The stanzas and stream elements written by the server.

use super::xml::escaped;
use serde_json::Value;

/// The namespace of stanzas (RFC 6120).
pub(super) const CLIENT: &str = "jabber:client";
/// The namespace of the root (RFC 6120).
pub(super) const STREAMS: &str = "http://etherx.jabber.org/streams";
/// The namespace of SASL (RFC 6120, section 6).
pub(super) const SASL: &str = "urn:ietf:params:xml:ns:xmpp-sasl";
/// The namespace of binding a resource (RFC 6120, section 7).
pub(super) const BIND: &str = "urn:ietf:params:xml:ns:xmpp-bind";
/// The namespace of sessions (RFC 3921, section 3), which clients of the time request.
pub(super) const SESSION: &str = "urn:ietf:params:xml:ns:xmpp-session";
/// The namespace of GCM's payload.
pub(super) const GCM: &str = "google:mobile:data";
/// The namespace of errors in stanzas (RFC 6120, section 8.3).
const STANZAS: &str = "urn:ietf:params:xml:ns:xmpp-stanzas";

/// The mechanisms that the service offered; app servers use PLAIN.
const MECHANISMS: &[&str] = &["X-OAUTH2", "X-GOOGLE-TOKEN", "PLAIN"];

/// Returns the root's start.
pub(super) fn opening(domain: &str, id: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='UTF-8'?><stream:stream xmlns='{CLIENT}' xmlns:stream='{STREAMS}' \
         from='{domain}' id='{id}' version='1.0' xml:lang='en'>"
    )
}

/// Returns the root's end.
pub(super) fn closing() -> &'static str {
    "</stream:stream>"
}

/// Returns the stream features offered before the login.
pub(super) fn login_features() -> String {
    let mechanisms: String =
        MECHANISMS.iter().map(|mechanism| format!("<mechanism>{mechanism}</mechanism>")).collect();
    format!("<stream:features><mechanisms xmlns='{SASL}'>{mechanisms}</mechanisms></stream:features>")
}

/// Returns the stream features offered after the login.
pub(super) fn features() -> String {
    format!("<stream:features><bind xmlns='{BIND}'/><session xmlns='{SESSION}'/></stream:features>")
}

/// Returns the element for a successful login.
pub(super) fn success() -> String {
    format!("<success xmlns='{SASL}'/>")
}

/// Returns the element for a failed login, with a condition of RFC 6120, section 6.5.
pub(super) fn failure(condition: &str) -> String {
    format!("<failure xmlns='{SASL}'><{condition}/></failure>")
}

/// Returns a stream error with a condition of RFC 6120, section 4.9.3.
pub(super) fn stream_error(condition: &str) -> String {
    format!("<stream:error><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>")
}

/// Returns the result of an IQ request.
pub(super) fn iq_result(id: &str, from: &str, content: &str) -> String {
    format!("<iq type='result' id='{}' from='{from}'>{content}</iq>", escaped(id))
}

/// Returns the error for an IQ request that cannot be served.
pub(super) fn iq_error(id: &str, from: &str, kind: &str, condition: &str) -> String {
    let error = format!("<error type='{kind}'><{condition} xmlns='{STANZAS}'/></error>");
    format!("<iq type='error' id='{}' from='{from}'>{error}</iq>", escaped(id))
}

/// Returns a message that carries JSON. Its id is never empty, because libraries reject an empty one.
pub(super) fn message(id: &str, json: &Value) -> String {
    let json = writable(&json.to_string());
    format!("<message id='{}'><gcm xmlns='{GCM}'>{}</gcm></message>", escaped(id), escaped(&json))
}

/// Builds the error for an unreadable message, with its original text.
pub(super) fn message_error(id: Option<&str>, to: &str, json: &str, sentence: &str) -> String {
    let id = id.filter(|id| !id.is_empty()).map(|id| format!(" id='{}'", escaped(id))).unwrap_or_default();
    format!(
        "<message{id} type='error' to='{}'><gcm xmlns='{GCM}'>{}</gcm><error code='400' type='modify'>\
         <bad-request xmlns='{STANZAS}'/><text xmlns='{STANZAS}'>{}</text></error></message>",
        escaped(to),
        escaped(json),
        escaped(sentence)
    )
}

/// Writes the two letters that XML does not take as JSON does.
fn writable(json: &str) -> String {
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}
