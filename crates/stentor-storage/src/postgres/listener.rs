//! The connection that hears what other processes tell on a channel (`LISTEN`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use stentor_core::ports::store::StoreError;
use tokio::sync::Notify;

use super::transactor::Transactor;
use crate::sql::Done;

/// How long it listens before it looks whether anybody still wants to hear.
const LISTEN: Duration = Duration::from_secs(2);
/// After so long without a word it is asked whether the server is still there.
const ASKED_AFTER: Duration = Duration::from_secs(10);
/// How long to wait before a connection is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Wakes those who wait when something was told, here or by another process.
#[derive(Default)]
pub(super) struct ChannelListener {
    changes: Notify,
}

impl ChannelListener {
    /// Starts the thread that listens for words that `counts`; it ends by itself once nobody holds the listener any more.
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

    /// Wakes all who wait, and the next who comes when nobody does.
    pub(super) fn wake(&self) {
        self.changes.notify_waiters();
        // For who comes between two waits: `notify_waiters` leaves no permit.
        self.changes.notify_one();
    }

    /// Waits until something was told since the last call, or may have been.
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
    /// Listens for as long as anybody wants to hear. While the server is away, whoever waits looks by himself now and then.
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
            // What was told before this connection listened, nobody heard: who waits looks once.
            if std::mem::take(&mut is_new) {
                listener.wake();
            }
            // Not held while it waits: the last who wants to hear could not end it otherwise.
            drop(listener);
            let heard = connection.next_notice(LISTEN)?;
            // Nothing is said over it for hours: whether anybody is still there must be asked.
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
