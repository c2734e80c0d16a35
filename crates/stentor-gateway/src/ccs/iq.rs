//! What clients ask beside messages (RFC 6120, 8.2.3): they give up where nothing answers.

use super::element::{CcsElement, escaped};

const BIND: &str = "urn:ietf:params:xml:ns:xmpp-bind";
const SESSION: &str = "urn:ietf:params:xml:ns:xmpp-session";
const PING: &str = "urn:xmpp:ping";
const ROSTER: &str = "jabber:iq:roster";
const DISCO_INFO: &str = "http://jabber.org/protocol/disco#info";
const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";

/// What a question is, as far as the connection must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IqKind {
    /// The client wants its address.
    Bind,
    /// The client has its address and goes on.
    Session,
    /// Anything else.
    Other,
}

/// Returns what a question is, and the answer to it; none where an answer was answered. `user` is the client's address without
/// its resource.
pub(super) fn answer(iq: &CcsElement, user: &str) -> (IqKind, Option<String>) {
    let id = escaped(iq.attribute("id"));
    if !["get", "set"].contains(&iq.attribute("type")) {
        return (IqKind::Other, None);
    }
    // Clients take an answer from whom they have asked only.
    let from = from(iq);
    let result = |inside: &str| Some(format!("<iq type='result' id='{id}'{from}>{inside}</iq>"));
    let query = iq.children.first();
    match query.map_or("", |query| query.namespace.as_str()) {
        BIND => {
            let resource =
                query.and_then(|query| query.child("resource", BIND)).map(|child| child.text.trim());
            let resource = resource.filter(|text| !text.is_empty()).map(escaped);
            let resource = resource.unwrap_or_else(|| format!("{:016x}", rand::random::<u64>()));
            let user = escaped(user);
            (IqKind::Bind, result(&format!("<bind xmlns='{BIND}'><jid>{user}/{resource}</jid></bind>")))
        }
        SESSION => (IqKind::Session, result("")),
        PING => (IqKind::Other, result("")),
        ROSTER => (IqKind::Other, result(&format!("<query xmlns='{ROSTER}'/>"))),
        DISCO_ITEMS => (IqKind::Other, result(&format!("<query xmlns='{DISCO_ITEMS}'/>"))),
        DISCO_INFO => (IqKind::Other, result(&features())),
        _ => (IqKind::Other, Some(unknown(&id, &from))),
    }
}

/// Returns whom a question was for as an attribute of the answer; nothing where it named nobody.
fn from(iq: &CcsElement) -> String {
    match iq.attribute("to") {
        "" => String::new(),
        to => format!(" from='{}'", escaped(to)),
    }
}

fn features() -> String {
    format!(
        "<query xmlns='{DISCO_INFO}'><identity category='server' type='im' name='Stentor'/>\
         <feature var='{DISCO_INFO}'/><feature var='{PING}'/></query>"
    )
}

fn unknown(id: &str, from: &str) -> String {
    format!(
        "<iq type='error' id='{id}'{from}><error type='cancel'>\
         <service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    )
}
