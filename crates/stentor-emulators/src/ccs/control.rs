//! The additional control routes of CCS: upstream messages on behalf of a device, and the list of connections.

use super::{CcsService, InjectedMessage, UpstreamRefusal};
use crate::control::{ControlAnswer, ControlRoutes};
use http::StatusCode;
use serde_json::json;

impl ControlRoutes for CcsService {
    fn route(&self, method: &str, segments: &[&str], body: &[u8]) -> Option<ControlAnswer> {
        match (method, segments) {
            ("GET", ["connections"]) => Some(Ok(json!(self.app_servers.list()))),
            ("GET", ["upstream"]) => Some(Ok(json!(self.upstream.totals()))),
            ("POST", ["upstream"]) => Some(self.inject(body)),
            _ => None,
        }
    }
}

impl CcsService {
    fn inject(&self, body: &[u8]) -> ControlAnswer {
        let message: InjectedMessage =
            serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
        match self.send_upstream(message) {
            Ok(id) => Ok(json!({"message_id": id})),
            Err(refusal) => Err((status(refusal), refusal.to_string())),
        }
    }
}

fn status(refusal: UpstreamRefusal) -> StatusCode {
    match refusal {
        UpstreamRefusal::NoSender | UpstreamRefusal::TimeToLive => StatusCode::BAD_REQUEST,
        UpstreamRefusal::Full | UpstreamRefusal::DeviceFull => StatusCode::CONFLICT,
    }
}
