//! The login of an app server: SASL PLAIN (RFC 4616) with an app's number and a key of the app.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use stentor_core::id::AppId;
use tokio::io::{AsyncRead, AsyncWrite};

use super::element::CcsElement;
use super::reader::XmppEvent;
use super::stream::{CcsEnd, XmppStream};
use super::{CcsAppSession, CcsLoginError, CcsPort};
use crate::limits::CCS_LOGIN_ATTEMPTS_MAX_COUNT;

const SASL: &str = "urn:ietf:params:xml:ns:xmpp-sasl";
const MECHANISMS: &str = "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>X-OAUTH2</mechanism>\
    <mechanism>X-GOOGLE-TOKEN</mechanism><mechanism>PLAIN</mechanism></mechanisms>";
const AFTER_LOGIN: &str = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\
    <session xmlns='urn:ietf:params:xml:ns:xmpp-session'/>";
/// Domains of the older generation and of the newer one.
const GCM_DOMAIN: &str = "gcm.googleapis.com";
const FCM_DOMAIN: &str = "fcm.googleapis.com";

/// The generation of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CcsEra {
    Gcm,
    Fcm,
}

impl CcsEra {
    /// Derives the generation from the client's name for the server. Other names mean the older one.
    fn of(name: &str) -> Self {
        if name.starts_with("fcm") { Self::Fcm } else { Self::Gcm }
    }

    pub(super) const fn domain(self) -> &'static str {
        match self {
            Self::Gcm => GCM_DOMAIN,
            Self::Fcm => FCM_DOMAIN,
        }
    }
}

/// An app server that has logged in.
pub(super) struct CcsLogin {
    pub(super) session: Arc<dyn CcsAppSession>,
    /// The name under which it logged in, without a domain.
    pub(super) user: String,
    pub(super) generation: CcsEra,
}

/// A name and a password from SASL PLAIN.
#[derive(Debug)]
pub(super) struct PlainCredentials {
    user: String,
    domain: String,
    password: SecretString,
}

/// Logs an app server in and restarts its stream.
pub(super) async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut XmppStream<S>,
    port: &dyn CcsPort,
) -> Result<CcsLogin, CcsEnd> {
    let called = opened(stream).await?;
    let mut generation = CcsEra::of(&called);
    stream.open(generation.domain(), MECHANISMS).await?;
    // Some attempts are allowed before the stream ends (RFC 6120, section 6.4.5).
    for _ in 0..CCS_LOGIN_ATTEMPTS_MAX_COUNT {
        let credentials = match stanza(stream).await.map(|stanza| plain(&stanza))? {
            Ok(credentials) => credentials,
            Err(condition) => {
                refuse(stream, condition).await?;
                continue;
            }
        };
        if !credentials.domain.is_empty() {
            // The domain in the login is more reliable than the stream's, which may be anything.
            generation = CcsEra::of(&credentials.domain);
        }
        match session(port, &credentials).await {
            Ok(session) => {
                stream.write(&format!("<success xmlns='{SASL}'/>")).await?;
                // After a login both sides start a new stream (RFC 6120, section 6.4.6).
                stream.restart();
                opened(stream).await?;
                stream.open(generation.domain(), AFTER_LOGIN).await?;
                return Ok(CcsLogin { session, user: credentials.user, generation });
            }
            Err(CcsLoginError::Refused) => refuse(stream, "not-authorized").await?,
            Err(CcsLoginError::Unavailable) => refuse(stream, "temporary-auth-failure").await?,
        }
    }
    Err(CcsEnd::Refused("policy-violation"))
}

async fn session(
    port: &dyn CcsPort,
    credentials: &PlainCredentials,
) -> Result<Arc<dyn CcsAppSession>, CcsLoginError> {
    let app = app_of(&credentials.user).ok_or(CcsLoginError::Refused)?;
    port.log_in(app, &credentials.password).await
}

/// Waits for the peer's stream; returns its name for this server, which may be anything.
async fn opened<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut XmppStream<S>) -> Result<String, CcsEnd> {
    match stream.next().await? {
        XmppEvent::Opened(element) if element.name == "stream" => Ok(element.attribute("to").to_owned()),
        _ => Err(CcsEnd::Refused("invalid-namespace")),
    }
}

async fn stanza<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut XmppStream<S>) -> Result<CcsElement, CcsEnd> {
    match stream.next().await? {
        XmppEvent::Stanza(stanza) => Ok(stanza),
        XmppEvent::Opened(_) | XmppEvent::Closed => Err(CcsEnd::Gone),
    }
}

async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut XmppStream<S>,
    condition: &str,
) -> Result<(), CcsEnd> {
    stream.write(&format!("<failure xmlns='{SASL}'><{condition}/></failure>")).await
}

/// Reads a login; the error is a condition of SASL (RFC 6120, 6.5).
pub(super) fn plain(stanza: &CcsElement) -> Result<PlainCredentials, &'static str> {
    if stanza.name != "auth" || stanza.namespace != SASL {
        return Err("not-authorized");
    }
    if stanza.attribute("mechanism") != "PLAIN" {
        return Err("invalid-mechanism");
    }
    let bytes = STANDARD.decode(stanza.text.trim()).map_err(|_| "incorrect-encoding")?;
    let text = String::from_utf8(bytes).map_err(|_| "malformed-request")?;
    // The first part is the authorization identity. An app server always acts for itself (RFC 4616, section 2).
    let mut parts = text.splitn(3, '\0').skip(1);
    let (Some(name), Some(password)) = (parts.next(), parts.next()) else { return Err("malformed-request") };
    // Smack writes the name with its domain, slixmpp without.
    let (user, domain) = name.split_once('@').unwrap_or((name, ""));
    Ok(PlainCredentials {
        user: user.to_owned(),
        domain: domain.to_owned(),
        password: password.to_owned().into(),
    })
}

/// Reads an app's id, or its number as a sender id.
fn app_of(user: &str) -> Option<AppId> {
    user.parse().ok().or_else(|| {
        let raw = user.parse::<u64>().ok()?;
        (raw <= i64::MAX.cast_unsigned()).then(|| AppId::from_raw(raw))
    })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn auth(mechanism: &str, text: &str) -> CcsElement {
        CcsElement {
            name: "auth".to_owned(),
            namespace: SASL.to_owned(),
            attributes: vec![("mechanism".to_owned(), mechanism.to_owned())],
            text: STANDARD.encode(text),
            children: Vec::new(),
        }
    }

    #[test]
    fn a_name_comes_with_a_domain_or_without() {
        for (name, domain) in [("7", ""), ("7@gcm.googleapis.com", "gcm.googleapis.com")] {
            let read = plain(&auth("PLAIN", &format!("\0{name}\0sk_x\0y"))).expect("credentials");
            assert_eq!((read.user.as_str(), read.domain.as_str()), ("7", domain));
            assert_eq!(read.password.expose_secret(), "sk_x\0y");
        }
        assert_eq!(plain(&auth("X-OAUTH2", "\0a\0b")).expect_err("a refusal"), "invalid-mechanism");
        assert_eq!(plain(&auth("PLAIN", "a")).expect_err("a refusal"), "malformed-request");
    }

    #[test]
    fn an_app_is_named_by_its_id_or_its_number() {
        let app = AppId::from_raw(123_456);
        assert_eq!((app_of("123456"), app_of(&app.to_string())), (Some(app), Some(app)));
        assert_eq!((app_of("18446744073709551615"), app_of("x"), app_of("")), (None, None, None));
    }
}
