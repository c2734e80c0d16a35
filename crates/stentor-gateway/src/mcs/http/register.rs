//! Registrations over GCM's `register3`.

use stentor_core::ports::store::StoreError;

use super::form::McsForm;
use super::installations::McsInstallation;
use super::reply::McsReply;
use super::{McsRegistrar, app_of, web};
use crate::gateway::Gateway;
use crate::mcs::agent::McsAgent;
use crate::mcs::channel::McsChannelName;

/// The form field in which Firebase's SDK for Android sends its installation's token for an app.
const INSTALLATION_AUTH: &str = "X-Goog-Firebase-Installations-Auth";

/// Handles `POST /c2dm/register3`: registers a program for a sender, or removes the registration with `delete=true`. `authorization` is the
/// header of that name.
///
/// A sender is an app's id in decimal, or the key of an application server.
pub async fn register(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    authorization: Option<&str>,
    body: &[u8],
) -> McsReply {
    let Some(agent) = authorization.and_then(|header| McsAgent::authorized(header, gateway.key())) else {
        gateway.counts().note_refused_login();
        return McsReply::text(401, "Error=AUTHENTICATION_FAILED");
    };
    // GCM refuses with status 200 and an error word, which its clients parse.
    let Some(form) = McsForm::read(body) else { return McsReply::text(200, "Error=INVALID_PARAMETERS") };
    let done = match form.get("delete") {
        Some("true" | "1") => unregister(gateway, agent, &form).await,
        _ => enter(gateway, registrar, agent, &form).await,
    };
    done.unwrap_or_else(|error| match error {
        StoreError::NotFound(_) => McsReply::text(200, "Error=INVALID_SENDER"),
        StoreError::LimitReached(_) => McsReply::text(200, "Error=TOO_MANY_REGISTRATIONS"),
        _ => McsReply::text(503, "Error=SERVICE_NOT_AVAILABLE"),
    })
}

async fn enter(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    agent: McsAgent,
    form: &McsForm,
) -> Result<McsReply, StoreError> {
    let (Some(category), Some(sender)) = (form.get("app"), form.get("sender")) else {
        return Ok(McsReply::text(200, "Error=INVALID_PARAMETERS"));
    };
    // Instance ids repeat the sender here, which distinguishes nothing.
    let subtype = form.get("X-subtype").filter(|subtype| *subtype != sender);
    let name = McsChannelName {
        category: category.to_owned(),
        subtype: subtype.map(str::to_owned),
        sender: sender.to_owned(),
        keys: None,
    };
    let app = match app_of(sender) {
        Some(app) => {
            let key = form.get(INSTALLATION_AUTH).or_else(|| form.get("x-goog-firebase-installations-auth"));
            let installation = key.and_then(|key| McsInstallation::read(gateway, key, app));
            if !registrar.may_register(app, installation.map(|own| own.key)).await? {
                return Ok(McsReply::text(200, "Error=INVALID_SENDER"));
            }
            app
        }
        None => match registrar.app_of_server_key(sender).await? {
            Some(app) => app,
            // The key belongs to no app yet; the following registration with an app determines it.
            None => return Ok(provisional(gateway, agent, &name)),
        },
    };
    Ok(match gateway.register_mcs(agent, app, name).await? {
        Some(token) => McsReply::text(200, &format!("token={token}")),
        None => McsReply::text(200, "Error=INVALID_PARAMETERS"),
    })
}

fn provisional(gateway: &Gateway, agent: McsAgent, name: &McsChannelName) -> McsReply {
    match web::provisional_token(gateway, agent, name) {
        Some(token) => McsReply::text(200, &format!("token={token}")),
        None => McsReply::text(200, "Error=INVALID_PARAMETERS"),
    }
}

async fn unregister(gateway: &Gateway, agent: McsAgent, form: &McsForm) -> Result<McsReply, StoreError> {
    let Some(category) = form.get("app") else { return Ok(McsReply::text(200, "Error=INVALID_PARAMETERS")) };
    let (subtype, sender) = (form.get("X-subtype"), form.get("sender").filter(|sender| *sender != "*"));
    gateway
        .unregister_mcs(agent, |channel| {
            let name = &channel.name;
            name.category == category
                && subtype
                    .is_none_or(|subtype| name.subtype.as_deref() == Some(subtype) || subtype == name.sender)
                && sender.is_none_or(|sender| app_of(sender).is_none_or(|app| app == channel.identity.app))
        })
        .await?;
    // Instance id clients delete a token, GCM clients a registration: each expects its own word.
    let word = if form.get("scope").is_some() { "token" } else { "deleted" };
    Ok(McsReply::text(200, &format!("{word}={category}")))
}
