//! The connection that receives the notifications of other processes on a channel (`LISTEN`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use stentor_core::ports::store::StoreError;
use tokio::sync::Notify;

use super::transactor::Transactor;
use crate::sql::Done;

/// The interval at which the thread checks whether the listener is still in use.
const LISTEN: Duration = Duration::from_secs(2);
/// The silence after which the thread checks the connection to the server.
const ASKED_AFTER: Duration = Duration::from_secs(10);
/// The pause before a new connection attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Wakes waiting tasks after a notification of this or another process.
#[derive(Default)]
pub(super) struct ChannelListener {
    changes: Notify,
}

impl ChannelListener {
    /// Starts the thread, which listens for the notifications that `counts` accepts. It ends by itself once the listener is dropped.
    pub(super) fn start(
        transactor: Transactor,
        channel: &'static str,
        counts: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Arc<Self>, StoreError> {
        let listener = Arc::new(Self::default());
        let mut listening = ListenThread { transactor, channel, counts, listener: Arc::downgrade(&listener) };
        let thread = std::thread::Builder::new().name("stentor-listen".to_owned());
        let started = thread.spawn(move || listening.go_on());
        started.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(listener)
    }

    /// Wakes all waiting tasks, or the next one to wait if there is none.
    pub(super) fn wake(&self) {
        self.changes.notify_waiters();
        // For a task between two waits: `notify_waiters` stores no permit.
        self.changes.notify_one();
    }

    /// Waits for a notification since the last call; may return without one.
    pub(super) async fn woken(&self) {
        self.changes.notified().await;
    }
}

struct ListenThread<F> {
    transactor: Transactor,
    channel: &'static str,
    counts: F,
    listener: Weak<ChannelListener>,
}

impl<F: Fn(&str) -> bool> ListenThread<F> {
    /// Listens until the listener is dropped. While the server is away, waiting tasks check for themselves now and then.
    fn go_on(&mut self) {
        while self.listener.strong_count() > 0 {
            if let Err(fault) = self.listen() {
                tracing::debug!(%fault, channel = self.channel, "nothing is heard of other processes now");
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Listens over one connection until it is lost.
    fn listen(&mut self) -> Done<()> {
        let connection = self.transactor.connect()?;
        connection.batch(&format!("LISTEN {}", self.channel))?;
        let mut is_new = true;
        loop {
            let Some(listener) = self.listener.upgrade() else { return Ok(()) };
            // Notifications before this `LISTEN` were lost, so waiting tasks check once.
            if std::mem::take(&mut is_new) {
                listener.wake();
            }
            // Not held during the wait: otherwise the last user could not drop it.
            drop(listener);
            let heard = connection.next_notice(LISTEN)?;
            // The connection may be idle for hours, so a query checks whether the server is still there.
            if heard.is_none() && connection.is_quiet_for(ASKED_AFTER) {
                connection.ask_now("SELECT 1")?;
            }
            if heard.is_some_and(|word| (self.counts)(&word))
                && let Some(listener) = self.listener.upgrade()
            {
                listener.wake();
            }
        }
    }
}
