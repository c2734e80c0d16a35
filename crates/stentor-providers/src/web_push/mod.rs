//! Web Push (RFC 8030, 8291, 8292): to browsers, and to all receivers of UnifiedPush.
//!
//! A device names its own push service: the endpoint of its subscription. Each push service has its own connections and its own pace
//! ([`pace`]), so that one which is slow, down or full delays its own deliveries alone.

pub mod credential;
mod descriptor;
pub mod errors;
mod host;
mod hosts;
mod http1;
pub mod pace;
mod payload;
mod progress;
mod requests;
mod subscription;
mod vapid;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{
    Batch, CredentialError, Cut, Early, Provider, ProviderStats, ProviderTrouble, ServiceStanding,
};

use self::credential::WebPushCredential;
pub(crate) use self::descriptor::DESCRIPTOR;
use self::host::{Host, Sender};
use self::hosts::Hosts;
use self::http1::Http1;
use self::progress::Progress;
use self::requests::WebPushBatch;
use crate::{Setup, replies};

/// Wait of a delivery for which no push service can be opened, because too many others are in use.
const HOST_WAIT: Duration = Duration::from_secs(5);

/// Web Push with one app's key.
pub struct WebPush {
    sender: Sender,
    hosts: Hosts,
}

impl WebPush {
    /// Parses a credential.
    pub fn open(secret: &str, setup: &Setup) -> Result<Self, CredentialError> {
        let credential = WebPushCredential::parse(secret)?;
        let http1 = Http1::new(&credential.roots, &setup.limits, &setup.outbound)?;
        let clock = Arc::clone(&setup.clock);
        Ok(Self { sender: Sender { credential, http1, clock }, hosts: Hosts::new(setup.clone()) })
    }

    /// Divides the requests among their push services. Those without one get their outcome at once.
    fn divide(&self, batch: &WebPushBatch, count: usize, progress: &Progress) -> Vec<(Arc<Host>, Vec<usize>)> {
        let mut by_origin: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for index in 0..count {
            match batch.requests.subscription(index) {
                Some(subscription) => by_origin.entry(subscription.origin).or_default().push(index),
                None => progress.put([(index, malformed())]),
            }
        }
        let mut divided = Vec::with_capacity(by_origin.len());
        for (origin, places) in by_origin {
            match self.hosts.get(origin, &self.sender, batch.now) {
                Some(host) => divided.push((host, places)),
                None => {
                    let full = Outcome::Deferred { reason: Reason::Unavailable, retry_after: HOST_WAIT };
                    progress.put(places.into_iter().map(|place| (place, full.clone())));
                }
            }
        }
        divided
    }
}

fn malformed() -> Outcome {
    Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device }
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
        let (cut, count) = (cut.shared(), batch.devices.len());
        let progress = Progress::new(count);
        let batch = WebPushBatch::new(batch, self.sender.credential.navigate.as_deref());
        let divided = self.divide(&batch, count, &progress);
        let sending = divided
            .iter()
            .map(|(host, places)| host.send(&self.sender, &batch, places.clone(), &progress, cut.clone()));
        let mut sending = Box::pin(join_all(sending));
        let stalled = tokio::select! {
            biased;
            _ = &mut sending => false,
            () = progress.stalled() => true,
        };
        if stalled {
            early(progress.so_far());
            sending.as_mut().await;
        }
        drop(sending);
        progress.into_all()
    }

    fn trouble(&self) -> Option<ProviderTrouble> {
        self.hosts.all().iter().find_map(|host| host.trouble())
    }

    fn stats(&self) -> ProviderStats {
        let all = self.hosts.all();
        let clients = all.iter().filter_map(|host| host.client()).map(replies::stats);
        clients.fold(ProviderStats::default(), ProviderStats::and)
    }

    fn services(&self) -> Vec<ServiceStanding> {
        let now = self.sender.clock.now();
        let mut limiting: Vec<_> = self.hosts.all().iter().filter_map(|host| host.standing(now)).collect();
        limiting.sort_by(|one, other| one.origin.cmp(&other.origin));
        limiting
    }

    async fn close(&self) {
        join_all(self.hosts.all().iter().filter_map(|host| host.client()).map(stentor_http2::Client::close)).await;
    }
}
