//! Look-ups of keys in the store: one per key at a time, shared by concurrent callers, and a limited number at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, Semaphore};

use super::super::{ErrorCode, Problem, ServiceResult};

/// Most concurrent look-ups in the store, so that guessed keys do not delay valid ones.
const RUNNING_MAX_COUNT: usize = 64;
/// Most keys being looked up or waiting; further ones are refused.
const WAITING_MAX_COUNT: usize = 1_024;

/// The shared result of a look-up.
type LookUpCell<T> = Arc<OnceCell<ServiceResult<T>>>;
/// The key of a look-up, with the number of removals that the caller has seen: a later caller must not get the result of a look-up that
/// began before a removal.
type LookUpKey<K> = (K, u64);

type RunningLookUps<K, T> = HashMap<LookUpKey<K>, (LookUpCell<T>, usize)>;

/// The running look-ups.
#[derive(Debug)]
pub(super) struct LookUps<K, T> {
    /// With the number of waiting callers.
    running: Mutex<RunningLookUps<K, T>>,
    places: Semaphore,
}

impl<K, T> Default for LookUps<K, T> {
    fn default() -> Self {
        Self { running: Mutex::default(), places: Semaphore::new(RUNNING_MAX_COUNT) }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> LookUps<K, T> {
    /// Runs a look-up, or waits for a running one of the same key.
    pub(super) async fn once(
        &self,
        key: LookUpKey<K>,
        find: impl Future<Output = ServiceResult<T>>,
    ) -> ServiceResult<T> {
        let waiter = self.join(key)?;
        let work = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            find.await
        };
        // If the running caller is cancelled, the next waiting one continues.
        waiter.cell.get_or_init(|| work).await.clone()
    }

    fn join(&self, key: LookUpKey<K>) -> ServiceResult<LookUpWaiter<'_, K, T>> {
        let mut running = self.lock();
        if running.len() >= WAITING_MAX_COUNT && !running.contains_key(&key) {
            let why = "too many keys that were not used recently are looked up at once";
            return Err(Problem::new(ErrorCode::Unavailable, why));
        }
        let (cell, waiters) = running.entry(key).or_default();
        *waiters += 1;
        let cell = Arc::clone(cell);
        Ok(LookUpWaiter { look_ups: self, key, cell })
    }

    fn lock(&self) -> MutexGuard<'_, RunningLookUps<K, T>> {
        self.running.lock()
    }
}

/// A waiting caller. The entry is removed by the first one that has the result, or by the last one, even if it was cancelled.
struct LookUpWaiter<'a, K: Copy + Eq + Hash, T: Clone> {
    look_ups: &'a LookUps<K, T>,
    key: LookUpKey<K>,
    cell: LookUpCell<T>,
}

impl<K: Copy + Eq + Hash, T: Clone> Drop for LookUpWaiter<'_, K, T> {
    fn drop(&mut self) {
        let mut running = self.look_ups.lock();
        // After a completed look-up, the entry may already be a newer one of the same key.
        let same = running.get_mut(&self.key).filter(|(cell, _)| Arc::ptr_eq(cell, &self.cell));
        let Some((cell, waiters)) = same else { return };
        *waiters -= 1;
        if *waiters == 0 || cell.initialized() {
            running.remove(&self.key);
        }
    }
}
