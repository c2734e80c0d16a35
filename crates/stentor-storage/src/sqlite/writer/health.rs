//! Whether what is written is kept, and whether the thread that writes lives.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;
use tokio::sync::watch;

/// How long the end of the last transaction says how the next will end.
const FRESH: Duration = Duration::from_secs(1);

/// What is known of the thread and of its file.
#[derive(Default)]
pub(super) struct Health {
    /// How the last transaction ended that wrote anything or failed, and when.
    last: Mutex<Option<(Instant, Result<(), StoreError>)>>,
    /// The words of the panic of which the thread died.
    end: watch::Sender<Option<String>>,
}

/// Whether a transaction would be kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WriteHealth {
    Keeps,
    Fails(StoreError),
    /// It must be tried.
    Unknown,
}

impl Health {
    /// Notes how a transaction ended; one that wrote nothing says nothing unless it failed.
    pub(super) fn note(&self, ended: &Result<(), StoreError>, wrote: bool, now: Instant) {
        if wrote || ended.is_err() {
            *self.lock() = Some((now, ended.clone()));
        }
    }

    /// Returns what the last transaction says of the next.
    pub(super) fn standing(&self, now: Instant) -> WriteHealth {
        match &*self.lock() {
            Some((at, ended)) if now.saturating_duration_since(*at) < FRESH => match ended {
                Ok(()) => WriteHealth::Keeps,
                Err(error) => WriteHealth::Fails(error.clone()),
            },
            _ => WriteHealth::Unknown,
        }
    }

    /// Notes that the thread died.
    pub(super) fn end(&self, cause: String) {
        self.end.send_replace(Some(cause));
    }

    /// Waits until the thread has died, and gives the words of its panic.
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

/// Returns the words of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}
