//! The control route of Web Push: a device registers and gets a subscription.

use super::server::WebPushService;
use crate::control::{ControlAnswer, ControlRoutes};
use http::StatusCode;
use serde_json::json;
use std::net::SocketAddr;

impl ControlRoutes for WebPushService {
    fn opened(&self, address: SocketAddr) {
        self.subscriptions.set_address(address);
    }

    fn route(&self, method: &str, segments: &[&str], body: &[u8]) -> Option<ControlAnswer> {
        match (method, segments) {
            ("POST", ["device", "register"]) => Some(self.register(body)),
            _ => None,
        }
    }
}

impl WebPushService {
    fn register(&self, body: &[u8]) -> ControlAnswer {
        let refuse = |error: &dyn std::fmt::Display| (StatusCode::BAD_REQUEST, error.to_string());
        // A script may send no body at all.
        let body = if body.is_empty() { b"{}" } else { body };
        let request = serde_json::from_slice(body).map_err(|error| refuse(&error))?;
        let subscription = self.subscriptions.subscribe(request).map_err(|error| refuse(&error))?;
        Ok(json!(subscription))
    }
}
