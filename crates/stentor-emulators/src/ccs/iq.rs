//! IQ requests of clients, such as binds and pings. None of them ends the connection.

use super::stanza::{BIND, SESSION, iq_error, iq_result};
use super::xml::{XmppElement, escaped};

const ROSTER: &str = "jabber:iq:roster";
const PING: &str = "urn:xmpp:ping";
const DISCO_INFO: &str = "http://jabber.org/protocol/disco#info";
const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";

const MAX_RESOURCE_BYTES: usize = 1023;

/// The client that sent the request.
pub(super) struct IqAsker<'a> {
    pub(super) sender_id: &'a str,
    pub(super) domain: &'a str,
    /// The resource that it gets when it names none.
    pub(super) resource: &'a str,
}

/// Answers an IQ request. Returns `None` for a stanza that is itself an answer.
pub(super) fn answer(element: &XmppElement, asker: &IqAsker<'_>) -> Option<String> {
    let (id, domain) = (element.attribute("id").unwrap_or_default(), asker.domain);
    // An answer gets no answer (RFC 6120, section 8.2.3).
    if !matches!(element.attribute("type"), Some("get" | "set")) {
        return None;
    }
    let Some(question) = element.children.first() else {
        return Some(iq_error(id, domain, "modify", "bad-request"));
    };
    let result = |content: &str| Some(iq_result(id, domain, content));
    match (question.namespace.as_str(), question.name.as_str()) {
        (BIND, "bind") => result(&bound(question, asker)),
        // Sessions (RFC 3921, section 3) and pings (XEP-0199) want an empty result.
        (SESSION, "session") | (PING, "ping") => result(""),
        (ROSTER | DISCO_ITEMS, "query") => result(&format!("<query xmlns='{}'/>", question.namespace)),
        (DISCO_INFO, "query") => result(&format!(
            "<query xmlns='{DISCO_INFO}'><identity category='server' type='im'/><feature var='{PING}'/></query>"
        )),
        // An unknown request is answered with an error (RFC 6120, section 8.4).
        _ => Some(iq_error(id, domain, "cancel", "service-unavailable")),
    }
}

/// Returns the address that a connection gets.
fn bound(question: &XmppElement, asker: &IqAsker<'_>) -> String {
    let requested = question.child(BIND, "resource").map(|resource| resource.text.trim());
    // A resource has at most 1,023 bytes (RFC 7622, section 3.4): for a longer one the client gets another.
    let resource = requested.filter(|text| !text.is_empty() && text.len() <= MAX_RESOURCE_BYTES);
    let resource = escaped(resource.unwrap_or(asker.resource));
    format!("<bind xmlns='{BIND}'><jid>{}@{}/{resource}</jid></bind>", asker.sender_id, asker.domain)
}
