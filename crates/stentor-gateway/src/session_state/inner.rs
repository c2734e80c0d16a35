//! The contents of a session, under its lock: the messages under way and the next step.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use stentor_core::id::{ChunkId, MessageId};
use stentor_core::message::Message;
use stentor_core::time::Timestamp;

use super::{Closed, SessionStep, is_live};
use crate::backlog::{DeliveryBacklog, WaitingDelivery};
use crate::delivery::PendingMessage;
use crate::doubts::Given;
use crate::sender_receipts;

/// The state of the look-up of waiting deliveries in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookUp {
    /// The ledger may hold deliveries that are not known here.
    Needed,
    /// A look-up is running; `again` is set if more was settled during it.
    Running { again: bool },
    /// All waiting deliveries are known; later ones are offered.
    Done,
}

/// A delivery passed to the connection, whose receipt is not written yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) message: MessageId,
    pub(super) chunk: ChunkId,
    /// The sender's name for the message, if the sender wants a receipt.
    pub(super) wanted: Option<Arc<str>>,
    pub(super) is_confirmed: bool,
    pub(super) given: Given,
}

/// Deliveries under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) queue: VecDeque<PendingMessage>,
    pub(super) flight: Vec<Flight>,
    /// Chunks whose receipts cannot be written, and whose deliveries are not handed out again.
    pub(super) given_up: Vec<ChunkId>,
}

#[derive(Debug)]
pub(super) struct SessionInner {
    /// `None` while the session is idle, as most are.
    pub(super) under_way: Option<Box<UnderWay>>,
    pub(super) look_up: LookUp,
    /// Messages beyond the window that the last look-up found.
    pub(super) backlog: Option<Box<DeliveryBacklog>>,
    /// True if the result of the running look-up may be incomplete.
    pub(super) is_stale: bool,
    pub(super) closed: Option<Closed>,
    /// True while it is queued until fewer deliveries are in doubt.
    pub(super) is_in_line: bool,
    /// The task that waits for the next step.
    pub(super) waker: Option<Waker>,
}

impl SessionInner {
    pub(super) fn step(
        &mut self,
        now: Timestamp,
        window: usize,
        room: impl FnOnce(usize, bool) -> Option<(usize, Given)>,
    ) -> SessionStep {
        // Before any delivery: the connection of a closed session no longer writes deliveries.
        if let Some(closed) = self.closed {
            return SessionStep::End(closed);
        }
        if let Some(deliveries) = self.deliveries(now, room) {
            return SessionStep::Give(deliveries);
        }
        // A session with a full window needs no look-up: the next receipt makes room, and wakes it.
        if self.look_up == LookUp::Needed && self.count() < window {
            self.look_up = LookUp::Running { again: false };
            return SessionStep::LookUp;
        }
        SessionStep::Wait
    }

    /// Takes the next deliveries, and records them as handed out; `None` if there are none, or no room for deliveries in doubt.
    pub(super) fn deliveries(
        &mut self,
        now: Timestamp,
        room: impl FnOnce(usize, bool) -> Option<(usize, Given)>,
    ) -> Option<Vec<PendingMessage>> {
        let under_way = self.under_way.as_mut()?;
        under_way.queue.retain(|one| is_live(one, now));
        if !under_way.queue.is_empty() {
            let Some((count, given)) = room(under_way.queue.len(), self.is_in_line) else {
                self.is_in_line = true;
                return None;
            };
            let rest = under_way.queue.split_off(count);
            // Replaced as a whole, so that the queue keeps no capacity for them.
            let deliveries = Vec::from(std::mem::replace(&mut under_way.queue, rest));
            let flight = |one: &PendingMessage| Flight {
                message: one.message.id,
                chunk: one.chunk,
                wanted: sender_receipts::wanted(&one.message),
                is_confirmed: false,
                given,
            };
            // Exact: otherwise thousands of sessions would hold up to twice the memory.
            under_way.flight.reserve_exact(deliveries.len());
            under_way.flight.extend(deliveries.iter().map(flight));
            return Some(deliveries);
        }
        if self.is_idle() {
            self.under_way = None;
        }
        None
    }

    /// Records a waiting message that the last look-up has not found, or may not have.
    pub(super) fn note_more(&mut self, message: &Message) {
        // It may replace one that was found.
        if message.spec.collapse_key.is_some() {
            return self.forget_backlog();
        }
        if let Some(backlog) = &mut self.backlog {
            backlog.note_more();
        }
    }

    pub(super) fn forget_backlog(&mut self) {
        self.backlog = None;
        self.is_stale = matches!(self.look_up, LookUp::Running { .. });
    }

    pub(super) fn put_back(&mut self, deliveries: Vec<PendingMessage>) {
        if let Some(backlog) = &mut self.backlog {
            let waiting =
                |one: &PendingMessage| WaitingDelivery { message: one.message.id, chunk: one.chunk };
            backlog.put_back(deliveries.iter().map(waiting));
        }
    }

    pub(super) fn under_way(&mut self) -> &mut UnderWay {
        self.under_way.get_or_insert_default()
    }

    pub(super) fn flight(&self) -> &[Flight] {
        self.under_way.as_ref().map_or(&[], |under_way| &under_way.flight)
    }

    /// Returns the number of deliveries that occupy the window.
    pub(super) fn count(&self) -> usize {
        self.under_way.as_ref().map_or(0, |under_way| under_way.queue.len() + under_way.flight.len())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count() == 0 && self.under_way.as_ref().is_none_or(|under_way| under_way.given_up.is_empty())
    }

    pub(super) fn is_given_up(&self, chunk: ChunkId) -> bool {
        self.under_way.as_ref().is_some_and(|under_way| under_way.given_up.contains(&chunk))
    }

    pub(super) fn has(&self, message: MessageId) -> bool {
        let Some(under_way) = &self.under_way else { return false };
        under_way.flight.iter().any(|flight| flight.message == message)
            || under_way.queue.iter().any(|delivery| delivery.message.id == message)
    }
}
