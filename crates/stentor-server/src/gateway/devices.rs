//! Requests of a device about itself: registration, credentials, keys and topics.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use stentor_core::device::{DeviceFacts, Platform};
use stentor_core::device_texts;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{ExternalId, Tag, TopicName};
use stentor_core::ports::store::StoreError;
use stentor_gateway::DeviceCredentials;
use stentor_wire::web_push::{PushKeys, seal};

use super::GatewayApi;
use super::device_login::LoggedIn;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::decode::decode;
use crate::face::http::auth::{AuthenticatedCaller, authenticated_caller};
use crate::face::http::body;
use crate::face::http::origin::origin_of;
use crate::face::http::refusal::Refusal;
use crate::service::DeviceClaims;

macro_rules! declare_join_request {
    ($(#[doc = $about:literal] $name:ident: $type:ty, $new:literal, $help:literal;)*) => {
        /// The registration request of a device.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct JoinRequest {
            #[serde(default)]
            platform: Option<Platform>,
            #[serde(default)]
            user: Option<ExternalId>,
            $(#[serde(default)] $name: Option<$type>,)*
            #[serde(default)]
            tags: Vec<Tag>,
            #[serde(default)]
            topics: Vec<TopicName>,
            /// The proof signed for it by the app's backend.
            #[serde(default)]
            proof: Option<String>,
        }

        impl JoinRequest {
            fn take_facts(&mut self) -> DeviceFacts {
                let (user, tags) = (self.user.take(), std::mem::take(&mut self.tags));
                DeviceFacts { user, $($name: self.$name.take(),)* tags }
            }
        }
    };
}
device_texts!(declare_join_request);

/// The new credentials of a device. The secret is shown only once.
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
    let AuthenticatedCaller { caller, .. } = authenticated_caller(&parts, &own.api, None).await?;
    own.api.service().admit_device(caller, origin_of(&parts, &own.api)).await?;
    let bytes = body::read(Request::from_parts(parts, body), own.api.body_max_bytes()).await?;
    let mut request = decode::<JoinRequest>(&bytes)?;
    let facts = request.take_facts();
    let JoinRequest { platform, topics, proof, .. } = request;
    let platform = platform.unwrap_or(Platform::Linux);
    let claimed = DeviceClaims { user: facts.user, tags: facts.tags, topics };
    let proven = own.api.service().proven_claims(caller, claimed, proof.as_deref()).await?;
    let DeviceClaims { user, tags, topics } = proven;
    let facts = DeviceFacts { user, tags, ..facts };
    let joined = own.gateway.register_device(caller.app(), platform, facts, topics).await;
    let joined = joined.map_err(Problem::from)?;
    let (identity, credentials) = joined;
    Ok((StatusCode::CREATED, Json(JoinedView::new(identity.device, &credentials))))
}

/// A device as it sees itself.
#[derive(Serialize)]
pub(super) struct SelfView {
    device: DeviceId,
    app: AppId,
    topics: Vec<TopicName>,
    /// The public key for which its messages are sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    p256dh: Option<String>,
}

pub(super) async fn show(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
) -> Result<Json<SelfView>, Refusal> {
    let topics = own.gateway.store().topics_of(identity.app, identity.device).await.map_err(Problem::from)?;
    let keys = own.gateway.device_keys(identity).await.map_err(Problem::from)?;
    let p256dh = keys.map(|keys| keys.texts().0);
    Ok(Json(SelfView { device: identity.device, app: identity.app, topics, p256dh }))
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

/// The keys with which messages for a device are sealed (RFC 8291), in base64url.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysRequest {
    p256dh: String,
    auth: String,
}

impl KeysRequest {
    fn keys(&self) -> ServiceResult<PushKeys> {
        let keys = PushKeys::read(&self.p256dh, &self.auth).ok_or_else(|| {
            Problem::field("p256dh", "65 bytes of a point of P-256, and `auth` 16 bytes, in base64url")
        })?;
        // A point off the curve has the right form, but nothing could be sealed for it.
        let sealed = seal(b"", &keys);
        sealed.map_err(|_| Problem::field("p256dh", "it is no point of the curve P-256"))?;
        Ok(keys)
    }
}

pub(super) async fn put_keys(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let bytes = body::read(request, own.api.body_max_bytes()).await?;
    let keys = decode::<KeysRequest>(&bytes)?.keys()?;
    own.gateway.put_device_keys(identity, Some(&keys)).await.map_err(Problem::from)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn remove_keys(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
) -> Result<StatusCode, Refusal> {
    own.gateway.put_device_keys(identity, None).await.map_err(Problem::from)?;
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
    let topic = topic_named(topic)?;
    match own.gateway.subscribe(identity, &topic).await.map_err(Problem::from)? {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => {
            let why = "a private topic is for devices that the app's backend subscribes";
            Err(Problem::new(ErrorCode::Forbidden, why).at("topic").into())
        }
    }
}

pub(super) async fn unsubscribe(
    State(own): State<GatewayApi>,
    LoggedIn(identity): LoggedIn,
    Path(topic): Path<String>,
) -> Result<StatusCode, Refusal> {
    match own.gateway.leave_topic(identity, &topic_named(topic)?).await {
        // A topic is deleted with its last subscriber: a repeated request has its effect already.
        Ok(_) | Err(StoreError::NotFound("topic")) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(Problem::from(error).into()),
    }
}
