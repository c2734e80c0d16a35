//! A device registers itself, and changes what is known of it.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use stentor_core::app::Scope;
use stentor_core::device::Platform;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{ExternalId, Locale, Tag, TimeZoneName, TopicName};
use stentor_gateway::{DeviceCredentials, DeviceDetails};

use super::GatewayApi;
use super::device_login::LoggedIn;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::decode::decode;
use crate::face::http::auth::{Heard, heard};
use crate::face::http::body;
use crate::face::http::origin::origin_of;
use crate::face::http::refusal::Refusal;

/// What a device tells of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinRequest {
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    user: Option<ExternalId>,
    #[serde(default)]
    locale: Option<Locale>,
    #[serde(default)]
    time_zone: Option<TimeZoneName>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    topics: Vec<TopicName>,
}

/// What a device proves itself with from now on. The secret is shown this once.
#[derive(Serialize)]
pub(super) struct JoinedView {
    device: DeviceId,
    token: String,
    secret: String,
}

impl JoinedView {
    fn new(device: DeviceId, credentials: &DeviceCredentials) -> Self {
        let token = credentials.token.expose().to_owned();
        Self { device, token, secret: credentials.secret.expose_secret().to_owned() }
    }
}

pub(super) async fn register(
    State(own): State<GatewayApi>,
    request: Request,
) -> Result<(StatusCode, Json<JoinedView>), Refusal> {
    let (parts, body) = request.into_parts();
    let Heard { caller, .. } = heard(&parts, &own.api, None).await?;
    caller.require_any(&[Scope::Join, Scope::Register])?;
    own.join_limiter
        .take(caller.app())
        .map_err(|_| Problem::new(ErrorCode::RateLimited, "too many devices of this app register at once"))?;
    own.api.service().open_gateway(caller, origin_of(&parts, &own.api)).await?;
    let bytes = body::read(Request::from_parts(parts, body), &own.api, own.api.body_max_bytes()).await?;
    let JoinRequest { platform, user, locale, time_zone, tags, topics } = decode(&bytes)?;
    let platform = platform.unwrap_or(Platform::Linux);
    let details = DeviceDetails { platform, user, locale, time_zone, tags, topics };
    let joined = own.gateway.register_device(caller.app(), details).await.map_err(Problem::from)?;
    let (identity, credentials) = joined;
    Ok((StatusCode::CREATED, Json(JoinedView::new(identity.device, &credentials))))
}

/// A device as it sees itself.
#[derive(Serialize)]
pub(super) struct SelfView {
    device: DeviceId,
    app: AppId,
    topics: Vec<TopicName>,
}

pub(super) async fn show(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
) -> Result<Json<SelfView>, Refusal> {
    let topics = own.gateway.store().topics_of(identity.app, identity.device).await.map_err(Problem::from)?;
    Ok(Json(SelfView { device: identity.device, app: identity.app, topics }))
}

pub(super) async fn rotate(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
) -> Result<Json<JoinedView>, Refusal> {
    let credentials = own.gateway.rotate(identity).await.map_err(Problem::from)?;
    Ok(Json(JoinedView::new(identity.device, &credentials)))
}

pub(super) async fn withdraw(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
) -> Result<StatusCode, Refusal> {
    own.gateway.withdraw(identity).await.map_err(Problem::from)?;
    Ok(StatusCode::NO_CONTENT)
}

fn topic_named(name: String) -> ServiceResult<TopicName> {
    TopicName::new(name).map_err(Problem::from)
}

pub(super) async fn subscribe(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Path(topic): Path<String>,
) -> Result<StatusCode, Refusal> {
    let store = own.gateway.store();
    let topic = topic_named(topic)?;
    store.subscribe(identity.app, &topic, &[identity.device]).await.map_err(Problem::from)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn unsubscribe(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Path(topic): Path<String>,
) -> Result<StatusCode, Refusal> {
    let topic = topic_named(topic)?;
    let done = own.gateway.store().unsubscribe(identity.app, &topic, &[identity.device]).await;
    done.map_err(Problem::from)?;
    Ok(StatusCode::NO_CONTENT)
}
