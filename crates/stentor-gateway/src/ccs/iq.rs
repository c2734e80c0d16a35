//! Requests of clients beside messages (RFC 6120, 8.2.3). Clients give up if they get no reply.

use super::element::{CcsElement, escaped};

const BIND: &str = "urn:ietf:params:xml:ns:xmpp-bind";
const SESSION: &str = "urn:ietf:params:xml:ns:xmpp-session";
const PING: &str = "urn:xmpp:ping";
const ROSTER: &str = "jabber:iq:roster";
const DISCO_INFO: &str = "http://jabber.org/protocol/disco#info";
const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";

/// The kind of a request, as far as the connection distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IqKind {
    /// Binds a resource: the client requests its address.
    Bind,
    /// Opens the session of a client that has its address.
    Session,
    /// Anything else.
    Other,
}

/// Returns the kind of a request and its reply; `None` if the stanza is itself a reply. `user` is the client's address without its
/// resource.
pub(super) fn answer(iq: &CcsElement, user: &str) -> (IqKind, Option<String>) {
    let id = escaped(iq.attribute("id"));
    if !["get", "set"].contains(&iq.attribute("type")) {
        return (IqKind::Other, None);
    }
    // Clients accept a reply only from the address of their request.
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

/// Returns the addressee of a request as the `from` attribute of the reply; empty if the request has none.
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
