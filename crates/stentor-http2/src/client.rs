//! The client: batches in, replies out.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use stentor_http2_codec::hpack::OwnedField;
use tokio::time::Instant;

use crate::batch::{Replies, Reply, RequestBatch};
use crate::dial::Dialer;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::opening::opener;
use crate::pool::Pool;
use crate::response::Response;
use crate::sending::Sending;
use crate::stats::Stats;
use crate::work::Work;

/// Sends batches of requests to one endpoint over as few connections as its stream limits allow.
///
/// Connections are opened when there is something to send. Dropping the client lets its open streams end.
pub struct Client {
    pool: Arc<Pool>,
    dialer: Arc<Dialer>,
}

impl Client {
    /// Checks the endpoint and its roots; connects to nothing yet.
    pub fn new(endpoint: &Endpoint, limits: Limits) -> Result<Self, Fault> {
        Self::that_halts(endpoint, limits, |_| false)
    }

    /// The same, and `halts` tells of answers that ask to send nothing more for now.
    ///
    /// When ten of them, and at least half of the last 256 answers, ask for it, whatever waits for a stream, and what comes within half a second, is not sent
    /// ([`Fault::Halted`]); how long to wait is the caller's affair.
    pub fn that_halts(
        endpoint: &Endpoint,
        limits: Limits,
        halts: fn(&Response) -> bool,
    ) -> Result<Self, Fault> {
        let dialer = Arc::new(Dialer::new(endpoint)?);
        let pool = Pool::new(opener(Arc::clone(&dialer)), origin(endpoint)?, limits, halts);
        Ok(Self { pool, dialer })
    }

    /// Sends every request and waits for all replies; reply i answers request i.
    ///
    /// When the returned future is dropped, requests that have no stream yet are never sent.
    pub async fn send(&self, batch: RequestBatch) -> Vec<Reply> {
        self.send_until(batch, std::future::pending()).await.into_vec()
    }

    /// Sends every request and waits for all replies, or for `cut`: then it gives those that have come.
    ///
    /// Of the rest, [`Reply::NotSent`] are those without a stream, which will never have one, and
    /// [`Reply::Unanswered`] the others.
    pub async fn send_until(&self, batch: RequestBatch, cut: impl Future<Output = ()>) -> Replies {
        self.start(batch).all(cut).await
    }

    /// Begins to send every request. What has no stream when the returned value is dropped is never sent.
    pub fn start(&self, batch: RequestBatch) -> Sending<'_> {
        let wait = self.pool.limits.queue_timeout();
        let wait = batch.start_within.map_or(wait, |most| most.min(wait));
        let work = Work::new(batch, &self.pool.origin, Instant::now() + wait);
        if work.count > 0 {
            self.pool.submit(&work);
        }
        Sending::new(&self.pool, work)
    }

    /// Opens the first connection in the background, if there is none.
    pub fn warm(&self) {
        self.pool.warm();
    }

    /// Opens a connection beside the others, up to the point where requests could be sent, and lets it go.
    pub async fn check(&self) -> Result<(), Fault> {
        let limits = &self.pool.limits;
        let dialed = tokio::time::timeout(limits.connect_timeout(), self.dialer.dial(limits)).await;
        dialed.unwrap_or(Err(Fault::ConnectTimeout)).map(drop)
    }

    /// Returns why the last attempt to connect failed, unless a connection has answered since.
    #[must_use]
    pub fn trouble(&self) -> Option<Fault> {
        self.pool.trouble()
    }

    /// Halves the number of requests in flight, because an answer asked for less.
    pub fn slow_down(&self) {
        self.pool.congestion.slow_down();
    }

    /// Notes that so many of `total` answers said that the peer is overloaded; more than one in five halve the number
    /// of requests in flight, as resets do.
    pub fn note_overload(&self, count: usize, total: usize) {
        self.pool.congestion.failed_of(count, total);
    }

    /// Returns what the client is doing and has seen.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// Takes no more requests, waits for the answers that are due, and closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Returns what every request to the endpoint begins with.
fn origin(endpoint: &Endpoint) -> Result<Vec<OwnedField>, Fault> {
    let authority = endpoint.authority().map_err(|cause| Fault::Endpoint(cause.to_string().into()))?;
    let scheme = endpoint.scheme();
    let field = |name: &str, value: &str| OwnedField {
        name: name.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
        repeats: true,
    };
    Ok(vec![
        field(":method", "POST"),
        field(":scheme", scheme.as_str()),
        field(":authority", authority.as_str()),
    ])
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.pool.stop();
    }
}
