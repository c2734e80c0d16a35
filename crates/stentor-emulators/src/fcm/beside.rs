//! The services beside FCM on the same port: access tokens and topic membership.

use super::answers::{error_answer, json_answer, saying, to_json};
use super::message;
use super::oauth::percent_decode;
use super::server::{FcmService, FcmSession};
use super::topics::{Parent, Query};
use crate::observer::token_hash;
use crate::policy::ServiceError;
use crate::service::{ServiceCall, WireAnswer};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::json;

const TOKEN_PATHS: &[&str] = &["/token", "/oauth2/v4/token", "/oauth2/v3/token", "/o/oauth2/token"];

impl FcmService {
    /// Answers everything that is not a send request.
    pub(super) fn other(&self, session: &mut FcmSession, call: &ServiceCall<'_>) -> WireAnswer {
        let path = call.head.uri.path();
        if TOKEN_PATHS.contains(&path) {
            return match self.issuer.grant(call.body, path) {
                Ok(body) => json_answer(StatusCode::OK, Bytes::from(body)),
                Err(denied) => json_answer(StatusCode::BAD_REQUEST, to_json(&json!(denied))),
            };
        }
        if path.starts_with("/iid/") {
            return self.iid(session, call, path);
        }
        self.subscriptions(session, call, path)
            .unwrap_or_else(|| error_answer(&ServiceError::new("NOT_FOUND")))
    }

    /// Answers `registrations/{token}/topicSubscriptions…`; `None` when the path is another one.
    fn subscriptions(
        &self,
        session: &mut FcmSession,
        call: &ServiceCall<'_>,
        path: &str,
    ) -> Option<WireAnswer> {
        // Split before it is decoded: a token may hold an escaped slash.
        let segments: Vec<String> =
            path.split('/').map(|part| percent_decode(part.as_bytes(), false)).collect::<Option<_>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let ["", "v1", "projects", project, "registrations", token, "topicSubscriptions", rest @ ..] =
            segments.as_slice()
        else {
            return None;
        };
        // The caller is checked first: an unauthorized caller learns nothing about tokens.
        if let Err(code) = self.check_caller(session, call, project) {
            return Some(error_answer(&ServiceError::new(code)));
        }
        let topic = match rest {
            [] => None,
            [topic] => Some(*topic),
            _ => return None,
        };
        if !message::is_token(token) || !self.is_live(token_hash(token.as_bytes())) {
            return Some(error_answer(&ServiceError::new("NOT_FOUND")));
        }
        let parent = Parent { project: (*project).to_owned(), token: (*token).to_owned() };
        let query = Query::parse(call.head.uri.query());
        Some(match self.topics.resource(&call.head.method, &parent, topic, &query) {
            Ok(value) => json_answer(StatusCode::OK, to_json(&value)),
            Err((code, message)) => saying(code, &message),
        })
    }

    /// Answers the older instance id service, which takes an access token or an API key.
    fn iid(&self, session: &mut FcmSession, call: &ServiceCall<'_>, path: &str) -> WireAnswer {
        let authorization = call.head.headers.get(AUTHORIZATION);
        // Keys of the older kind are not known here: any is taken.
        let has_key = authorization.is_some_and(|header| header.as_bytes().starts_with(b"key="));
        if !has_key && !self.issuer.admits(&mut session.bearer, authorization) {
            return error_answer(&ServiceError::new("UNAUTHENTICATED"));
        }
        let is_live = |token: &str| self.is_live(token_hash(token.as_bytes()));
        let (status, value) = match (&call.head.method, path) {
            (&Method::POST, "/iid/v1:batchAdd") => self.topics.batch(true, call.body, is_live),
            (&Method::POST, "/iid/v1:batchRemove") => self.topics.batch(false, call.body, is_live),
            (&Method::GET, path) => {
                let token = path.strip_prefix("/iid/info/").unwrap_or_default();
                let token = percent_decode(token.as_bytes(), false).unwrap_or_default();
                if !message::is_token(&token) || !is_live(&token) {
                    return error_answer(&ServiceError::new("NOT_FOUND"));
                }
                let details = Query::parse(call.head.uri.query()).is_true("details");
                let project = self.config.vendor.projects.first().map_or("0", String::as_str);
                (StatusCode::OK, self.topics.info(&token, project, details))
            }
            _ => return error_answer(&ServiceError::new("NOT_FOUND")),
        };
        json_answer(status, to_json(&value))
    }
}
