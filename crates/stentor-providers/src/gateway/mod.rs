//! The gateway, our own push service: deliveries that it accepts are in the ledger, from which its connections send them to the devices.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use stentor_core::device::{Platform, ProviderKind};
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::{Batch, CredentialError, Provider, ProviderStats};

use crate::Descriptor;
use crate::credential::{self, Fields};
use crate::descriptor::{Overrides, TokenSpelling};
use crate::schema::{self, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, TextForm};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Gateway,
    title: "the gateway, our own connections to devices",
    label: "Gateway",
    is_for_trials: false,
    platforms: &[Platform::Linux],
    overrides: Some(Overrides {
        field: "gateway",
        about: "Content for devices of the gateway beside notification and data: `raw`, bytes in base64, and `encoding`.",
        help: "content for devices of the gateway only, as JSON",
    }),
    quota_per_minute: None,
    can_be_token: |_| true,
    token_form: "a text",
    token_spelling: TokenSpelling::Exact,
    names_hosts: false,
    tokens_per_request: 1,
    token_kinds: None,
    confuses_environments: false,
    credential: CredentialSchema {
        name: "GatewayCredential",
        about: "Lets an app have devices that connect to the gateway.",
        put: "Lets the app have devices that connect to this server's gateway.",
        fields: FIELDS,
        shown: &[],
        example: "--open-registration true",
    },
    check,
    payload_bytes,
    preview: None,
    complete: None,
    hosts: |_| Ok(Vec::new()),
    open: |secret, _| Ok(Arc::new(GatewayAdapter::open(secret)?)),
};

const FIELDS: &[CredentialField] = &[
    CredentialField::optional(
        "open_registration",
        CredentialFieldKind::Flag,
        "Allows anyone to register a device of the app, as a browser does for a site that it visits",
    )
    .asked(Input::Named(Flag::new("open-registration", "YES"))),
    CredentialField::optional(
        "vapid_key",
        CredentialFieldKind::Form(&VAPID_KEY),
        "Public key of the app's senders of Web Push (RFC 8292): devices that subscribe with it are the app's",
    )
    .asked(Input::Named(Flag::new("vapid-key", "KEY"))),
    CredentialField::optional(
        "vapid_proof",
        CredentialFieldKind::Text,
        "Token signed with that key (RFC 8292), with the app's id as `aud`: takes the key from an app that only names it",
    )
    .asked(Input::Named(Flag::new("vapid-proof", "TOKEN"))),
    schema::quota("none"),
];

const VAPID_KEY: TextForm = TextForm {
    name: "VapidKey",
    // The first byte is 4, and the last letter has two bits.
    pattern: "^B[A-P][A-Za-z0-9_-]{84}[AEIMQUYcgkosw048]$",
    max_chars: None,
    example: Some("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
    about: Some("Point of P-256, uncompressed, in base64url without padding."),
};

/// Checks the override for devices of the gateway: bytes are base64, and texts fit into frames.
fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    let Some(own) = spec.content.overrides.get(&ProviderKind::Gateway) else { return Ok(()) };
    let wrong = |name: &str, problem: &str| Err(Invalid::new(format!("gateway.{name}"), problem));
    for (name, value) in own {
        match value {
            Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) if name == "retain" => {
                return wrong(name, "must be true or false");
            }
            Value::String(text) if name == "raw" && !is_base64(text) => return wrong(name, "must be base64"),
            Value::String(text) if text.chars().any(char::is_control) => {
                return wrong(name, "must be printable text");
            }
            Value::String(_) | Value::Null => {}
            _ if name == "raw" => return wrong(name, "must be a text of base64"),
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if a text is base64 in either alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    text.len() % 4 != 1 && text.bytes().all(is_letter)
}

/// More than the rest of the server can process: this provider is never the bottleneck.
const RATE_PER_SECOND: u64 = 10_000_000;

/// Length of 65 bytes in base64url.
const VAPID_KEY_LETTERS: usize = 87;

/// Accepts every delivery: from then on it waits in the ledger for its device.
#[derive(Debug, Default)]
struct GatewayAdapter;

impl GatewayAdapter {
    fn open(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(&["open_registration", "vapid_key", "vapid_proof"])?;
        fields.optional("vapid_proof")?;
        if map.get("open_registration").is_some_and(|value| !value.is_null() && !value.is_boolean()) {
            return Err(fields.invalid("open_registration", "must be true or false"));
        }
        let is_key = |text: &str| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            text.len() == VAPID_KEY_LETTERS && text.bytes().all(is_letter)
        };
        match fields.optional("vapid_key")? {
            Some(text) if !is_key(text) => {
                Err(fields.invalid("vapid_key", "must be 87 letters of base64url"))
            }
            _ => Ok(Self),
        }
    }
}

#[async_trait]
impl Provider for GatewayAdapter {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Gateway
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        vec![Outcome::Accepted; batch.devices.len()]
    }

    fn stats(&self) -> ProviderStats {
        ProviderStats { delivery_rate: RATE_PER_SECOND, ..ProviderStats::default() }
    }
}

fn payload_bytes(message: &Message) -> usize {
    let content = &message.spec.content;
    let data: usize = content.data.iter().map(|(key, value)| key.len() + value.len()).sum();
    let notification = content.notification.as_ref().map_or(0, |shown| {
        [&shown.title, &shown.body, &shown.image].into_iter().flatten().map(String::len).sum()
    });
    let own = content.overrides.get(&ProviderKind::Gateway).and_then(|fields| fields.get("raw"));
    data + notification + own.and_then(serde_json::Value::as_str).map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stentor_core::message::{Content, Priority, Ttl};
    use stentor_core::target::Target;

    use super::*;

    #[test]
    fn what_no_frame_can_hold_is_refused_by_name() {
        let with = |own: Value| {
            let overrides = [(ProviderKind::Gateway, own.as_object().expect("an object").clone())].into();
            let content = Content { overrides, ..Content::default() };
            let (priority, ttl) = (Priority::High, Ttl::default());
            check(&MessageSpec { target: Target::Everyone, content, priority, ttl, collapse_key: None })
        };
        for (own, field) in [
            (json!({"raw": "no base64!"}), "gateway.raw"),
            (json!({"raw": "AAAAA"}), "gateway.raw"),
            (json!({"raw": 7}), "gateway.raw"),
            (json!({"retain": "yes"}), "gateway.retain"),
            (json!({"raw": "AQI=", "encoding": "a\u{0}b"}), "gateway.encoding"),
        ] {
            assert_eq!(with(own).expect_err("refused").field, field);
        }
        for own in [
            json!({"raw": "AQI"}),
            json!({"raw": "-_8=", "encoding": "aes128gcm", "retain": true}),
            json!({}),
        ] {
            assert_eq!(with(own), Ok(()));
        }
    }
}
