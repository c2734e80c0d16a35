//! The sink over HTTP/1.1: the same responses, for clients that request access tokens and for manual tests.

use super::request::{GRANT, NO_TARGET, Route, SinkTarget, apns_id, write_message_name};
use crate::observer::AnswerTally;
use crate::policy::Wait;
use crate::service::{EmulatedService, EmulatorContext, PendingCount, ServiceCall, ServiceReply, WireAnswer};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use std::sync::Arc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) struct SinkService {
    pub(super) context: Arc<EmulatorContext>,
}

impl EmulatedService for SinkService {
    type Session = ();

    const MAX_BODY_BYTES: usize = 64 * 1024;

    fn session(&self) {}

    fn answer(&self, _session: &mut (), call: ServiceCall<'_>) -> ServiceReply {
        let mut project = Vec::new();
        match Route::of(call.head.uri.path().as_bytes(), &mut project) {
            Route::Apns { token_hash } => self.reply(apns(&call), Some(token_hash), &call),
            Route::Fcm if call.body_too_large => self.reply(no_target(), None, &call),
            Route::Fcm => match SinkTarget::of(call.body) {
                SinkTarget::Device(token_hash) => self.reply(message(&project), Some(token_hash), &call),
                SinkTarget::Uncounted => self.reply(message(&project), None, &call),
                SinkTarget::Nobody => self.reply(no_target(), None, &call),
            },
            Route::Grant => self.reply(json(StatusCode::OK, Bytes::from_static(GRANT)), None, &call),
            Route::Other => self.reply(WireAnswer::Response(Response::new(()), Bytes::new()), None, &call),
        }
    }

    fn settle(&self, ticket: PendingCount) {
        self.context.count(&ticket);
    }

    fn context(&self) -> &EmulatorContext {
        &self.context
    }
}

impl SinkService {
    fn reply(&self, answer: WireAnswer, token_hash: Option<u64>, call: &ServiceCall<'_>) -> ServiceReply {
        let ticket = token_hash.filter(|_| self.context.observer.is_some()).map(|token_hash| PendingCount {
            token_hash,
            attempt_counted: false,
            tally: AnswerTally::Accepted,
            delivery: None,
        });
        let drawn_for = uuid::Uuid::new_v4().as_u64_pair().1;
        let wait = match call.judge.decide("", drawn_for, 1, call.number).wait {
            // A sink knows no stalls.
            Wait::Released => Wait::None,
            wait => wait,
        };
        ServiceReply::new(answer, wait, ticket)
    }
}

fn apns(call: &ServiceCall<'_>) -> WireAnswer {
    let mut response = Response::new(());
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    let made = || HeaderValue::from_bytes(&apns_id(high, low)).ok();
    if let Some(id) = call.head.headers.get("apns-id").cloned().or_else(made) {
        response.headers_mut().insert("apns-id", id);
    }
    WireAnswer::Response(response, Bytes::new())
}

fn message(project: &[u8]) -> WireAnswer {
    let mut body = Vec::new();
    write_message_name(&mut body, project, uuid::Uuid::new_v4().as_u64_pair().1);
    json(StatusCode::OK, Bytes::from(body))
}

fn no_target() -> WireAnswer {
    json(StatusCode::BAD_REQUEST, Bytes::from_static(NO_TARGET))
}

fn json(status: StatusCode, body: Bytes) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    WireAnswer::Response(response, body)
}
