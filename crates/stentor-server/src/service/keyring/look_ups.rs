//! Look-ups of keys in the store: one for each key at a time, however many ask, and a few keys at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use super::super::{ErrorCode, Problem, ServiceResult};

/// Most look-ups in the store at once: whoever tries keys must not hold up those that are known.
const RUNNING_MAX_COUNT: usize = 64;
/// Most keys that are being looked up or wait for it; more are refused.
const WAITING_MAX_COUNT: usize = 1_024;

/// What several callers wait for that ask the same.
type Answer<T> = Arc<OnceCell<ServiceResult<T>>>;
/// What is asked, and how many removals the asker knows of: an answer that was begun before one is not given to who came after it.
type Question<K> = (K, u64);

type Answers<K, T> = HashMap<Question<K>, (Answer<T>, usize)>;

/// The look-ups that go on.
#[derive(Debug)]
pub(super) struct LookUps<K, T> {
    /// With how many ask.
    answers: Mutex<Answers<K, T>>,
    places: Semaphore,
}

impl<K, T> Default for LookUps<K, T> {
    fn default() -> Self {
        Self { answers: Mutex::default(), places: Semaphore::new(RUNNING_MAX_COUNT) }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> LookUps<K, T> {
    /// Finds something out, or waits for whoever does already.
    pub(super) async fn once(
        &self,
        question: Question<K>,
        find: impl Future<Output = ServiceResult<T>>,
    ) -> ServiceResult<T> {
        let asking = self.ask(question)?;
        let work = async {
            // It is never closed.
            let _place = self.places.acquire().await;
            find.await
        };
        // Where the one that does it goes away, the next that waits does it.
        asking.answer.get_or_init(|| work).await.clone()
    }

    fn ask(&self, question: Question<K>) -> ServiceResult<Asking<'_, K, T>> {
        let mut answers = self.lock();
        if answers.len() >= WAITING_MAX_COUNT && !answers.contains_key(&question) {
            let why = "too many keys are looked up at once that were not used lately";
            return Err(Problem::new(ErrorCode::Unavailable, why));
        }
        let (answer, askers) = answers.entry(question).or_default();
        *askers += 1;
        let answer = Arc::clone(answer);
        Ok(Asking { look_ups: self, question, answer })
    }

    fn lock(&self) -> MutexGuard<'_, Answers<K, T>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that asks. The first one that has an answer, or the last one, takes the question away, also where it was cut off.
struct Asking<'a, K: Copy + Eq + Hash, T: Clone> {
    look_ups: &'a LookUps<K, T>,
    question: Question<K>,
    answer: Answer<T>,
}

impl<K: Copy + Eq + Hash, T: Clone> Drop for Asking<'_, K, T> {
    fn drop(&mut self) {
        let mut answers = self.look_ups.lock();
        // Where it was answered before, somebody may ask the same anew by now.
        let same = answers.get_mut(&self.question).filter(|(answer, _)| Arc::ptr_eq(answer, &self.answer));
        let Some((answer, askers)) = same else { return };
        *askers -= 1;
        if *askers == 0 || answer.initialized() {
            answers.remove(&self.question);
        }
    }
}
