//! The detection of silent devices: one clock for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::id::DeviceId;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::limits::{SILENCE_LOOK_INTERVAL, SILENCE_LOOK_LATEST};
use crate::registry::SessionRegistry;
use crate::session_state::{Closed, SessionState};

/// The silence of a session's device. Without a limit it may be silent for ever.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Time of the last sign of life, since the start of the clock.
    received_at_ms: AtomicU64,
    /// Longest silence; zero without a limit.
    longest_ms: AtomicU32,
    /// The second of its next check; entries for other seconds are outdated.
    look_at_second: AtomicU32,
}

/// The schedule of checks.
#[derive(Debug)]
pub(crate) struct SilenceClock {
    began: Instant,
    looks: Mutex<BTreeMap<u32, Vec<DeviceId>>>,
}

impl SilenceClock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), looks: Mutex::default() }
    }

    /// Records a sign of life of a device.
    pub(crate) fn received(&self, session: &SessionState) {
        // Called for every frame of every device: it only stores a time, which a later check reads.
        session.silence().received_at_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Ends a session once its device has been silent for `longest`, and at most one check interval more.
    pub(crate) fn watch(&self, session: &SessionState, longest: Duration) {
        let silence = session.silence();
        let longest_ms = u32::try_from(longest.as_millis()).unwrap_or(u32::MAX);
        silence.received_at_ms.store(self.now_ms(), Ordering::Relaxed);
        // After the time above: with a time of zero the device would have been silent since the start of the clock.
        silence.longest_ms.store(longest_ms, Ordering::Relaxed);
        self.look_later(session);
    }

    /// Runs the due checks, for as long as it is polled.
    pub(crate) async fn run(self: Arc<Self>, registry: Arc<SessionRegistry>) {
        let mut looks = interval(SILENCE_LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.look(&registry);
        }
    }

    fn look(&self, registry: &SessionRegistry) {
        let now_ms = self.now_ms();
        for (second, devices) in self.due(seconds(now_ms)) {
            for session in registry.connected(&devices) {
                let silence = session.silence();
                // A device that has reconnected since has a check of its own.
                if silence.look_at_second.load(Ordering::Relaxed) != second {
                    continue;
                }
                if silence.ends_at_ms() <= now_ms {
                    session.close(Closed::Silent);
                } else {
                    self.look_later(&session);
                }
            }
        }
    }

    /// Takes the checks up to this second.
    fn due(&self, second: u32) -> BTreeMap<u32, Vec<DeviceId>> {
        let mut looks = self.looks.lock();
        let later = looks.split_off(&second.saturating_add(1));
        std::mem::replace(&mut looks, later)
    }

    /// Schedules the next check of a session for the end of its allowed silence, within a maximum, so that entries of disconnected devices
    /// are removed in time.
    fn look_later(&self, session: &SessionState) {
        let silence = session.silence();
        let latest = self.now_ms() + u64::try_from(SILENCE_LOOK_LATEST.as_millis()).unwrap_or(u64::MAX);
        // The first whole second after it.
        let second = seconds(silence.ends_at_ms().min(latest)).saturating_add(1);
        // Set before it is in the list: an immediate check must not treat the entry as outdated. The list's lock orders both.
        silence.look_at_second.store(second, Ordering::Relaxed);
        let mut looks = self.looks.lock();
        looks.entry(second).or_default().push(session.identity().device);
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Silence {
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed).into())
    }

    fn ends_at_ms(&self) -> u64 {
        let longest_ms = self.longest_ms.load(Ordering::Relaxed);
        self.received_at_ms.load(Ordering::Relaxed).saturating_add(longest_ms.into())
    }
}

fn seconds(ms: u64) -> u32 {
    u32::try_from(ms / 1_000).unwrap_or(u32::MAX)
}
