//! A push service that accepts everything and sends nothing; for trials and tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::{Batch, CredentialError, Provider, ProviderStats};

use crate::Descriptor;
use crate::credential::{self, Fields};
use crate::descriptor::TokenSpelling;
use crate::schema::CredentialSchema;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    kind: ProviderKind::Null,
    title: "the provider that sends nothing",
    label: "Null",
    is_for_trials: true,
    platforms: &[],
    overrides: None,
    quota_per_minute: None,
    can_be_token: |_| true,
    token_form: "a text",
    token_spelling: TokenSpelling::Exact,
    names_hosts: false,
    tokens_per_request: 1,
    token_kinds: None,
    confuses_environments: false,
    credential: CredentialSchema {
        name: "NullCredential",
        about: "A credential for the provider that sends nothing.",
        put: "Lets the app use the provider that accepts everything and sends nothing.",
        fields: &[],
        shown: &[],
        example: "",
    },
    check: |_| Ok(()),
    payload_bytes: |_| 0,
    preview: None,
    complete: None,
    hosts: |_| Ok(Vec::new()),
    open: |secret, _| Ok(Arc::new(Null::open(secret)?)),
};

/// More than the rest of the server can process: this provider is never the bottleneck.
const RATE_PER_SECOND: u64 = 10_000_000;

/// Accepts every attempt at once.
#[derive(Debug, Default)]
pub struct Null {
    accepted: AtomicU64,
}

impl Null {
    /// Parses a credential, which is an empty object.
    pub fn open(secret: &str) -> Result<Self, CredentialError> {
        let map = credential::parse(secret)?;
        Fields::new(&map, "").only(&[])?;
        Ok(Self::default())
    }

    /// Counts the accepted deliveries so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Provider for Null {
    fn kind(&self) -> ProviderKind {
        ProviderKind::Null
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.accepted.fetch_add(batch.devices.len() as u64, Ordering::Relaxed);
        vec![Outcome::Accepted; batch.devices.len()]
    }

    fn stats(&self) -> ProviderStats {
        ProviderStats { delivery_rate: RATE_PER_SECOND, ..ProviderStats::default() }
    }
}
