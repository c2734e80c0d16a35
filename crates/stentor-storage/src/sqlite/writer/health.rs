//! The health of the writer thread: whether its commits succeed, and whether it lives.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;
use tokio::sync::watch;

/// The time for which the result of the last transaction predicts the next one's.
const FRESH: Duration = Duration::from_secs(1);

/// The state of the thread and of its file.
#[derive(Default)]
pub(super) struct Health {
    /// The time and result of the last transaction that wrote anything or failed.
    last: Mutex<Option<(Instant, Result<(), StoreError>)>>,
    /// The message of the panic that ended the thread.
    end: watch::Sender<Option<String>>,
}

/// The prospects of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WriteHealth {
    Keeps,
    Fails(StoreError),
    /// Only a trial can show it.
    Unknown,
}

impl Health {
    /// Records the result of a transaction; a successful one without writes shows nothing.
    pub(super) fn note(&self, ended: &Result<(), StoreError>, wrote: bool, now: Instant) {
        if wrote || ended.is_err() {
            *self.lock() = Some((now, ended.clone()));
        }
    }

    /// Returns the prospects of the next transaction, by the last one.
    pub(super) fn standing(&self, now: Instant) -> WriteHealth {
        match &*self.lock() {
            Some((at, ended)) if now.saturating_duration_since(*at) < FRESH => match ended {
                Ok(()) => WriteHealth::Keeps,
                Err(error) => WriteHealth::Fails(error.clone()),
            },
            _ => WriteHealth::Unknown,
        }
    }

    /// Records that the thread died.
    pub(super) fn end(&self, cause: String) {
        self.end.send_replace(Some(cause));
    }

    /// Waits until the thread has died; returns the message of its panic.
    pub(super) async fn ended(&self) -> String {
        let mut end = self.end.subscribe();
        let cause = end.wait_for(Option::is_some).await.ok().and_then(|cause| cause.clone());
        match cause {
            Some(cause) => cause,
            // Its own sender cannot be gone.
            None => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Instant, Result<(), StoreError>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the message of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}
