//! Our own push service: what it accepts is in the ledger, and its connections give it to the devices from there.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::device::{Platform, ProviderKind};
use stentor_core::limits::PUSH_TOKEN_MAX_BYTES;
use stentor_core::message::Message;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::{Batch, CredentialError, Provider, ProviderStats};

use crate::Descriptor;
use crate::credential::{self, Fields};
use crate::descriptor::Overrides;
use crate::schema::{self, CredentialField, CredentialFieldKind, CredentialSchema, Flag, Input, TextForm};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Gateway,
    title: "the gateway, our own connections to devices",
    label: "Gateway",
    is_for_trials: false,
    platforms: &[Platform::Linux],
    overrides: Some(Overrides {
        field: "gateway",
        about: "What devices of the gateway get beside notification and data: `raw`, bytes in base64, and `encoding`.",
        help: "what devices of the gateway get, as JSON",
    }),
    quota_per_minute: None,
    token_max_bytes: PUSH_TOKEN_MAX_BYTES,
    confuses_environments: false,
    credential: CredentialSchema {
        name: "GatewayCredential",
        about: "Lets an app have devices that connect to the gateway.",
        put: "Lets the app have devices that connect to this server's gateway.",
        fields: FIELDS,
        shown: &[],
        example: "--open-registration true",
    },
    check: |_| Ok(()),
    payload_bytes,
    hosts: |_| Ok(Vec::new()),
    open: |secret, _| Ok(Arc::new(GatewayAdapter::open(secret)?)),
};

const FIELDS: &[CredentialField] = &[
    CredentialField::optional(
        "open_registration",
        CredentialFieldKind::Flag,
        "Whether anybody may register a device of the app, as a browser does for a site it visits",
    )
    .asked(Input::Named(Flag::new("open-registration", "YES"))),
    CredentialField::optional(
        "vapid_key",
        CredentialFieldKind::Form(&VAPID_KEY),
        "Public key of the app's senders of Web Push (RFC 8292): devices that subscribe with it are the app's",
    )
    .asked(Input::Named(Flag::new("vapid-key", "KEY"))),
    schema::quota("none"),
];

const VAPID_KEY: TextForm = TextForm {
    name: "VapidKey",
    pattern: "^[A-Za-z0-9_-]{87}$",
    max_chars: None,
    example: Some("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
    about: Some("Point of P-256, uncompressed, in base64url without padding."),
};

/// More than the rest of the server can do: accepting is never what is waited for.
const RATE_PER_SECOND: u64 = 10_000_000;

/// Letters of 65 bytes in base64url.
const VAPID_KEY_LETTERS: usize = 87;

/// Takes every delivery over: from then on it waits in the ledger for its device.
#[derive(Debug, Default)]
struct GatewayAdapter;

impl GatewayAdapter {
    fn open(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        let fields = Fields::new(&map, "");
        fields.only(&["open_registration", "vapid_key"])?;
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
