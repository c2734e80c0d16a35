//! A device registers itself, and changes what is known of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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

/// Registrations that one app takes in a burst, and a second after that: a key that got about fills no store.
const JOIN_BURST_MAX_COUNT: f64 = 1_000.0;
const JOIN_PER_SECOND: f64 = 100.0;
/// Apps of which it is remembered how many registered lately.
const JOIN_APPS_MAX_COUNT: usize = 10_000;

/// Bounds how fast devices of an app register.
#[derive(Default)]
pub(super) struct JoinLimiter(Mutex<HashMap<AppId, (Instant, f64)>>);

impl JoinLimiter {
    pub(super) fn take(&self, app: AppId) -> ServiceResult<()> {
        let mut levels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() > JOIN_APPS_MAX_COUNT {
            levels.clear();
        }
        let now = Instant::now();
        let (since, left) = levels.entry(app).or_insert((now, JOIN_BURST_MAX_COUNT));
        let filled = now.duration_since(*since).as_secs_f64().mul_add(JOIN_PER_SECOND, *left);
        (*since, *left) = (now, filled.min(JOIN_BURST_MAX_COUNT));
        if *left < 1.0 {
            return Err(Problem::new(
                ErrorCode::RateLimited,
                "too many devices of this app register at once",
            ));
        }
        *left -= 1.0;
        Ok(())
    }
}

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
    own.join_limiter.take(caller.app())?;
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
