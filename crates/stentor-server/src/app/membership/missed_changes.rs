//! Changes by other servers that this one has missed, or could not read.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, MessageId};
use tokio::sync::Notify;

/// Most campaigns that are noted one by one; beyond, everything is reloaded.
const ACTED_MAX_COUNT: usize = 16_384;

/// Changes to be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missed {
    /// Everything may be different.
    pub(super) all: bool,
    /// Campaigns that were paused, resumed or canceled.
    pub(super) acted: BTreeSet<(AppId, MessageId)>,
}

/// The noted changes and a signal for new ones.
#[derive(Debug, Default)]
pub(super) struct MissedChanges {
    missed: Mutex<Missed>,
    noted: Notify,
}

impl MissedChanges {
    /// Notes that everything may be different.
    pub(super) fn note_all(&self) {
        self.lock().all = true;
        self.noted.notify_one();
    }

    /// Notes that a campaign was paused, resumed or canceled.
    pub(super) fn note_acted(&self, app: AppId, message: MessageId) {
        let mut missed = self.lock();
        if missed.acted.len() < ACTED_MAX_COUNT {
            missed.acted.insert((app, message));
        } else {
            missed.all = true;
        }
        drop(missed);
        self.noted.notify_one();
    }

    /// Waits until a change is noted, and takes all of them.
    pub(super) async fn next(&self) -> Missed {
        loop {
            self.noted.notified().await;
            let missed = std::mem::take(&mut *self.lock());
            if missed != Missed::default() {
                return missed;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Missed> {
        self.missed.lock()
    }
}
