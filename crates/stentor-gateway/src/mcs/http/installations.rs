//! Firebase installations: tokens that prove with which key a program was installed.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use serde::Deserialize;
use serde_json::json;
use stentor_core::id::{AppId, KeyId};

use super::reply::McsReply;
use super::signed::{sign, verify};
use super::{McsRegistrar, app_of};
use crate::gateway::Gateway;

/// Lifetime of an installation's token, as in Firebase.
const AUTH_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Longest id of an installation; Firebase's have 22 letters.
const FID_MAX_BYTES: usize = 64;
/// The scheme with which web clients prefix the token of their installation.
const AUTH_SCHEME: &str = "FIS ";
/// Prefix of an installation's name in the store, which also holds programs.
const STORED_PREFIX: &str = "installation:";
/// Letters of an id beside those of the alphabets of base64.
const FID_EXTRA: &[u8] = b"+/=_-";

/// An installation of a program, as described by its token: its app, and the key that it used. The server stores nothing of it, and accepts
/// it only while its key exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McsInstallation {
    /// The app.
    pub app: AppId,
    /// The key with which it was created.
    pub key: KeyId,
    /// The name chosen by the program; not unique.
    fid: String,
    /// The name assigned by the server.
    drawn: String,
}

impl McsInstallation {
    /// Parses the token of an installation of an app, with or without the scheme of web clients. Returns `None` if it is invalid or
    /// expired.
    #[must_use]
    pub fn read(gateway: &Gateway, token: &str, app: AppId) -> Option<Self> {
        let token = token.trim();
        let token = token.strip_prefix(AUTH_SCHEME).unwrap_or(token).trim();
        let (statement, until) = verify(gateway.key(), "installation", token)?.rsplit_once('.')?;
        let is_valid = gateway.clock().now().as_millis() < until.parse().ok()?;
        Self::parse(statement).filter(|own| is_valid && own.app == app)
    }

    fn parse(statement: &str) -> Option<Self> {
        let parts: Vec<&str> = statement.split('.').collect();
        let [app, key, fid, drawn] = parts[..] else { return None };
        let (fid, drawn) = (fid.to_owned(), drawn.to_owned());
        Some(Self { app: app.parse().ok()?, key: key.parse().ok()?, fid, drawn })
    }

    fn statement(&self) -> String {
        let Self { app, key, fid, drawn } = self;
        format!("{app}.{key}.{fid}.{drawn}")
    }

    fn auth_token(&self, gateway: &Gateway) -> serde_json::Value {
        let until = gateway.clock().now().plus(AUTH_TTL).as_millis();
        let token = sign(gateway.key(), "installation", &format!("{}.{until}", self.statement()));
        json!({"token": token, "expiresIn": format!("{}s", AUTH_TTL.as_secs())})
    }

    /// Returns the name under which the store keeps its registrations.
    pub(super) fn stored_name(&self) -> String {
        format!("{STORED_PREFIX}{}", self.drawn)
    }
}

#[derive(Default, Deserialize)]
struct McsInstallRequest {
    #[serde(default)]
    fid: String,
}

/// Handles `POST /v1/projects/{project}/installations`: `project` is an app's id, `key` the header `x-goog-api-key`.
pub async fn install(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    project: &str,
    key: Option<&str>,
    body: &[u8],
) -> McsReply {
    let (app, key) = match allowed(registrar, project, key).await {
        Ok(allowed) => allowed,
        Err(refusal) => return refusal,
    };
    let Ok(request) = serde_json::from_slice::<McsInstallRequest>(body) else {
        return McsReply::invalid("the body must be a JSON object with a \"fid\"");
    };
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || FID_EXTRA.contains(byte);
    let fits =
        (1..=FID_MAX_BYTES).contains(&request.fid.len()) && request.fid.as_bytes().iter().all(is_letter);
    let fid = if fits { request.fid } else { draw_fid() };
    let own = McsInstallation { app, key, fid: fid.clone(), drawn: draw() };
    McsReply::json(
        200,
        &json!({
            "name": format!("projects/{project}/installations/{fid}"),
            "fid": fid,
            "refreshToken": sign(gateway.key(), "refresh", &own.statement()),
            "authToken": own.auth_token(gateway),
        }),
    )
}

/// Handles `POST /v1/projects/{project}/installations/{fid}/authTokens:generate`: `authorization` is the header of that name, with the
/// refresh token.
pub async fn renew_installation(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    project: &str,
    authorization: Option<&str>,
) -> McsReply {
    let token = authorization.and_then(|header| header.trim().strip_prefix("FIS_v2 "));
    let statement = token.and_then(|token| verify(gateway.key(), "refresh", token.trim()));
    let Some(own) = statement.and_then(McsInstallation::parse) else {
        return McsReply::unauthenticated("the refresh token is not of this server: install again");
    };
    if app_of(project) != Some(own.app) {
        return McsReply::unauthenticated("the refresh token is of another app");
    }
    // Deleting a key revokes all installations created with it.
    match registrar.may_register(own.app, Some(own.key)).await {
        Ok(true) => McsReply::json(200, &own.auth_token(gateway)),
        Ok(false) => McsReply::unauthenticated("the key of this installation is gone: install again"),
        Err(error) => McsReply::store(&error),
    }
}

/// Returns the app of a path and its key, if a program may register with it.
pub(super) async fn allowed(
    registrar: &dyn McsRegistrar,
    project: &str,
    key: Option<&str>,
) -> Result<(AppId, KeyId), McsReply> {
    let app = app_of(project).ok_or_else(|| McsReply::error(404, "NOT_FOUND", "there is no such app"))?;
    // This API has a field for the key, so a missing key is an invalid one.
    match registrar.key_of(app, key.unwrap_or_default()).await {
        Ok(Some(key)) => Ok((app, key)),
        Ok(None) => Err(McsReply::unauthenticated("x-goog-api-key must be a registration key of the app")),
        Err(error) => Err(McsReply::store(&error)),
    }
}

fn draw() -> String {
    let mut bytes = [0_u8; 16];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Generates an id in Firebase's format: 22 letters from 17 bytes that begin with 0111.
fn draw_fid() -> String {
    let mut bytes = [0_u8; 17];
    rand::rng().fill_bytes(&mut bytes);
    bytes[0] = 0b0111_0000 | bytes[0] & 0x0f;
    let mut fid = URL_SAFE_NO_PAD.encode(bytes);
    fid.truncate(22);
    fid
}
