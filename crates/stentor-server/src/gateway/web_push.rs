//! The service for senders of Web Push (RFC 8030): a message to one device, its withdrawal, its receipt.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, MessageId};
use stentor_core::ports::store::StoreError;
use stentor_gateway::web_push::{
    PUSH_BODY_MAX_BYTES, PushCapability, PushDraft, PushHeaders, PushRefusal, VapidToken,
};
use stentor_gateway::{DeviceIdentity, Gateway, LoginError};
use stentor_wire::web_push::VapidKey;

use super::push_routes::{PushRoutes, refusal_of, refused, text};
use super::receipt::{self, PushResult};
use crate::contract::messages::{MessageRequest, Sent, TargetRequest};
use crate::contract::table::SendMessage;
use crate::contract::{Caller, Problem, Repeatable, Serve};
use crate::face::http::{RequestPermit, Routes, body};
use crate::owner::Owner;

/// The path of subscriptions; a capability follows it.
pub(super) const PUSH_PATH: &str = "/gateway/v1/push/";
const MESSAGES_PATH: &str = "/gateway/v1/push/messages/";
const RECEIPTS_PATH: &str = "/gateway/v1/push/receipts/";
/// The link relation of a receipt (RFC 8030, 9.3).
const RECEIPT_RELATION: &str = "urn:ietf:params:push:receipt";
const TTL: HeaderName = HeaderName::from_static("ttl");
/// Retry-After of a request for an open receipt.
const ASK_AGAIN_SECONDS: u16 = 5;

/// Builds the routes. Callers authenticate by a capability, or by the key that an app has named.
pub(super) fn routes() -> Routes<PushRoutes> {
    Routes::new()
        .route("/gateway/v1/push/{capability}", post(push))
        .route("/fcm/send/{token}", post(push_to_token))
        .route("/gateway/v1/push/messages/{capability}", delete(withdraw))
        .route("/gateway/v1/push/receipts/{capability}", get(show_result))
}

async fn push(State(routes): State<PushRoutes>, Path(name): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    routes.push(&name, &parts, body).await.unwrap_or_else(|refusal| refused(&refusal))
}

/// Handles a push to a token. The URL of a subscription in Chromium ends with a GCM token, which here is a token of the gateway.
async fn push_to_token(
    State(routes): State<PushRoutes>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    routes.push_to_token(&token, &parts, body).await.unwrap_or_else(|refusal| refused(&refusal))
}

async fn withdraw(
    State(routes): State<PushRoutes>,
    Extension(permit): Extension<RequestPermit>,
    Path(name): Path<String>,
) -> Response {
    let withdrawn = routes.withdraw(&name, &permit).await;
    withdrawn.map_or_else(|refusal| refused(&refusal), |()| StatusCode::NO_CONTENT.into_response())
}

async fn show_result(
    State(routes): State<PushRoutes>,
    Extension(permit): Extension<RequestPermit>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    match routes.push_result(&name, &permit, receipt::wait_of(text(&headers, "prefer"))).await {
        Ok(PushResult::Delivered) => StatusCode::NO_CONTENT.into_response(),
        Ok(PushResult::Over) => refused(&PushRefusal::Gone),
        Ok(PushResult::Open) => {
            (StatusCode::ACCEPTED, [(header::RETRY_AFTER, HeaderValue::from(ASK_AGAIN_SECONDS))])
                .into_response()
        }
        Err(refusal) => refused(&refusal),
    }
}

impl PushRoutes {
    /// Stores a message for the device of a subscription. The sender is checked before the body is read, and a place of the app is taken
    /// after it: slow bodies of senders do not take places that the app's own requests need.
    async fn push(&self, name: &str, parts: &Parts, body: Body) -> Result<Response, PushRefusal> {
        let capability = self.capability(name)?;
        let PushCapability::Subscription(identity, _) = capability else {
            return Err(PushRefusal::NoSuchUrl);
        };
        self.prove(&capability, parts)?;
        let body = self.body(identity.app, parts, body).await?;
        self.find(identity).await?;
        self.take(identity, parts, &body).await
    }

    /// Stores a message for the device of a token. The sender must hold the key that the app has named; nothing is looked up for other
    /// senders.
    async fn push_to_token(&self, token: &str, parts: &Parts, body: Body) -> Result<Response, PushRefusal> {
        let app = Gateway::app_of_token(token).ok_or(PushRefusal::Gone)?;
        let now = self.parts.gateway.clock().now();
        let sender = self.sender(parts)?.ok_or(PushRefusal::Unauthorized("authenticate with vapid"))?;
        let proven = self.apps.app_of(&sender, now).await.map_err(|error| refusal_of(&error.into()))?;
        if proven != Some(app) {
            return Err(PushRefusal::Unauthorized("the subscription is for the holder of another key"));
        }
        let body = self.body(app, parts, body).await?;
        let identity = match self.parts.gateway.holder(token).await {
            Ok(identity) => identity,
            Err(LoginError::Refused) => return Err(PushRefusal::Gone),
            Err(LoginError::Store(error)) => return Err(refusal_of(&error.into())),
        };
        self.take(identity, parts, &body).await
    }

    /// Reads a body as a guest of the app, and takes one of the app's places once it is complete.
    async fn body(&self, app: AppId, parts: &Parts, body: Body) -> Result<bytes::Bytes, PushRefusal> {
        let refused = |problem: Problem| refusal_of(&problem);
        let permit = RequestPermit::of(&parts.extensions).map_err(refused)?;
        let owner = Owner::Guest(app, permit.network());
        permit.name(owner).map_err(refused)?;
        let body = read(&parts.headers, body).await?;
        permit.own(owner).map_err(refused)?;
        Ok(body)
    }

    /// Checks and stores a message for a device.
    async fn take(
        &self,
        identity: DeviceIdentity,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Response, PushRefusal> {
        // Only authorized senders use up the rate limit of the device.
        let taken = self.rates.take(&identity.device, self.parts.gateway.clock().now());
        taken.map_err(PushRefusal::TooMany)?;
        let draft = PushDraft::read(&headers_of(&parts.headers), body)?;
        let (ttl, wants_receipt) = (draft.ttl_seconds, draft.wants_receipt);
        let message = self.keep(identity, draft).await?;
        let base = self.base(parts).unwrap_or_default();
        Ok(self.accepted(&base, identity, message, ttl, wants_receipt))
    }

    fn capability(&self, name: &str) -> Result<PushCapability, PushRefusal> {
        PushCapability::read(name, self.parts.gateway.key()).ok_or(PushRefusal::NoSuchUrl)
    }

    /// Returns the key that the sender has proven to hold; `None` if the sender is anonymous.
    fn sender(&self, parts: &Parts) -> Result<Option<VapidKey>, PushRefusal> {
        let token =
            VapidToken::read(text(&parts.headers, "authorization"), text(&parts.headers, "crypto-key"))?;
        let now = self.parts.gateway.clock().now();
        token.map(|token| token.check(|origin| self.is_ours(origin), now)).transpose()
    }

    /// Verifies the sender's identity, and its right to use the subscription.
    fn prove(&self, capability: &PushCapability, parts: &Parts) -> Result<(), PushRefusal> {
        let sender = self.sender(parts)?;
        match (capability.admits(sender.as_ref()), sender) {
            (true, _) => Ok(()),
            (false, None) => Err(PushRefusal::Unauthorized(
                "the subscription is for the holder of a key: authenticate with vapid",
            )),
            (false, Some(_)) => {
                Err(PushRefusal::Unauthorized("the subscription is for the holder of another key"))
            }
        }
    }

    async fn find(&self, identity: DeviceIdentity) -> Result<(), PushRefusal> {
        match self.parts.gateway.store().device(identity.app, identity.device).await {
            Ok(device) if device.retired.is_none() => Ok(()),
            Ok(_) | Err(StoreError::NotFound(_)) => Err(PushRefusal::Gone),
            Err(error) => Err(refusal_of(&error.into())),
        }
    }

    /// Stores a message like any other of the app; it is on disk before the response.
    async fn keep(&self, identity: DeviceIdentity, draft: PushDraft) -> Result<MessageId, PushRefusal> {
        let request = MessageRequest {
            target: TargetRequest::Device(identity.device),
            notification: None,
            data: std::collections::BTreeMap::new(),
            overrides: [(ProviderKind::Gateway, draft.gateway)].into(),
            priority: draft.priority,
            ttl_seconds: Some(draft.ttl_seconds),
            collapse_key: draft.collapse_key,
            dry_run: false,
            send_at: None,
            exact: false,
        };
        let caller = Caller::of_gateway(identity.app);
        let repeatable = Repeatable { request, repeat: None };
        let sent = Serve::<SendMessage>::serve(self.parts.api.service(), caller, (), repeatable).await;
        match sent.map_err(|problem| refusal_of(&problem))? {
            Sent::Kept(accepted) => Ok(accepted.reply.id),
            Sent::Checked(_) => Err(PushRefusal::Internal),
        }
    }

    /// Returns a response of 201, or of 202 with the address of a receipt.
    fn accepted(
        &self,
        base: &str,
        identity: DeviceIdentity,
        message: MessageId,
        ttl: u64,
        wants_receipt: bool,
    ) -> Response {
        let key = self.parts.gateway.key();
        let status = if wants_receipt { StatusCode::ACCEPTED } else { StatusCode::CREATED };
        let mut response = status.into_response();
        let headers = response.headers_mut();
        let mut put = |name: HeaderName, value: String| {
            // URL characters and digits only; they were checked when they were parsed.
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
        };
        let location = PushCapability::Message(identity, message).text(key);
        put(header::LOCATION, format!("{base}{MESSAGES_PATH}{location}"));
        put(TTL, ttl.to_string());
        if wants_receipt {
            let receipt = PushCapability::Receipt(identity, message).text(key);
            put(header::LINK, format!("<{base}{RECEIPTS_PATH}{receipt}>; rel=\"{RECEIPT_RELATION}\""));
        }
        response
    }

    async fn withdraw(&self, name: &str, permit: &RequestPermit) -> Result<(), PushRefusal> {
        let PushCapability::Message(identity, message) = self.capability(name)? else {
            return Err(PushRefusal::NoSuchUrl);
        };
        permit.own(Owner::Guest(identity.app, permit.network())).map_err(|problem| refusal_of(&problem))?;
        match self.parts.gateway.withdraw_message(identity, message).await {
            Ok(()) => Ok(()),
            Err(StoreError::NotFound(_)) => Err(PushRefusal::NoSuchUrl),
            Err(error) => Err(refusal_of(&error.into())),
        }
    }

    /// Returns the result of a message. A waiting caller takes a place for waiting instead of a place for requests.
    async fn push_result(
        &self,
        name: &str,
        permit: &RequestPermit,
        wait: Duration,
    ) -> Result<PushResult, PushRefusal> {
        let PushCapability::Receipt(identity, message) = self.capability(name)? else {
            return Err(PushRefusal::NoSuchUrl);
        };
        let owner = Owner::Guest(identity.app, permit.network());
        permit.name(owner).map_err(|problem| refusal_of(&problem))?;
        let _place =
            self.receipt_waits.take(owner, 1).map_err(|_| PushRefusal::TooMany(ASK_AGAIN_SECONDS.into()))?;
        match receipt::result(&self.parts.gateway, identity, message, wait).await {
            Ok(found) => Ok(found),
            Err(StoreError::NotFound(_)) => Err(PushRefusal::NoSuchUrl),
            Err(error) => Err(refusal_of(&error.into())),
        }
    }
}

async fn read(headers: &HeaderMap, body: Body) -> Result<bytes::Bytes, PushRefusal> {
    // Refused by the announced length, so that a sender that waits for `100 Continue` need not send the body.
    let announced = text(headers, "content-length").and_then(|text| text.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > PUSH_BODY_MAX_BYTES) {
        return Err(PushRefusal::TooLarge);
    }
    body::read_raw(body, PUSH_BODY_MAX_BYTES).await.map_err(|problem| refusal_of(&problem))
}

fn headers_of(headers: &HeaderMap) -> PushHeaders<'_> {
    PushHeaders {
        ttl: text(headers, "ttl"),
        topic: text(headers, "topic"),
        urgency: text(headers, "urgency"),
        prefer: text(headers, "prefer"),
        content_encoding: text(headers, "content-encoding"),
        encryption: text(headers, "encryption"),
        crypto_key: text(headers, "crypto-key"),
    }
}
