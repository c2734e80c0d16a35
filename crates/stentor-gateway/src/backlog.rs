//! Deliveries found for a connected device that exceeded its window. The session continues with them, instead of reading the whole mailbox
//! again for each free place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stentor_core::id::{ChunkId, MessageId};
use stentor_core::time::Timestamp;

use crate::limits::{BACKLOG_FRESH, BACKLOG_MAX_COUNT};

/// A waiting delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingDelivery {
    pub(crate) message: MessageId,
    pub(crate) chunk: ChunkId,
}

/// A delivery that a session has handed out and that is not confirmed.
#[derive(Debug)]
pub(crate) struct GivenDelivery {
    pub(crate) waiting: WaitingDelivery,
    /// The sender's name for the message, if the sender wants a receipt.
    pub(crate) wanted: Option<Arc<str>>,
}

/// The messages of a disconnected device.
#[derive(Debug)]
pub(crate) struct ParkedSession {
    pub(crate) given: Vec<GivenDelivery>,
    pub(crate) backlog: Box<DeliveryBacklog>,
}

/// The shared limit of waiting deliveries over all sessions.
#[derive(Debug, Default)]
pub(crate) struct BacklogRoom(AtomicUsize);

/// The waiting deliveries of one session, in order.
#[derive(Debug)]
pub(crate) struct DeliveryBacklog {
    waiting: VecDeque<WaitingDelivery>,
    /// True if nothing else waits, as far as the session knows.
    is_all: bool,
    looked_at: Timestamp,
    room: Arc<BacklogRoom>,
    reserved: usize,
}

impl DeliveryBacklog {
    /// Keeps the result of a look-up, if the limit permits.
    pub(crate) fn keep(
        room: &Arc<BacklogRoom>,
        waiting: VecDeque<WaitingDelivery>,
        looked_at: Timestamp,
    ) -> Option<Self> {
        let reserved = waiting.len();
        let add = |taken: usize| taken.checked_add(reserved).filter(|taken| *taken <= BACKLOG_MAX_COUNT);
        room.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self { waiting, is_all: true, looked_at, room: Arc::clone(room), reserved })
    }

    /// Returns true while the backlog may be used. Other servers also change the waiting deliveries.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        Self::is_fresh_since(self.looked_at, now)
    }

    pub(crate) fn is_fresh_since(looked_at: Timestamp, now: Timestamp) -> bool {
        looked_at <= now && now.since(looked_at) < BACKLOG_FRESH
    }

    /// Records that a delivery waits outside of the backlog.
    pub(crate) const fn note_more(&mut self) {
        self.is_all = false;
    }

    pub(crate) const fn is_all(&self) -> bool {
        self.is_all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next deliveries.
    pub(crate) fn take(&mut self, count: usize) -> Vec<WaitingDelivery> {
        self.waiting.drain(..count.min(self.waiting.len())).collect()
    }

    /// Puts deliveries back in front of the others.
    pub(crate) fn put_back(&mut self, deliveries: impl DoubleEndedIterator<Item = WaitingDelivery>) {
        deliveries.rev().for_each(|one| self.waiting.push_front(one));
    }

    /// Removes messages that the device is not to receive.
    pub(crate) fn skip(&mut self, is_meant: impl Fn(MessageId) -> bool) {
        self.waiting.retain(|one| !is_meant(one.message));
    }
}

impl Drop for DeliveryBacklog {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.reserved, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(count: usize) -> VecDeque<WaitingDelivery> {
        let one = |number| WaitingDelivery {
            message: MessageId::from_raw(number),
            chunk: ChunkId::from_raw(number),
        };
        (0..count as u64).map(one).collect()
    }

    #[test]
    fn what_was_taken_and_put_back_comes_first_again() {
        let mut backlog =
            DeliveryBacklog::keep(&Arc::default(), waiting(5), Timestamp::from_millis(0)).expect("room");
        let taken = backlog.take(3);
        backlog.put_back(taken.into_iter().skip(1));
        backlog.skip(|message| message.raw() == 2);
        let rest: Vec<u64> = backlog.take(9).iter().map(|one| one.message.raw()).collect();
        assert_eq!(rest, [1, 3, 4]);
    }

    #[test]
    fn there_is_room_for_so_much_of_all_sessions_and_it_is_given_back() {
        let room = Arc::<BacklogRoom>::default();
        let now = Timestamp::from_millis(0);
        let guard = DeliveryBacklog::keep(&room, waiting(BACKLOG_MAX_COUNT), now).expect("room");
        assert!(DeliveryBacklog::keep(&room, waiting(1), now).is_none());
        drop(guard);
        assert!(DeliveryBacklog::keep(&room, waiting(1), now).is_some());
    }

    #[test]
    fn it_is_gone_by_only_for_a_while_and_not_when_the_clock_went_back() {
        let at = |ms| Timestamp::from_millis(ms);
        let backlog = DeliveryBacklog::keep(&Arc::default(), waiting(1), at(1_000)).expect("room");
        assert!(backlog.is_fresh(at(1_000)));
        assert!(!backlog.is_fresh(at(1_000).plus(BACKLOG_FRESH)));
        assert!(!backlog.is_fresh(at(999)));
    }
}
