use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;
use serde::Deserialize;
use serde_json::json;
use stentor_core::id::AppId;

use super::reply::McsReply;
use super::signed::{sign, verify};
use super::{McsRegistrar, app_of};
use crate::gateway::Gateway;

/// How long an installation's token holds, as Firebase has it.
const AUTH_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Longest id of an installation; Firebase's have 22 letters.
const FID_MAX_BYTES: usize = 64;
/// Letters of an id beside those of the alphabets of base64.
const FID_EXTRA: &[u8] = b"+/=_-";

/// The tokens of an installation, which prove that it was made with an app's key.
pub struct McsInstallationAuth;

impl McsInstallationAuth {
    /// Returns whether a token was given to an installation of an app and still holds.
    #[must_use]
    pub fn is_for(gateway: &Gateway, token: &str, app: AppId) -> bool {
        let Some(statement) = verify(gateway.key(), "installation", token) else { return false };
        let mut parts = statement.split('.');
        let (of, _, until) = (parts.next(), parts.next(), parts.next());
        let until: Option<i64> = until.and_then(|until| until.parse().ok());
        of.and_then(app_of) == Some(app)
            && until.is_some_and(|until| gateway.clock().now().as_millis() < until)
    }

    fn issue(gateway: &Gateway, app: AppId, fid: &str) -> String {
        let until = gateway.clock().now().plus(AUTH_TTL).as_millis();
        sign(gateway.key(), "installation", &format!("{app}.{fid}.{until}"))
    }
}

#[derive(Default, Deserialize)]
struct McsInstallRequest {
    #[serde(default)]
    fid: String,
}

/// Answers `POST /v1/projects/{project}/installations`: `project` is an app's id, `key` the header `x-goog-api-key`.
pub async fn install(
    gateway: &Gateway,
    registrar: &dyn McsRegistrar,
    project: &str,
    key: Option<&str>,
    body: &[u8],
) -> McsReply {
    let app = match allowed(registrar, project, key).await {
        Ok(app) => app,
        Err(refusal) => return refusal,
    };
    let Ok(request) = serde_json::from_slice::<McsInstallRequest>(body) else {
        return McsReply::invalid("the body must be a JSON object with a \"fid\"");
    };
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || FID_EXTRA.contains(byte);
    let fits =
        (1..=FID_MAX_BYTES).contains(&request.fid.len()) && request.fid.as_bytes().iter().all(is_letter);
    let fid = if fits { request.fid } else { draw_fid() };
    let refresh = sign(gateway.key(), "refresh", &format!("{app}.{fid}"));
    McsReply::json(
        200,
        &json!({
            "name": format!("projects/{project}/installations/{fid}"),
            "fid": fid,
            "refreshToken": refresh,
            "authToken": auth_token(gateway, app, &fid),
        }),
    )
}

/// Answers `POST /v1/projects/{project}/installations/{fid}/authTokens:generate`: `authorization` is the header of that name, with
/// the refresh token.
#[must_use]
pub fn renew_installation(gateway: &Gateway, project: &str, authorization: Option<&str>) -> McsReply {
    let token = authorization.and_then(|header| header.trim().strip_prefix("FIS_v2 "));
    let statement = token.and_then(|token| verify(gateway.key(), "refresh", token.trim()));
    let Some((app, fid)) = statement.and_then(|statement| statement.split_once('.')) else {
        return McsReply::unauthenticated("the refresh token is not of this server: install again");
    };
    match app_of(app).filter(|app| app_of(project) == Some(*app)) {
        Some(app) => McsReply::json(200, &auth_token(gateway, app, fid)),
        None => McsReply::unauthenticated("the refresh token is of another app"),
    }
}

/// Returns the app of a path if a program may register for it.
pub(super) async fn allowed(
    registrar: &dyn McsRegistrar,
    project: &str,
    key: Option<&str>,
) -> Result<AppId, McsReply> {
    let app = app_of(project).ok_or_else(|| McsReply::error(404, "NOT_FOUND", "there is no such app"))?;
    // This API has a place for a key, so that none is a wrong one.
    match registrar.may_register(app, Some(key.unwrap_or_default())).await {
        Ok(true) => Ok(app),
        Ok(false) => Err(McsReply::unauthenticated("x-goog-api-key must be a registration key of the app")),
        Err(error) => Err(McsReply::store(&error)),
    }
}

fn auth_token(gateway: &Gateway, app: AppId, fid: &str) -> serde_json::Value {
    let token = McsInstallationAuth::issue(gateway, app, fid);
    json!({"token": token, "expiresIn": format!("{}s", AUTH_TTL.as_secs())})
}

/// Makes an id as Firebase does: 17 bytes that begin with 0111, 22 letters of them.
fn draw_fid() -> String {
    let mut bytes = [0_u8; 17];
    rand::rng().fill_bytes(&mut bytes);
    bytes[0] = 0b0111_0000 | bytes[0] & 0x0f;
    let mut fid = URL_SAFE_NO_PAD.encode(bytes);
    fid.truncate(22);
    fid
}
