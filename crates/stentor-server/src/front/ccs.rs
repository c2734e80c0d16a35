//! The app server's side of CCS. Its messages are parsed like those of the legacy HTTP API with a single recipient.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use stentor_core::id::AppId;
use stentor_gateway::ccs::{CcsAppSession, CcsLoginError, CcsPort, CcsRefusal};

use super::gcm_http;
use super::sending::Sender;
use crate::contract::table::SendMessage;
use crate::contract::{Caller, ErrorCode, Problem, ServiceResult};
use crate::face::Api;

/// Fields that are the protocol's, not the message's.
const OF_THE_PROTOCOL: [&str; 4] =
    ["message_id", "delivery_receipt_requested", "message_type", "registration_ids"];

/// Longest message name for which a receipt can be requested.
const MESSAGE_ID_MAX_BYTES: usize = 1_024;

/// Authenticates app servers by the keys of their apps, and accepts their messages.
pub(super) struct OpenAppServers {
    api: Api,
}

impl OpenAppServers {
    /// Creates the port over the server's operations.
    pub(super) const fn new(api: Api) -> Self {
        Self { api }
    }

    async fn caller(&self, app: AppId, key: &str) -> ServiceResult<Caller> {
        let identity = self.api.service().identify(key).await?;
        let caller = self.api.service().caller(identity, Some(app)).await?;
        caller.allow::<SendMessage>()?;
        Ok(caller)
    }
}

#[async_trait]
impl CcsPort for OpenAppServers {
    async fn log_in(&self, app: AppId, key: &SecretString) -> Result<Arc<dyn CcsAppSession>, CcsLoginError> {
        match self.caller(app, key.expose_secret()).await {
            Ok(_) => {
                Ok(Arc::new(AppServerSession { servers: Self::new(self.api.clone()), app, key: key.clone() }))
            }
            Err(problem) => Err(login_error(&problem)),
        }
    }
}

/// An app server that has logged in.
struct AppServerSession {
    servers: OpenAppServers,
    app: AppId,
    /// Checked again for each message and before each upstream message is handed over, so that a removed key has no effect any more.
    key: SecretString,
}

#[async_trait]
impl CcsAppSession for AppServerSession {
    fn app(&self) -> AppId {
        self.app
    }

    async fn still_allowed(&self) -> Result<(), CcsLoginError> {
        let caller = self.servers.caller(self.app, self.key.expose_secret()).await;
        caller.map(drop).map_err(|problem| login_error(&problem))
    }

    async fn send(&self, mut fields: Map<String, Value>) -> Result<(), CcsRefusal> {
        let receipt = wanted_receipt(&fields)?;
        // A stanza has one recipient in `to`; lists of recipients belong to the HTTP API only.
        fields.retain(|name, _| !OF_THE_PROTOCOL.contains(&name.as_str()));
        let refused = |problem: &Problem| CcsRefusal::new(code(problem.code), problem.detail.clone());
        let caller = self.servers.caller(self.app, self.key.expose_secret()).await;
        let caller = caller.map_err(|problem| refused(&problem))?;
        let sender = Sender { api: &self.servers.api, caller, repeat: None, receipt: receipt.as_deref() };
        match gcm_http::send_one(&sender, fields).await {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(CcsRefusal::new(word(error), error)),
            Err(problem) => Err(refused(&problem)),
        }
    }
}

/// Returns the reason why a key does not open its app now.
fn login_error(problem: &Problem) -> CcsLoginError {
    // Server errors are distinguished, because a refused client has no reason to retry.
    if super::sending::is_of_server(problem.code) {
        CcsLoginError::Unavailable
    } else {
        CcsLoginError::Refused
    }
}

/// Returns the app server's name for a message, if a delivery receipt is requested.
fn wanted_receipt(fields: &Map<String, Value>) -> Result<Option<String>, CcsRefusal> {
    // Some clients write the boolean as a text.
    let is_wanted = match fields.get("delivery_receipt_requested") {
        Some(Value::Bool(is_wanted)) => *is_wanted,
        Some(Value::String(text)) => text == "true",
        _ => false,
    };
    let name = fields.get("message_id").and_then(Value::as_str).filter(|_| is_wanted);
    match name {
        // The name is kept with the message until the device confirms it, so that it needs a limit.
        Some(name) if name.len() > MESSAGE_ID_MAX_BYTES => {
            let why = format!("with a receipt message_id has at most {MESSAGE_ID_MAX_BYTES} bytes");
            Err(CcsRefusal::new("INVALID_JSON", why))
        }
        name => Ok(name.map(str::to_owned)),
    }
}

/// Returns the error code of a request that the server refuses as a whole.
const fn code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable => "SERVICE_UNAVAILABLE",
        ErrorCode::Internal => "INTERNAL_SERVER_ERROR",
        ErrorCode::Unauthorized | ErrorCode::Forbidden => "AUTHENTICATION_FAILED",
        _ => "INVALID_JSON",
    }
}

/// Maps an error word of the HTTP API to the code of CCS, following the table of both.
fn word(error: &str) -> &'static str {
    match error {
        "InvalidRegistration" => "BAD_REGISTRATION",
        "NotRegistered" => "DEVICE_UNREGISTERED",
        "MismatchSenderId" => "SENDER_ID_MISMATCH",
        "Unavailable" => "SERVICE_UNAVAILABLE",
        "InternalServerError" => "INTERNAL_SERVER_ERROR",
        _ => "INVALID_JSON",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_the_http_api_has_a_code() {
        for (error, code) in [
            ("MissingRegistration", "INVALID_JSON"),
            ("InvalidRegistration", "BAD_REGISTRATION"),
            ("NotRegistered", "DEVICE_UNREGISTERED"),
            ("MismatchSenderId", "SENDER_ID_MISMATCH"),
            ("MessageTooBig", "INVALID_JSON"),
            ("InvalidTtl", "INVALID_JSON"),
            ("Unavailable", "SERVICE_UNAVAILABLE"),
        ] {
            assert_eq!(word(error), code);
        }
    }
}
