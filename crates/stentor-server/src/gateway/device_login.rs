//! The authentication of a device: `Authorization: Basic` with its token as the name and its secret as the password.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use stentor_gateway::{DeviceIdentity, LoginError};

use super::GatewayApi;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::RequestPermit;
use crate::face::http::headers::header_text;
use crate::face::http::refusal::Refusal;
use crate::owner::Owner;

/// An authenticated device.
pub(crate) struct LoggedIn(pub(crate) DeviceIdentity);

impl FromRequestParts<GatewayApi> for LoggedIn {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &GatewayApi) -> Result<Self, Refusal> {
        let (token, secret) = token_and_secret(&parts.headers)?;
        let identity = state.gateway.login(&token, &secret).await.map_err(refused)?;
        // Before the first byte of the body: the memory is charged to the device's own part of its app's share.
        RequestPermit::of(&parts.extensions)?.own(Owner::Device(identity.app, identity.device))?;
        Ok(Self(identity))
    }
}

/// Returns the refusal of a login.
pub(crate) fn refused(error: LoginError) -> Problem {
    match error {
        LoginError::Refused => Problem::new(ErrorCode::Unauthorized, error.to_string()),
        LoginError::Store(cause) => cause.into(),
    }
}

fn token_and_secret(headers: &HeaderMap) -> ServiceResult<(String, String)> {
    let text = header_text(headers, "authorization")?.unwrap_or_default();
    let basic = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let decoded = basic.and_then(|(_, encoded)| BASE64_STANDARD.decode(encoded.trim()).ok());
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let wrong = || {
        let detail = "send the device's token and secret as name and password: `curl -u \"$TOKEN:$SECRET\"`";
        Problem::new(ErrorCode::Unauthorized, detail)
    };
    let (token, secret) = decoded.as_deref().and_then(|text| text.split_once(':')).ok_or_else(wrong)?;
    Ok((token.to_owned(), secret.to_owned()))
}
