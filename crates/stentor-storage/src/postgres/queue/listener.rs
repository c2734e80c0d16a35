//! The connection that hears of tickets that other processes put in.

use std::sync::{Arc, Weak};
use std::time::Duration;

use stentor_core::ports::store::StoreError;
use tokio::sync::Notify;

use super::super::fault::Done;
use super::super::transactor::Transactor;
use super::statements::CHANNEL;

/// How long it listens before it looks whether anybody still wants to hear.
const LISTEN: Duration = Duration::from_secs(2);
/// How long to wait before a connection is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Wakes those who wait when tickets were put in, here or by another process.
pub(super) struct TicketListener {
    changes: Notify,
}

impl TicketListener {
    /// Starts the thread that listens; it ends by itself once nobody holds the listener any more.
    pub(super) fn start(transactor: Transactor) -> Result<Arc<Self>, StoreError> {
        let listener = Arc::new(Self { changes: Notify::new() });
        let heard_by = Arc::downgrade(&listener);
        let thread = std::thread::Builder::new().name("stentor-listen".to_owned());
        let started = thread.spawn(move || listen(transactor, &heard_by));
        started.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(listener)
    }

    /// Wakes all who wait, and the next who comes when nobody does.
    pub(super) fn wake(&self) {
        self.changes.notify_waiters();
        self.changes.notify_one();
    }

    /// Waits until something was put in since the last call.
    pub(super) async fn woken(&self) {
        self.changes.notified().await;
    }
}

/// Listens for as long as anybody wants to hear. While the server is away, whoever waits looks by himself now and then.
fn listen(mut transactor: Transactor, heard_by: &Weak<TicketListener>) {
    while heard_by.strong_count() > 0 {
        if let Err(fault) = listen_once(&mut transactor, heard_by) {
            tracing::debug!(%fault, "nothing is heard of tickets now");
            std::thread::sleep(PAUSE);
        }
    }
}

/// Listens over one connection until it is lost.
fn listen_once(transactor: &mut Transactor, heard_by: &Weak<TicketListener>) -> Done<()> {
    let connection = transactor.connect()?;
    connection.batch(&format!("LISTEN {CHANNEL}"))?;
    loop {
        let heard = connection.next_notice(LISTEN)?;
        let Some(listener) = heard_by.upgrade() else { return Ok(()) };
        if heard {
            listener.wake();
        }
    }
}
