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
use crate::schema::CredentialSchema;

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
        fields: &[],
        shown: &[],
        example: "",
    },
    check: |_| Ok(()),
    payload_bytes,
    hosts: |_| Ok(Vec::new()),
    open: |secret, _| Ok(Arc::new(GatewayAdapter::open(secret)?)),
};

/// More than the rest of the server can do: accepting is never what is waited for.
const RATE_PER_SECOND: u64 = 10_000_000;

/// Takes every delivery over: from then on it waits in the ledger for its device.
#[derive(Debug, Default)]
struct GatewayAdapter;

impl GatewayAdapter {
    fn open(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        Fields::new(&map, "").only(&[])?;
        Ok(Self)
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
