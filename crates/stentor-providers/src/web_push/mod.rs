//! Web Push (RFC 8030, 8291, 8292): to browsers, and to all receivers of UnifiedPush.

pub mod credential;
mod descriptor;
mod errors;
mod payload;
mod requests;
mod subscription;
mod vapid;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::HeaderValue;
use parking_lot::Mutex;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Outcome;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble, ServiceStanding,
};
use stentor_http2::{Excerpt, Keep};

use self::credential::WebPushCredential;
pub(crate) use self::descriptor::DESCRIPTOR;
use self::vapid::VapidHeader;
use crate::hosts::{Answer, HostDialect, HostResponse, HostSender};
use crate::{Setup, replies};

/// Push services whose signed headers are kept; beyond them all are signed anew.
const HEADERS_MAX_COUNT: usize = 1_024;

/// Web Push with one app's key.
pub struct WebPush(HostSender<WebPushDialect>);

/// The protocol between this sender and a push service.
struct WebPushDialect {
    credential: WebPushCredential,
    clock: Arc<dyn Clock>,
    /// The headers for each push service: with the present key, and with the one before.
    headers: Mutex<HashMap<String, [VapidHeader; 2]>>,
}

impl WebPush {
    /// Parses a credential.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let (credential, clock) = (WebPushCredential::parse(secret)?, Arc::clone(&setup.clock));
        let roots = credential.roots.clone();
        let dialect = WebPushDialect { credential, clock, headers: Mutex::default() };
        HostSender::new(dialect, roots, setup).map(Self)
    }
}

impl HostDialect for WebPushDialect {
    const KEEP: Keep = Keep::Excerpts(Excerpt { headers: replies::HEADERS, body: errors::excerpt });

    fn has_other_header(&self) -> bool {
        self.credential.previous.is_some()
    }

    async fn authorization(
        &self,
        origin: &str,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, Answer> {
        let WebPushCredential { key, previous, subject, .. } = &self.credential;
        let (place, key) = match refused {
            None => (0, Some(key)),
            Some(_) => (1, previous.as_ref()),
        };
        let Some(key) = key else { return Ok(None) };
        let mut held = self.headers.lock();
        if held.len() >= HEADERS_MAX_COUNT && !held.contains_key(origin) {
            held.clear();
        }
        let header =
            held.entry(origin.to_owned()).or_default()[place].get(key, origin, subject, self.clock.now());
        // A key that does not sign is as a key that is refused.
        header.map(Some).ok_or(Answer::Refused)
    }

    fn read(&self, response: &HostResponse<'_>, retry_after: Option<Duration>) -> Answer {
        errors::answer(response.status(), response.body(), retry_after)
    }
}

#[async_trait]
impl Provider for WebPush {
    fn kind(&self) -> ProviderKind {
        ProviderKind::WebPush
    }

    async fn send(&self, batch: Batch) -> Vec<Outcome> {
        self.send_until(batch, Box::new(drop), Box::pin(std::future::pending())).await
    }

    async fn send_until(&self, batch: Batch, early: Early<'_>, cut: Cut<'_>) -> Vec<Outcome> {
        let count = batch.devices.len();
        let batch = requests::batch_of(batch, self.0.dialect().credential.navigate.as_deref());
        self.0.send_until(batch, count, early, cut).await
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        self.0.trouble()
    }

    fn stats(&self) -> ProviderStats {
        self.0.stats()
    }

    fn services(&self) -> Vec<ServiceStanding> {
        self.0.services()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
