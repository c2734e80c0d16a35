//! Opening a connection for a pool: a pause after failures, the dialing, and then the connection itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::connection;
use crate::dial::Dialer;
use crate::fault::Fault;
use crate::pool::{Opener, Pool};

/// Returns what opens connections for a pool: each is dialed and then runs to its end.
pub(crate) fn opener(dialer: Arc<Dialer>) -> Opener {
    Box::new(move |pool, not_before| open(Arc::clone(&dialer), pool, not_before).boxed())
}

async fn open(dialer: Arc<Dialer>, pool: Arc<Pool>, not_before: Option<Instant>) {
    if let Some(instant) = not_before {
        pool.pause_until(instant).await;
    }
    // Closed during the pause: whoever closes waits until none is opening.
    if pool.is_closed() {
        return pool.failed_to_open(&Fault::Closed);
    }
    // After the pause, which is no part of connecting.
    let deadline = Instant::now() + pool.limits.connect_timeout();
    let dialed = tokio::time::timeout_at(deadline, dialer.dial(&pool.limits));
    // A panic here would leave those waiting who rely on this attempt.
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
