//! The limit of deliveries in doubt during a process's first minute. A delivery in doubt was handed to a device and is not confirmed; if
//! the process dies, it is delivered once more. The limit holds over all sessions.
//!
//! After a restart all devices come back at once, and all waiting messages would be handed to them. A process that dies again soon would
//! repeat that each time. So it begins with a few deliveries, and continues as receipts come. With prompt receipts, the limit soon no
//! longer matters. An unconfirmed delivery counts only for some seconds, so that dead connections do not block others for long. After a
//! minute nothing is counted any more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::limits::{
    DOUBTS_COUNTED_FOR, DOUBTS_LOOK_INTERVAL, DOUBTS_MAX_COUNT, DOUBTS_MORE_PER_PROMPT_RECEIPT,
    PROMPT_RECEIPT_MAX, UNCONFIRMED_COUNTED_FOR,
};
use crate::session_state::SessionState;

/// The time at which a delivery was handed out, as a key for counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given(u32);

/// The deliveries in doubt, and the sessions that wait for room.
#[derive(Debug)]
pub(crate) struct Doubts {
    began: Instant,
    is_over: AtomicBool,
    counts: Mutex<DoubtCounts>,
}

#[derive(Debug)]
struct DoubtCounts {
    limit: usize,
    /// Unconfirmed deliveries, by the second in which they were handed out.
    given: VecDeque<(u32, usize)>,
    waiting: VecDeque<Weak<SessionState>>,
}

impl Given {
    /// Marks a delivery that is not counted.
    pub(crate) const UNCOUNTED: Self = Self(u32::MAX);

    const fn second(self) -> u32 {
        self.0 / 1_000
    }
}

impl Doubts {
    pub(crate) fn new() -> Self {
        let counts =
            DoubtCounts { limit: DOUBTS_MAX_COUNT, given: VecDeque::new(), waiting: VecDeque::new() };
        Self { began: Instant::now(), is_over: AtomicBool::new(false), counts: Mutex::new(counts) }
    }

    /// Takes room for up to `count` deliveries and returns the number granted. Without room the session is queued, unless `is_in_line` is
    /// set.
    pub(crate) fn take(
        &self,
        count: usize,
        session: &Arc<SessionState>,
        is_in_line: bool,
    ) -> Option<(usize, Given)> {
        if self.is_over.load(Ordering::Acquire) {
            return Some((count, Given::UNCOUNTED));
        }
        let now = self.now();
        let mut counts = self.lock();
        // The time is checked as well: a session queued after the final release of the queue would wait for ever.
        if self.is_time_over() {
            return Some((count, Given::UNCOUNTED));
        }
        counts.forget_old(now);
        let count = count.min(counts.room());
        if count == 0 {
            if !is_in_line {
                counts.waiting.push_back(Arc::downgrade(session));
            }
            return None;
        }
        counts.add(now, count);
        Some((count, now))
    }

    /// Records deliveries whose receipts are written.
    pub(crate) fn confirmed(&self, given: &[Given]) {
        self.end(given, true);
    }

    /// Records deliveries of an ended session: a returning device gets them in a session of its own.
    pub(crate) fn abandoned(&self, given: &[Given]) {
        self.end(given, false);
    }

    /// Expires old deliveries periodically, and releases waiting sessions, while anything is counted.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut looks = interval(DOUBTS_LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_time_over() {
            looks.tick().await;
            self.end(&[], false);
        }
        self.is_over.store(true, Ordering::Release);
        // Sessions still queued are seen under the lock; later ones find by the time that counting is over.
        let all = std::mem::take(&mut self.lock().waiting);
        all.iter().filter_map(Weak::upgrade).for_each(|session| session.leave_line());
    }

    fn end(&self, given: &[Given], is_confirmed: bool) {
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        let now = self.now();
        let mut counts = self.lock();
        for one in given.iter().filter(|one| **one != Given::UNCOUNTED) {
            let is_prompt = u128::from(now.0.saturating_sub(one.0)) <= PROMPT_RECEIPT_MAX.as_millis();
            counts.remove(*one);
            if is_confirmed && is_prompt {
                counts.limit += DOUBTS_MORE_PER_PROMPT_RECEIPT;
            }
        }
        counts.forget_old(now);
        let next = counts.next();
        // Dropped first: this lock is taken under a session's lock, so no session may be locked under it.
        drop(counts);
        next.iter().for_each(|session| session.leave_line());
    }

    fn is_time_over(&self) -> bool {
        self.began.elapsed() >= DOUBTS_COUNTED_FOR
    }

    fn now(&self) -> Given {
        Given(u32::try_from(self.began.elapsed().as_millis()).unwrap_or(u32::MAX - 1))
    }

    fn lock(&self) -> MutexGuard<'_, DoubtCounts> {
        self.counts.lock()
    }
}

impl DoubtCounts {
    fn room(&self) -> usize {
        let used: usize = self.given.iter().map(|(_, count)| count).sum();
        self.limit.saturating_sub(used)
    }

    fn add(&mut self, now: Given, count: usize) {
        match self.given.iter_mut().find(|(second, _)| *second == now.second()) {
            Some((_, given)) => *given += count,
            None => self.given.push_back((now.second(), count)),
        }
    }

    fn remove(&mut self, one: Given) {
        // Deliveries of an expired second no longer count.
        if let Some((_, given)) = self.given.iter_mut().find(|(second, _)| *second == one.second()) {
            *given = given.saturating_sub(1);
        }
    }

    fn forget_old(&mut self, now: Given) {
        let counted_s = u32::try_from(UNCONFIRMED_COUNTED_FOR.as_secs()).unwrap_or(u32::MAX);
        self.given.retain(|(second, _)| now.second().saturating_sub(*second) <= counted_s);
    }

    /// Dequeues as many sessions as there is room for one delivery each.
    fn next(&mut self) -> Vec<Arc<SessionState>> {
        let room = self.room();
        let mut next = Vec::new();
        while next.len() < room {
            let Some(session) = self.waiting.pop_front() else { break };
            next.extend(session.upgrade());
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stentor_core::id::{AppId, DeviceId};
    use stentor_core::time::Timestamp;

    use super::*;
    use crate::identity::DeviceIdentity;
    use crate::stats::DeviceProtocol;

    fn session() -> Arc<SessionState> {
        let identity = DeviceIdentity { app: AppId::from_raw(1), device: DeviceId::from_raw(1) };
        let opened_at = Timestamp::from_millis(0);
        Arc::new(SessionState::new(identity, DeviceProtocol::Mqtt, 100, opened_at, None))
    }

    /// Takes room for single deliveries until there is none.
    fn fill(doubts: &Doubts) -> Vec<Given> {
        let session = session();
        std::iter::from_fn(|| doubts.take(1, &session, true)).map(|(_, given)| given).take(100_000).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_begins_with_few_in_doubt_and_slow_receipts_let_it_have_no_more() {
        let doubts = Doubts::new();
        let given = fill(&doubts);
        assert_eq!(given.len(), DOUBTS_MAX_COUNT);
        tokio::time::advance(2 * PROMPT_RECEIPT_MAX).await;
        doubts.confirmed(&given[..100]);
        assert_eq!(fill(&doubts).len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_for_which_much_waits_gets_what_there_is_room_for() {
        let doubts = Doubts::new();
        let given = fill(&doubts);
        doubts.abandoned(&given[..7]);
        assert_eq!(doubts.take(50, &session(), false).map(|(count, _)| count), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn prompt_receipts_let_it_have_three_times_as_many_each_time() {
        let doubts = Doubts::new();
        for factor in [1, 3, 9] {
            let given = fill(&doubts);
            assert_eq!(given.len(), factor * DOUBTS_MAX_COUNT);
            doubts.confirmed(&given);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_confirms_counts_for_some_seconds() {
        let doubts = Doubts::new();
        fill(&doubts);
        tokio::time::advance(UNCONFIRMED_COUNTED_FOR).await;
        assert!(fill(&doubts).is_empty());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(fill(&doubts).len(), DOUBTS_MAX_COUNT);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_connection_leaves_behind_makes_room_and_lets_nothing_grow() {
        let doubts = Doubts::new();
        doubts.abandoned(&fill(&doubts));
        assert_eq!(fill(&doubts).len(), DOUBTS_MAX_COUNT);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_minute_nothing_is_counted_and_nobody_waits() {
        let doubts = Arc::new(Doubts::new());
        fill(&doubts);
        assert_eq!(doubts.take(1, &session(), false), None);
        doubts.clone().run().await;
        assert!(doubts.lock().waiting.is_empty());
        assert_eq!(doubts.take(9, &session(), false), Some((9, Given::UNCOUNTED)));
        doubts.confirmed(&[Given::UNCOUNTED]);
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_given_to_those_who_wait_longest_and_to_none_that_is_gone() {
        let doubts = Doubts::new();
        let given = fill(&doubts);
        let waiting: Vec<_> = (0..3).map(|_| session()).collect();
        for session in &waiting {
            assert_eq!(doubts.take(1, session, false), None);
        }
        let [gone, first, _last] = <[_; 3]>::try_from(waiting).expect("three");
        drop(gone);
        doubts.abandoned(&given[..1]);
        assert_eq!(doubts.lock().waiting.len(), 1, "{first:?} is called");
    }
}
