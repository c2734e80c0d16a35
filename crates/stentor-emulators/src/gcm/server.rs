//! The HTTP protocol of GCM: routes a request, calls the backend, and builds the response.

use super::GcmConfig;
use super::answers::{self, GcmResults, json_answer, json_error, text_answer};
use super::backend::{GcmBackend, GcmJudge};
use super::groups::DeviceGroups;
use super::message::{GcmAddress, GcmMessage, GcmRefusal};
use super::request::{GcmAudience, GcmForm};
use crate::device::Devices;
use crate::fcm::Query;
use crate::json::JsonNode;
use crate::service::{EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, WireAnswer};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode};
use serde_json::json;
use std::sync::Arc;

/// The header that names the project of a device group.
const PROJECT_HEADER: &str = "project_id";

/// The legacy API with everything it needs.
pub(super) struct GcmService {
    backend: GcmBackend,
    groups: DeviceGroups,
    keys: Vec<String>,
    overhead_bytes: usize,
}

impl GcmService {
    pub(super) fn new(config: GcmConfig, context: Arc<EmulatorContext>, devices: Arc<Devices>) -> Self {
        Self {
            backend: GcmBackend::new(context, devices, config.strict_tokens, config.seed),
            groups: DeviceGroups::new(config.seed),
            keys: config.vendor.keys,
            overhead_bytes: config.vendor.data_overhead_bytes,
        }
    }

    /// Returns true if the request bears an API key that exists.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()).unwrap_or_default();
        let key = header.strip_prefix("key=").unwrap_or_default().trim();
        !key.is_empty() && (self.keys.is_empty() || self.keys.iter().any(|known| known == key))
    }

    /// Answers a message.
    fn send(&self, call: &ServiceCall<'_>) -> ServiceReply {
        let Some(form) = GcmForm::of(&call.head.headers) else {
            return malformed("the content type is neither JSON nor a form");
        };
        if call.body_too_large {
            return malformed("the body is too large");
        }
        match form.read(call.body) {
            Ok(request) => self.send_read(call, form, &request),
            Err(sentence) => malformed(&sentence),
        }
    }

    fn send_read(&self, call: &ServiceCall<'_>, form: GcmForm, request: &JsonNode<'_>) -> ServiceReply {
        let audience = GcmAudience::of(request, |key| self.groups.members(key).is_some());
        let audience = match audience {
            Ok(audience) => audience,
            Err(GcmRefusal::Malformed(sentence)) => return malformed(&sentence),
            Err(GcmRefusal::Code(code)) => {
                return ServiceReply::now(answers::without_address(form, code, self.multicast_id()));
            }
        };
        let message = match GcmMessage::check(request, self.overhead_bytes) {
            // A malformed request is rejected as a whole; a code of the API is returned for each address.
            Err(GcmRefusal::Malformed(sentence)) => return malformed(&sentence),
            Err(GcmRefusal::Code(code)) => Err(code),
            Ok(message) => Ok(message),
        };
        let send = |address: GcmAddress<'_>| {
            let judge = GcmJudge { judge: call.judge, number: call.number };
            self.backend.send(judge, address, message.as_ref().map_err(|code| *code))
        };
        self.answer_audience(form, &audience, send)
    }

    fn answer_audience(
        &self,
        form: GcmForm,
        audience: &GcmAudience<'_>,
        send: impl Fn(GcmAddress<'_>) -> super::backend::GcmAnswer,
    ) -> ServiceReply {
        let mut results = GcmResults::default();
        match audience {
            GcmAudience::Tokens(tokens) => {
                tokens.iter().for_each(|token| results.push(send(GcmAddress::Token(token))));
                let id = self.multicast_id();
                results.reply(|verdicts| match form {
                    GcmForm::Json => answers::multicast(verdicts, id),
                    GcmForm::PlainText => answers::plain(verdicts),
                })
            }
            GcmAudience::Wide(address) => {
                results.push(send(*address));
                results.reply(|verdicts| match form {
                    GcmForm::Json => answers::wide(verdicts),
                    GcmForm::PlainText => answers::plain(verdicts),
                })
            }
            GcmAudience::Group(key) => {
                // The members at this moment: the response names them, even if the group changes later.
                let members = self.groups.members(key).unwrap_or_default();
                members.iter().for_each(|member| results.push(send(GcmAddress::Token(member))));
                results.reply(|verdicts| answers::group(verdicts, &members))
            }
        }
    }

    /// Returns a number of a request: positive, and of 64 bits.
    fn multicast_id(&self) -> u64 {
        self.backend.number() >> 1
    }

    /// Handles requests of app servers and clients about device groups.
    fn group(&self, call: &ServiceCall<'_>, by_client: bool) -> WireAnswer {
        let project = call.head.headers.get(PROJECT_HEADER).and_then(|project| project.to_str().ok());
        let Some(project) = project.filter(|project| !project.is_empty()) else {
            return json_error(StatusCode::BAD_REQUEST, "the header project_id is missing");
        };
        let key = if call.head.method == Method::GET {
            let query = Query::parse(call.head.uri.query());
            let name = query.get("notification_key_name").unwrap_or_default();
            self.groups.find(project, name).ok_or_else(|| "notification_key not found".to_owned())
        } else {
            match JsonNode::parse(call.body).filter(|_| !call.body_too_large) {
                None => Err("the body is not JSON".to_owned()),
                Some(request) if by_client => self.groups.manage_by_client(project, &request),
                Some(request) => self.groups.manage(project, &request),
            }
        };
        match key {
            Ok(key) => json_answer(&json!({ "notification_key": key })),
            Err(error) => json_error(StatusCode::BAD_REQUEST, &error),
        }
    }

    /// Handles the instance id service: memberships of topics, and information on a token.
    fn iid(&self, call: &ServiceCall<'_>, path: &str) -> WireAnswer {
        let is_live = |token: &str| self.backend.is_live(token);
        let add = match (call.head.method.as_str(), path) {
            ("POST", "/iid/v1:batchAdd") => true,
            ("POST", "/iid/v1:batchRemove") => false,
            ("GET", path) if path.starts_with("/iid/info/") => return self.info(call, path),
            _ => return text_answer(StatusCode::NOT_FOUND, ""),
        };
        let (status, value) = self.backend.topics.batch(add, call.body, is_live);
        if status == StatusCode::OK { json_answer(&value) } else { text_answer(status, &value.to_string()) }
    }

    fn info(&self, call: &ServiceCall<'_>, path: &str) -> WireAnswer {
        let token = path.trim_start_matches("/iid/info/");
        let token = crate::fcm::percent_decode(token.as_bytes(), false).unwrap_or_default();
        if !crate::fcm::is_token(&token) || !self.backend.is_live(&token) {
            return json_error(StatusCode::NOT_FOUND, "No information found about this instance id.");
        }
        let details = Query::parse(call.head.uri.query()).is_true("details");
        json_answer(&self.backend.topics.info(&token, "0", details))
    }
}

impl EmulatedService for GcmService {
    type Session = ();

    const MAX_BODY_BYTES: usize = 1024 * 1024;

    fn session(&self) {}

    fn answer(&self, (): &mut (), call: ServiceCall<'_>) -> ServiceReply {
        let path = call.head.uri.path();
        // Clients that manage device groups show an identity of their own instead of a key.
        let by_client = matches!(path, "/gcm/googlenotification" | "/fcm/googlenotification");
        if !by_client && !self.admits(&call.head.headers) {
            return ServiceReply::now(text_answer(StatusCode::UNAUTHORIZED, "Unauthorized\n"));
        }
        match (call.head.method.as_str(), path) {
            ("POST", "/gcm/send" | "/fcm/send") => self.send(&call),
            ("POST" | "GET", "/gcm/notification" | "/fcm/notification") => {
                ServiceReply::now(self.group(&call, false))
            }
            ("POST", _) if by_client => ServiceReply::now(self.group(&call, true)),
            (_, path) if path.starts_with("/iid/") => ServiceReply::now(self.iid(&call, path)),
            _ => ServiceReply::now(text_answer(StatusCode::NOT_FOUND, "Not found\n")),
        }
    }

    fn settle(&self, count: PendingCount) {
        self.backend.settle(count);
    }

    fn context(&self) -> &EmulatorContext {
        &self.backend.context
    }
}

fn malformed(sentence: &str) -> ServiceReply {
    ServiceReply::now(text_answer(StatusCode::BAD_REQUEST, &format!("{sentence}\n")))
}
