//! Registrations of web clients: a GCM token, and keys for which messages are encrypted.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use stentor_core::id::AppId;
use stentor_core::ports::store::{Channel, ChannelChange, StoreError};

use super::form::McsForm;
use super::installations::{McsInstallation, allowed};
use super::reply::McsReply;
use super::signed::{sign, verify};
use super::{McsRegistrar, app_of};
use crate::device_logins::LoginError;
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::mcs::agent::McsAgent;
use crate::mcs::channel::{McsChannelName, McsWebKeys};
use crate::mcs::data_stanza::unbase64;
use crate::mcs::sealed::seal;

/// The header with the token of a web client's installation.
pub const INSTALLATION_HEADER: &str = "x-goog-firebase-installations-auth";
/// Bytes of a public key on P-256, uncompressed.
const P256DH_BYTES: usize = 65;
/// Bytes of the secret shared by a client and its senders (RFC 8291).
const AUTH_BYTES: usize = 16;

/// Creates the token of a registration without a known app. The token contains the registration, so that nothing is stored. Returns `None`
/// if a part of the registration could not be stored later.
pub(super) fn provisional_token(gateway: &Gateway, agent: McsAgent, name: &McsChannelName) -> Option<String> {
    // Encoded, because a name may hold the separator.
    let statement = format!("{}.{}", agent.android_id(), URL_SAFE_NO_PAD.encode(name.text()?));
    Some(sign(gateway.key(), "provisional", &statement))
}

fn read_provisional(gateway: &Gateway, token: &str) -> Option<(McsAgent, McsChannelName)> {
    let (agent, name) = verify(gateway.key(), "provisional", token)?.split_once('.')?;
    let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
    Some((McsAgent::parse(agent)?, McsChannelName::parse(&name)?))
}

#[derive(Deserialize)]
struct McsWebRequest {
    web: McsWebSubscription,
}

#[derive(Deserialize)]
struct McsWebSubscription {
    endpoint: String,
    #[serde(default)]
    p256dh: String,
    #[serde(default)]
    auth: String,
}

/// The headers by which a web client proves who it is.
#[derive(Debug, Clone, Copy)]
pub struct McsWebCaller<'a> {
    /// The header `x-goog-api-key`.
    pub key: Option<&'a str>,
    /// The header [`INSTALLATION_HEADER`].
    pub installation: Option<&'a str>,
}

/// Handles `POST /v1/projects/{project}/registrations` of FCM, and a `PATCH` of one: `project` is an app's id. The token is an ordinary
/// token of the gateway.
pub async fn register_web(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    project: &str,
    caller: McsWebCaller<'_>,
    body: &[u8],
) -> McsReply {
    let app = match allowed(registrar, project, caller.key).await {
        Ok((app, _)) => app,
        Err(refusal) => return refusal,
    };
    let installation = caller.installation.and_then(|token| McsInstallation::read(gateway, token, app));
    let Ok(McsWebRequest { web }) = serde_json::from_slice::<McsWebRequest>(body) else {
        return McsReply::invalid("the body must be a JSON object with \"web\" and its \"endpoint\"");
    };
    match enter(gateway, app, &web, installation.as_ref()).await {
        Ok(token) => McsReply::json(
            200,
            &json!({
                "name": format!("projects/{project}/registrations/{token}"),
                "token": token,
                "web": {"endpoint": web.endpoint, "p256dh": web.p256dh, "auth": web.auth},
            }),
        ),
        Err(refusal) => refusal,
    }
}

/// Handles `DELETE /v1/projects/{project}/registrations/{token}`. Only the installation that created a registration may end it, because the
/// key is in every copy of the program, and all senders know the token.
pub async fn unregister_web(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    project: &str,
    caller: McsWebCaller<'_>,
    token: &str,
) -> McsReply {
    let app = match allowed(registrar, project, caller.key).await {
        Ok((app, _)) => app,
        Err(refusal) => return refusal,
    };
    let Some(own) = caller.installation.and_then(|token| McsInstallation::read(gateway, token, app)) else {
        let why =
            "x-goog-firebase-installations-auth must be the token of the installation that has registered";
        return McsReply::unauthenticated(why);
    };
    let ended = async {
        let identity = match gateway.holder(token).await {
            Ok(identity) => identity,
            Err(LoginError::Store(error)) => return Err(error),
            Err(LoginError::Refused) => return Err(StoreError::NotFound("registration")),
        };
        let known = gateway.channels(own.stored_name()).await?;
        if !known.iter().any(|one| (one.app, one.device) == (identity.app, identity.device)) {
            return Err(StoreError::NotFound("registration"));
        }
        gateway.withdraw(identity).await
    };
    match ended.await {
        Ok(()) => McsReply::json(200, &json!({})),
        Err(StoreError::NotFound(_)) => McsReply::error(404, "NOT_FOUND", "there is no such registration"),
        Err(error) => McsReply::store(&error),
    }
}

/// Handles `POST /fcm/connect/subscribe`, FCM's former registration of web clients: a form, without a key.
pub async fn subscribe(gateway: &Gateway, registrar: &dyn McsRegistrar, body: &[u8]) -> McsReply {
    let form = McsForm::read(body);
    let field = |name: &str| form.as_ref().and_then(|form| form.get(name));
    let (Some(app), Some(endpoint)) = (field("authorized_entity").and_then(app_of), field("endpoint")) else {
        return McsReply::invalid("give authorized_entity, an app's id in decimal, and endpoint");
    };
    match registrar.may_register(app, None).await {
        Ok(true) => {}
        Ok(false) => return McsReply::unauthenticated("the app is not open for registrations without a key"),
        Err(error) => return McsReply::store(&error),
    }
    let owned = |name: &str| field(name).unwrap_or_default().to_owned();
    let (p256dh, auth) = (owned("encryption_key"), owned("encryption_auth"));
    let web = McsWebSubscription { endpoint: endpoint.to_owned(), p256dh, auth };
    match enter(gateway, app, &web, None).await {
        Ok(token) => McsReply::json(200, &json!({"token": token, "pushSet": ""})),
        Err(refusal) => refusal,
    }
}

async fn enter(
    gateway: &Gateway,
    app: AppId,
    web: &McsWebSubscription,
    installation: Option<&McsInstallation>,
) -> Result<String, McsReply> {
    // The token is the last part of the path; the server in the endpoint is ignored.
    let token = web.endpoint.rsplit('/').next().unwrap_or_default();
    let Some((agent, name)) = read_provisional(gateway, token) else {
        return known(gateway, app, token).await;
    };
    let keys = keys(web)?;
    let sender = app.raw().to_string();
    match gateway.register_mcs(agent, app, McsChannelName { sender, keys, ..name }).await {
        Ok(Some(token)) => match installation {
            Some(own) => note_owner(gateway, own, token).await.map_err(|error| McsReply::store(&error)),
            None => Ok(token),
        },
        Ok(None) => Err(McsReply::invalid("the registration is too long to be kept")),
        Err(error) => Err(McsReply::store(&error)),
    }
}

/// Stores the installation that created a registration; returns the registration's token.
async fn note_owner(gateway: &Gateway, own: &McsInstallation, token: String) -> Result<String, StoreError> {
    match gateway.holder(&token).await {
        Ok(DeviceIdentity { app, device }) => {
            let channel = Channel { name: device.to_string(), app, device };
            gateway.store().change_channel(&own.stored_name(), ChannelChange::Put(channel)).await?;
            Ok(token)
        }
        Err(LoginError::Store(error)) => Err(error),
        Err(LoginError::Refused) => Err(StoreError::NotFound("registration")),
    }
}

/// Returns a token that already belongs to the app.
async fn known(gateway: &Gateway, app: AppId, token: &str) -> Result<String, McsReply> {
    match gateway.holder(token).await {
        Ok(identity) if identity.app == app => Ok(token.to_owned()),
        Err(LoginError::Store(error)) => Err(McsReply::store(&error)),
        Ok(_) | Err(_) => Err(McsReply::invalid("the endpoint does not end with a token of this server")),
    }
}

fn keys(web: &McsWebSubscription) -> Result<Option<McsWebKeys>, McsReply> {
    if web.p256dh.is_empty() && web.auth.is_empty() {
        return Ok(None);
    }
    // An uncompressed point begins with 4 (SEC 1, section 2.3.3).
    let point = unbase64(&web.p256dh).filter(|point| point.len() == P256DH_BYTES && point[0] == 4);
    let auth = unbase64(&web.auth).filter(|auth| auth.len() == AUTH_BYTES);
    let (Some(point), Some(auth)) = (point, auth) else {
        return Err(McsReply::invalid("p256dh must be 65 bytes and auth 16 bytes, as base64url"));
    };
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let keys = McsWebKeys { p256dh: encode(&point), auth: encode(&auth) };
    // A point off the curve has the right form, but no message could be sealed for it.
    match seal(&keys, b"") {
        Some(_) => Ok(Some(keys)),
        None => Err(McsReply::invalid("p256dh is no point of the curve P-256")),
    }
}
