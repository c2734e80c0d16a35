//! Load beside a campaign: devices and users are saved at a fixed rate while it runs.

use super::site::{SiteApp, registration};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stentor_lab::plan::Background;
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::devices::DevicePopulation;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Running saves; they end with it.
pub(super) struct Saves {
    counts: Arc<SaveCounts>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct SaveCounts {
    saved: AtomicU64,
    failed: AtomicU64,
    /// Response times of the saves.
    took_ms: Mutex<Samples>,
}

#[derive(Clone, Copy)]
enum SavedKind {
    Device,
    User,
}

impl Saves {
    /// Starts to save devices and users of an app.
    pub(super) fn start(app: &SiteApp, rates: Background) -> Self {
        let counts = Arc::new(SaveCounts::default());
        let mut tasks = JoinSet::new();
        let kinds = [
            (SavedKind::Device, rates.device_saves_per_second),
            (SavedKind::User, rates.user_saves_per_second),
        ];
        for (kind, per_second) in kinds.into_iter().filter(|(_, per_second)| *per_second > 0) {
            let every = Duration::from_secs(1) / per_second;
            tasks.spawn(save(kind, app.client.clone(), app.fleet, every, counts.clone()));
        }
        Self { counts, _tasks: tasks }
    }

    /// Numbers of successful and of failed saves.
    pub(super) fn counts(&self) -> (u64, u64) {
        // The sums need not be consistent: a save between both reads is in one of them or in none.
        (self.counts.saved.load(Ordering::Relaxed), self.counts.failed.load(Ordering::Relaxed))
    }

    /// The quantile `part` of the response times, in milliseconds.
    pub(super) fn quantile_ms(&self, part: f64) -> Option<f64> {
        self.counts.took_ms.lock().quantile(part)
    }
}

/// Saves one after the other. A slow response delays the next save, which shows in the count.
async fn save(
    kind: SavedKind,
    client: ApiClient,
    fleet: DevicePopulation,
    every: Duration,
    counts: Arc<SaveCounts>,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for place in (0..fleet.devices()).cycle() {
        ticks.tick().await;
        let started_at = Instant::now();
        let reply = match kind {
            SavedKind::Device => client.post("/v1/devices", &registration(fleet, fleet.member(place))).await,
            SavedKind::User => client.put(&format!("/v1/users/user-{place}"), &json!({})).await,
        };
        let took_ms = 1000.0 * started_at.elapsed().as_secs_f64();
        counts.took_ms.lock().push(took_ms);
        let counter = if reply.is_ok() { &counts.saved } else { &counts.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
