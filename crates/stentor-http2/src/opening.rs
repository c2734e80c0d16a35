//! Opening of connections for a pool: a backoff after failures, the dialing, and then the connection itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::connection;
use crate::dial::Dialer;
use crate::fault::Fault;
use crate::pool::{Opener, Pool};

/// Returns the opener of connections for a pool. Each connection is dialed and then runs to its end.
pub(crate) fn opener(dialer: Arc<Dialer>) -> Opener {
    Box::new(move |pool, not_before| open(Arc::clone(&dialer), pool, not_before).boxed())
}

async fn open(dialer: Arc<Dialer>, pool: Arc<Pool>, not_before: Option<Instant>) {
    if let Some(instant) = not_before {
        pool.pause_until(instant).await;
    }
    // The pool was closed during the pause; `close` waits until no connection is opening.
    if pool.is_closed() {
        return pool.failed_to_open(&Fault::Closed);
    }
    // Measured after the pause, which is no part of connecting.
    let deadline = Instant::now() + pool.limits.connect_timeout();
    let dialed = tokio::time::timeout_at(deadline, dialer.dial(&pool.limits));
    // An uncaught panic would leave requests waiting that rely on this attempt.
    let dialed = AssertUnwindSafe(dialed).catch_unwind().await.map_err(|_| panicked());
    match dialed.and_then(|dialed| dialed.unwrap_or(Err(Fault::ConnectTimeout))) {
        Ok(opened) => connection::run(pool, opened, deadline).await,
        Err(fault) => {
            tracing::debug!(%fault, "no connection");
            pool.failed_to_open(&fault);
        }
    }
}

fn panicked() -> Fault {
    Fault::Connect("an error in this program ended the attempt".into())
}
