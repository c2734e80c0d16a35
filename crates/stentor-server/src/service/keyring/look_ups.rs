//! Look-ups of keys in the store: one for each key at a time, however many ask, and a few keys at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, Semaphore};

use super::super::{ErrorCode, Problem, ServiceResult};

/// Most look-ups in the store at once: whoever tries keys must not hold up those that are known.
const RUNNING_MAX_COUNT: usize = 64;
/// Most keys that are being looked up or wait for it; more are refused.
const WAITING_MAX_COUNT: usize = 1_024;

/// What several callers wait for that look for the same.
type LookUpCell<T> = Arc<OnceCell<ServiceResult<T>>>;
/// What is looked for, and how many removals the caller knows of: a look-up that was begun before one is nothing for who came after it.
type LookUpKey<K> = (K, u64);

type RunningLookUps<K, T> = HashMap<LookUpKey<K>, (LookUpCell<T>, usize)>;

/// The look-ups that go on.
#[derive(Debug)]
pub(super) struct LookUps<K, T> {
    /// With how many callers wait.
    running: Mutex<RunningLookUps<K, T>>,
    places: Semaphore,
}

impl<K, T> Default for LookUps<K, T> {
    fn default() -> Self {
        Self { running: Mutex::default(), places: Semaphore::new(RUNNING_MAX_COUNT) }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> LookUps<K, T> {
    /// Finds something out, or waits for whoever does already.
    pub(super) async fn once(
        &self,
        key: LookUpKey<K>,
        find: impl Future<Output = ServiceResult<T>>,
    ) -> ServiceResult<T> {
        let waiter = self.join(key)?;
        let work = async {
            // It is never closed.
            let _place = self.places.acquire().await;
            find.await
        };
        // Where the one that does it goes away, the next that waits does it.
        waiter.cell.get_or_init(|| work).await.clone()
    }

    fn join(&self, key: LookUpKey<K>) -> ServiceResult<LookUpWaiter<'_, K, T>> {
        let mut running = self.lock();
        if running.len() >= WAITING_MAX_COUNT && !running.contains_key(&key) {
            let why = "too many keys are looked up at once that were not used lately";
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

/// One caller that waits. The first one that has what it looked for, or the last one, takes the key away, also where it was cut off.
struct LookUpWaiter<'a, K: Copy + Eq + Hash, T: Clone> {
    look_ups: &'a LookUps<K, T>,
    key: LookUpKey<K>,
    cell: LookUpCell<T>,
}

impl<K: Copy + Eq + Hash, T: Clone> Drop for LookUpWaiter<'_, K, T> {
    fn drop(&mut self) {
        let mut running = self.look_ups.lock();
        // Where it was found before, somebody may look for the same anew by now.
        let same = running.get_mut(&self.key).filter(|(cell, _)| Arc::ptr_eq(cell, &self.cell));
        let Some((cell, waiters)) = same else { return };
        *waiters -= 1;
        if *waiters == 0 || cell.initialized() {
            running.remove(&self.key);
        }
    }
}
