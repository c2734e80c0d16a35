//! The places of messages that are sent at once. Each app has a number of them, and a message has one until it is settled.
//!
//! A caller waits briefly for a place, so that messages are not accepted faster than they are sent. A message without a place waits in the
//! queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use stentor_core::id::AppId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most unsettled messages of one app. A crash puts them in doubt.
const PER_APP_MAX_COUNT: usize = 1_024;
/// The most unsettled messages of all apps.
const OF_ALL_MAX_COUNT: usize = 4_096;
/// The longest wait for a place of the app.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Apps with places of their own. At this number, the places of apps that use none are dropped.
const APPS_MAX_COUNT: usize = 1_024;

/// The places of all apps.
pub(crate) struct AtOncePlaces {
    of_all: Arc<Semaphore>,
    by_app: Mutex<HashMap<AppId, Arc<Semaphore>>>,
}

/// The place of one message; dropping it gives it back.
pub(crate) struct AtOncePlace {
    _of_app: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for AtOncePlaces {
    fn default() -> Self {
        Self { of_all: Arc::new(Semaphore::new(OF_ALL_MAX_COUNT)), by_app: Mutex::default() }
    }
}

impl AtOncePlaces {
    /// Takes a place for a message of an app, and waits for one if the app alone has none.
    pub(crate) async fn take(&self, app: AppId) -> Option<AtOncePlace> {
        let own = self.of(app);
        let of_app = match Arc::clone(&own).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => tokio::time::timeout(WAIT_MAX, own.acquire_owned()).await.ok()?.ok()?,
        };
        // Without a wait: another app that takes them all holds nobody up.
        let of_all = Arc::clone(&self.of_all).try_acquire_owned().ok()?;
        Some(AtOncePlace { _of_app: of_app, _of_all: of_all })
    }

    /// Counts the places in use: of all apps, and of one.
    pub(crate) fn used(&self, app: AppId) -> (u64, u64) {
        let used = |most: usize, places: &Semaphore| most.saturating_sub(places.available_permits()) as u64;
        let of_app = self.by_app.lock().get(&app).map(|places| used(PER_APP_MAX_COUNT, places));
        (used(OF_ALL_MAX_COUNT, &self.of_all), of_app.unwrap_or_default())
    }

    fn of(&self, app: AppId) -> Arc<Semaphore> {
        let mut by_app = self.by_app.lock();
        if by_app.len() >= APPS_MAX_COUNT && !by_app.contains_key(&app) {
            by_app.retain(|_, places| places.available_permits() < PER_APP_MAX_COUNT);
        }
        Arc::clone(by_app.entry(app).or_insert_with(|| Arc::new(Semaphore::new(PER_APP_MAX_COUNT))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_app_that_takes_all_its_places_waits_briefly_and_no_other_app_does() {
        let places = AtOncePlaces::default();
        let (greedy, modest) = (AppId::from_raw(1), AppId::from_raw(2));
        let mut held = Vec::new();
        for _ in 0..PER_APP_MAX_COUNT {
            held.push(places.take(greedy).await.expect("a place"));
        }
        let began = tokio::time::Instant::now();
        assert!(places.take(greedy).await.is_none());
        assert_eq!(began.elapsed(), WAIT_MAX);
        assert!(places.take(modest).await.is_some());
        let most = PER_APP_MAX_COUNT as u64;
        assert_eq!((places.used(greedy), places.used(modest)), ((most, most), (most, 0)));
        let (next, ()) = tokio::join!(places.take(greedy), async { drop(held.pop()) });
        assert!(next.is_some(), "a place that is given back goes to the caller that waits");
    }

    #[tokio::test]
    async fn apps_that_use_no_places_are_not_remembered() {
        let places = AtOncePlaces::default();
        let held = places.take(AppId::from_raw(0)).await;
        for app in 1..=2 * APPS_MAX_COUNT as u64 {
            places.take(AppId::from_raw(app)).await.expect("a place");
        }
        assert!(places.by_app.lock().len() <= APPS_MAX_COUNT);
        assert_eq!(places.used(AppId::from_raw(0)), (1, 1));
        drop(held);
    }
}
