//! The port for the management of channels: apps create, read, list and delete them.

use super::broadcast::MAX_BROADCAST_BYTES;
use super::channels::MessageStorage;
use super::headers::{APNS_CHANNEL_ID, APNS_REQUEST_ID, check_request_id, is_live_activity, read_channel_id};
use super::server::{ApnsService, ApnsSession};
use crate::service::{EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, WireAnswer};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const APPS_PATH: &str = "/1/apps/";
const STORAGE_POLICY: &str = "message-storage-policy";
const PUSH_TYPE: &str = "push-type";

/// The management of channels, with the state of the push service.
pub(crate) struct ChannelManagement(pub(super) Arc<ApnsService>);

/// A request to the port.
enum ManagementRequest {
    Create,
    Read,
    Delete,
    List,
}

impl EmulatedService for ChannelManagement {
    type Session = ApnsSession;

    const MAX_BODY_BYTES: usize = MAX_BROADCAST_BYTES;

    fn session(&self) -> ApnsSession {
        self.0.session()
    }

    fn answer(&self, session: &mut ApnsSession, call: ServiceCall<'_>) -> ServiceReply {
        let reply = match self.manage(session, &call) {
            Ok(mut response) => {
                response.0.headers_mut().insert(APNS_REQUEST_ID, session.id_for(&call, &APNS_REQUEST_ID));
                ServiceReply::now(WireAnswer::Response(response.0, response.1))
            }
            Err(reason) => self.0.refuse(session, &call, reason.into(), &APNS_REQUEST_ID),
        };
        session.hold_if_wedged(reply)
    }

    fn settle(&self, ticket: PendingCount) {
        self.0.settle(ticket);
    }

    fn context(&self) -> &EmulatorContext {
        self.0.context()
    }
}

impl ChannelManagement {
    /// Does what a request asks for; the error is the reason.
    fn manage(
        &self,
        session: &mut ApnsSession,
        call: &ServiceCall<'_>,
    ) -> Result<(Response<()>, Bytes), &'static str> {
        let (request, bundle) = ManagementRequest::read(call)?;
        self.0.authenticate(session, call, bundle)?;
        check_request_id(&call.head.headers)?;
        let channels = &self.0.channels;
        let id = || read_channel_id(&call.head.headers);
        match request {
            ManagementRequest::Create => {
                let storage = configured_storage(call)?;
                let id = channels.create(bundle, storage).ok_or("CannotCreateChannelConfig")?;
                Ok(created(&id))
            }
            ManagementRequest::Read => {
                let storage = channels.storage(bundle, id()?).ok_or("ChannelNotRegistered")?;
                Ok(shown(&json!({STORAGE_POLICY: storage.number(), PUSH_TYPE: "LiveActivity"})))
            }
            ManagementRequest::Delete if channels.delete(bundle, id()?) => Ok(deleted()),
            ManagementRequest::Delete => Err("ChannelNotRegistered"),
            ManagementRequest::List => Ok(shown(&json!({"channels": channels.list(bundle)}))),
        }
    }
}

impl ManagementRequest {
    /// Reads method and path, and returns the bundle id too; the error is the reason.
    fn read<'a>(call: &ServiceCall<'a>) -> Result<(Self, &'a str), &'static str> {
        let path = call.head.uri.path().strip_prefix(APPS_PATH).ok_or("BadPath")?;
        let (bundle, resource) =
            path.split_once('/').filter(|(bundle, _)| !bundle.is_empty()).ok_or("BadPath")?;
        let request = match (resource, call.head.method.as_str()) {
            ("channels", "POST") => Self::Create,
            ("channels", "GET") => Self::Read,
            ("channels", "DELETE") => Self::Delete,
            ("all-channels", "GET") => Self::List,
            ("channels" | "all-channels", _) => return Err("MethodNotAllowed"),
            _ => return Err("BadPath"),
        };
        Ok((request, bundle))
    }
}

/// Reads the policy of a channel that is to be created; the error is the reason.
fn configured_storage(call: &ServiceCall<'_>) -> Result<MessageStorage, &'static str> {
    if call.body_too_large || call.body.len() > MAX_BROADCAST_BYTES {
        return Err("PayloadTooLarge");
    }
    let config: Map<String, Value> = serde_json::from_slice(call.body).map_err(|_| "BadRequestPayload")?;
    if config.keys().any(|name| name != STORAGE_POLICY && name != PUSH_TYPE) {
        return Err("BadRequestParams");
    }
    let push_type = config.get(PUSH_TYPE).ok_or("MissingPushType")?;
    if !push_type.as_str().is_some_and(|push_type| is_live_activity(push_type.as_bytes())) {
        return Err("InvalidPushType");
    }
    let policy = config.get(STORAGE_POLICY).and_then(Value::as_u64);
    policy.and_then(MessageStorage::of_number).ok_or("BadRequestParams")
}

fn created(id: &str) -> (Response<()>, Bytes) {
    let mut response = with_status(StatusCode::CREATED);
    // Ids are base64: none fails to be a value of a header.
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(APNS_CHANNEL_ID, id);
    }
    (response, Bytes::new())
}

fn shown(value: &Value) -> (Response<()>, Bytes) {
    let mut response = with_status(StatusCode::OK);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (response, Bytes::from(value.to_string()))
}

fn deleted() -> (Response<()>, Bytes) {
    (with_status(StatusCode::NO_CONTENT), Bytes::new())
}

fn with_status(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}
