//! Push services that devices name: a provider whose push tokens are URLs sends to many hosts at once.
//!
//! Each host has its own connections and its own pace ([`pace`]), so that one which is slow, down or full delays its own deliveries alone.
//! A provider brings its requests and its dialect.

mod answer;
mod host;
mod http1;
mod pace;
mod progress;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue};
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{
    CredentialError, Cut, Early, ProviderStats, ProviderTrouble, ServiceStanding,
};
use stentor_core::time::Timestamp;
use stentor_http2::{Keep, Requests, Response, Roots};

pub(crate) use self::answer::Answer;
use self::host::Host;
use self::http1::Http1;
use self::progress::Progress;
use self::table::Hosts;
use crate::{Setup, replies};

/// Wait of a delivery for which no host can be opened, because too many others are in use.
const HOST_WAIT: Duration = Duration::from_secs(5);

/// One message to many devices, each at its own URL.
pub(crate) trait HostRequests: Requests {
    /// Returns the scheme, host and port of a device's push service; `None` if its token names none.
    fn origin(&self, index: usize) -> Option<&str>;

    /// Returns the path and the body of a request; `None` if it cannot be written.
    fn request(&self, index: usize) -> Option<(&str, Vec<u8>)>;
}

/// A batch, as all hosts share it.
pub(crate) struct HostBatch {
    /// The headers of every request, except the one that identifies the sender.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) requests: Arc<dyn HostRequests>,
    /// The longest wait for a stream.
    pub(crate) start_within: Option<Duration>,
    /// True if the deliveries failed before.
    pub(crate) repeated: bool,
    pub(crate) now: Timestamp,
}

/// A response, over either version of HTTP.
pub(crate) enum HostResponse<'a> {
    Http2(&'a Response),
    Http1 { status: u16, headers: &'a HeaderMap, body: &'a [u8] },
}

impl HostResponse<'_> {
    pub(crate) const fn status(&self) -> u16 {
        match self {
            Self::Http2(response) => response.status,
            Self::Http1 { status, .. } => *status,
        }
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        match self {
            Self::Http2(response) => response.header(name),
            Self::Http1 { headers, .. } => headers.get(name),
        }
    }

    pub(crate) fn body(&self) -> &[u8] {
        match self {
            Self::Http2(response) => response.body(),
            Self::Http1 { body, .. } => body,
        }
    }
}

/// The protocol of a provider's push services.
pub(crate) trait HostDialect: Send + Sync + 'static {
    /// The parts of a response that [`Self::read`] needs.
    const KEEP: Keep;

    /// Returns true if a refused request may be sent again with another header.
    fn has_other_header(&self) -> bool;

    /// Returns the header that identifies the sender at an origin. With `refused` it returns another one than that; `None` if there is none.
    /// An error is the answer to every request.
    fn authorization(
        &self,
        origin: &str,
        refused: Option<&HeaderValue>,
    ) -> impl Future<Output = Result<Option<HeaderValue>, Answer>> + Send;

    /// Reads a response; `retry_after` is from its header.
    fn read(&self, response: &HostResponse<'_>, retry_after: Option<Duration>) -> Answer;
}

/// The sender to all hosts with one credential.
pub(crate) struct HostSender<D> {
    dialect: D,
    http1: Http1,
    clock: Arc<dyn Clock>,
    hosts: Hosts,
}

impl<D: HostDialect> HostSender<D> {
    /// Prepares for hosts whose certificates these roots vouch for.
    pub(crate) fn new(dialect: D, roots: Roots, setup: &Setup) -> Result<Self, CredentialError> {
        let http1 = Http1::new(&roots, &setup.limits, &setup.outbound)?;
        Ok(Self { dialect, http1, clock: Arc::clone(&setup.clock), hosts: Hosts::new(setup.clone(), roots) })
    }

    pub(crate) const fn dialect(&self) -> &D {
        &self.dialect
    }

    /// Sends as [`Provider::send_until`](stentor_core::ports::provider::Provider::send_until) does.
    pub(crate) async fn send_until(
        &self,
        batch: HostBatch,
        count: usize,
        early: Early<'_>,
        cut: Cut<'_>,
    ) -> Vec<Outcome> {
        let (cut, progress) = (cut.shared(), Progress::new(count));
        let divided = self.divide(&batch, count, &progress);
        let sending =
            divided.iter().map(|(host, places)| host.send(self, &batch, places, &progress, cut.clone()));
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

    /// Divides the requests among their hosts. Those without one get their outcome at once.
    fn divide(&self, batch: &HostBatch, count: usize, progress: &Progress) -> Vec<(Arc<Host>, Vec<usize>)> {
        let mut by_origin: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for index in 0..count {
            match batch.requests.origin(index) {
                Some(origin) => by_origin.entry(origin).or_default().push(index),
                None => progress.put([(index, malformed())]),
            }
        }
        let mut divided = Vec::with_capacity(by_origin.len());
        for (origin, places) in by_origin {
            match self.hosts.get(origin, batch.now) {
                Some(host) => divided.push((host, places)),
                None => {
                    let full = Outcome::Deferred { reason: Reason::Unavailable, retry_after: HOST_WAIT };
                    progress.put(places.into_iter().map(|place| (place, full.clone())));
                }
            }
        }
        divided
    }

    pub(crate) fn trouble(&self) -> Option<ProviderTrouble> {
        self.hosts.all().iter().find_map(|host| host.trouble())
    }

    pub(crate) fn stats(&self) -> ProviderStats {
        let all = self.hosts.all();
        let clients = all.iter().filter_map(|host| host.client()).map(replies::stats);
        clients.fold(ProviderStats::default(), ProviderStats::and)
    }

    pub(crate) fn services(&self) -> Vec<ServiceStanding> {
        let now = self.clock.now();
        let mut limiting: Vec<_> = self.hosts.all().iter().filter_map(|host| host.standing(now)).collect();
        limiting.sort_by(|one, other| one.origin.cmp(&other.origin));
        limiting
    }

    pub(crate) async fn close(&self) {
        join_all(self.hosts.all().iter().filter_map(|host| host.client()).map(stentor_http2::Client::close))
            .await;
    }
}

fn malformed() -> Outcome {
    Outcome::Rejected { reason: Reason::InvalidToken, scope: OutcomeScope::Device }
}
