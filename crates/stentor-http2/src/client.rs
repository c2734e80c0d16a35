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

/// Sends batches of requests to one endpoint over as few connections as its stream limits permit.
///
/// Connections are opened on demand. Dropping the client lets its open streams end.
pub struct Client {
    pool: Arc<Pool>,
    dialer: Arc<Dialer>,
}

impl Client {
    /// Checks the endpoint and its roots; does not connect yet.
    pub fn new(endpoint: &Endpoint, limits: Limits) -> Result<Self, Fault> {
        Self::that_halts(endpoint, limits, |_| false)
    }

    /// Like [`Self::new`], with `halts`, which returns true for a response that demands a pause.
    ///
    /// The client halts when ten such responses have come and they make up at least half of the last 256. Requests that wait for a stream,
    /// and those submitted within the next half second, are then not sent ([`Fault::Halted`]). The caller decides how long to wait.
    pub fn that_halts(
        endpoint: &Endpoint,
        limits: Limits,
        halts: fn(&Response) -> bool,
    ) -> Result<Self, Fault> {
        let dialer = Arc::new(Dialer::new(endpoint)?);
        let pool = Pool::new(opener(Arc::clone(&dialer)), origin(endpoint)?, limits, halts);
        Ok(Self { pool, dialer })
    }

    /// Sends every request and waits for all replies; reply i belongs to request i.
    ///
    /// If the returned future is dropped, requests that have no stream yet are never sent.
    pub async fn send(&self, batch: RequestBatch) -> Vec<Reply> {
        self.send_until(batch, std::future::pending()).await.into_vec()
    }

    /// Sends every request and waits for all replies, or for `cut`. After `cut` it returns the replies received so far.
    ///
    /// Of the others, requests without a stream are [`Reply::NotSent`] and will never get one; the rest are [`Reply::Unanswered`].
    pub async fn send_until(&self, batch: RequestBatch, cut: impl Future<Output = ()>) -> Replies {
        self.start(batch).all(cut).await
    }

    /// Begins to send every request. Requests that have no stream when the returned value is dropped are never sent.
    pub fn start(&self, batch: RequestBatch) -> Sending<'_> {
        let wait = self.pool.limits.queue_timeout();
        let wait = batch.start_within.map_or(wait, |most| most.min(wait));
        let work = Work::new(batch, &self.pool.origin, Instant::now() + wait);
        if work.count > 0 {
            self.pool.submit(&work);
        }
        Sending::new(&self.pool, work)
    }

    /// Opens the first connection in the background, unless one exists.
    pub fn warm(&self) {
        self.pool.warm();
    }

    /// Opens a separate connection, up to the point where requests could be sent, and closes it.
    pub async fn check(&self) -> Result<(), Fault> {
        let limits = &self.pool.limits;
        let dialed = tokio::time::timeout(limits.connect_timeout(), self.dialer.dial(limits)).await;
        dialed.unwrap_or(Err(Fault::ConnectTimeout)).map(drop)
    }

    /// Returns the fault of the last attempt to connect, unless a connection has got a response since.
    #[must_use]
    pub fn trouble(&self) -> Option<Fault> {
        self.pool.trouble()
    }

    /// Halves the number of requests in flight, because a response demanded it.
    pub fn slow_down(&self) {
        self.pool.congestion.slow_down();
    }

    /// Records that `count` of `total` responses reported an overloaded peer. More than one in five halve the number of requests in flight,
    /// as resets do.
    pub fn note_overload(&self, count: usize, total: usize) {
        self.pool.congestion.failed_of(count, total);
    }

    /// Returns the state and the counters of the client.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// Accepts no more requests, waits for the outstanding responses, and closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Returns the fields at the beginning of every request to the endpoint.
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
