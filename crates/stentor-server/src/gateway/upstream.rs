//! Upstream messages from a device to its app.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stentor_gateway::limits::UPSTREAM_TTL_MAX;
use stentor_gateway::{UpstreamDraft, UpstreamError};

use super::GatewayApi;
use super::device_login::LoggedIn;
use crate::contract::Problem;
use crate::decode::decode;
use crate::face::http::body;
use crate::face::http::refusal::Refusal;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamRequest {
    /// The device's own id of the message; a second request with the same id repeats the message.
    message_id: String,
    data: Map<String, Value>,
    #[serde(default)]
    ttl_seconds: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct UpstreamKept {
    /// True if the message had been received before.
    repeated: bool,
}

/// `POST /gateway/v1/upstream`: a reply of 202 means that the message is on disk.
pub(super) async fn send(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    request: Request,
) -> Result<(StatusCode, Json<UpstreamKept>), Refusal> {
    let bytes = body::read(request, own.api.body_max_bytes()).await?;
    let UpstreamRequest { message_id: key, data, ttl_seconds } = decode(&bytes)?;
    let ttl = ttl_seconds.map_or(UPSTREAM_TTL_MAX, Duration::from_secs);
    let stored = own.gateway.keep_upstream(identity, UpstreamDraft { key, data, ttl }).await;
    let is_new = stored.map_err(|error| match error {
        UpstreamError::Invalid(invalid) => Problem::from(invalid),
        UpstreamError::Store(error) => Problem::from(error),
    })?;
    Ok((StatusCode::ACCEPTED, Json(UpstreamKept { repeated: !is_new })))
}
