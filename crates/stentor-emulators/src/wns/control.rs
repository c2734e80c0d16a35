//! The control route of WNS: a device registers and gets a channel.

use super::server::WnsService;
use crate::control::{ControlAnswer, ControlRoutes};
use http::StatusCode;
use serde_json::json;
use std::net::SocketAddr;

impl ControlRoutes for WnsService {
    fn opened(&self, address: SocketAddr) {
        self.channels.set_address(address);
    }

    fn route(&self, method: &str, segments: &[&str], body: &[u8]) -> Option<ControlAnswer> {
        match (method, segments) {
            ("POST", ["device", "register"]) => Some(self.register(body)),
            _ => None,
        }
    }
}

impl WnsService {
    fn register(&self, body: &[u8]) -> ControlAnswer {
        // A script may send no body at all.
        let body = if body.is_empty() { b"{}" } else { body };
        let request =
            serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        Ok(json!(self.channels.open(request)))
    }
}
