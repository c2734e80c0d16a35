//! The work of a session, under its own lock: the messages under way and the next step.

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

/// Whether all that waits in the ledger is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookUp {
    /// Something may wait in the ledger that was not given yet.
    Needed,
    /// The ledger is being looked at; `again` when something came meanwhile.
    Running { again: bool },
    /// Whatever is settled from now on is offered.
    Done,
}

/// A delivery that the connection has been given and whose receipt is not written yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) message: MessageId,
    pub(super) chunk: ChunkId,
    /// The sender's name for it, if the sender wants to know of its receipt.
    pub(super) wanted: Option<Arc<str>>,
    pub(super) is_confirmed: bool,
    pub(super) given: Given,
}

/// Deliveries on their way.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) queue: VecDeque<PendingMessage>,
    pub(super) flight: Vec<Flight>,
    /// Chunks whose receipts cannot be written: what they have for the device is not given once more.
    pub(super) given_up: Vec<ChunkId>,
}

#[derive(Debug)]
pub(super) struct SessionInner {
    /// Nothing while the session is idle, which most are.
    pub(super) under_way: Option<Box<UnderWay>>,
    pub(super) look_up: LookUp,
    /// Messages that the last look found beyond the window.
    pub(super) backlog: Option<Box<DeliveryBacklog>>,
    /// What the look that runs finds may be without something that it should have.
    pub(super) is_stale: bool,
    pub(super) closed: Option<Closed>,
    /// Whether it is in the line of those who wait until fewer deliveries are in doubt.
    pub(super) is_in_line: bool,
    /// The tasks that wait for the next step.
    pub(super) waker: Option<Waker>,
}

impl SessionInner {
    pub(super) fn step(
        &mut self,
        now: Timestamp,
        window: usize,
        room: impl FnOnce(usize, bool) -> Option<(usize, Given)>,
    ) -> SessionStep {
        // Before any delivery: what a closed session is given nobody writes any more.
        if let Some(closed) = self.closed {
            return SessionStep::End(closed);
        }
        if let Some(deliveries) = self.deliveries(now, room) {
            return SessionStep::Give(deliveries);
        }
        // Where the window is full the ledger has nothing for it: the next receipt makes room, and wakes it.
        if self.look_up == LookUp::Needed && self.count() < window {
            self.look_up = LookUp::Running { again: false };
            return SessionStep::LookUp;
        }
        SessionStep::Wait
    }

    /// Takes what is to be given next, and notes that it is; `None` when there is nothing, or no room among all that is in doubt.
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
            // Taken as a whole: what has been given holds no room for more.
            let deliveries = Vec::from(std::mem::replace(&mut under_way.queue, rest));
            let flight = |one: &PendingMessage| Flight {
                message: one.message.id,
                chunk: one.chunk,
                wanted: sender_receipts::wanted(&one.message),
                is_confirmed: false,
                given,
            };
            // Exactly: thousands of sessions would otherwise hold up to twice the memory.
            under_way.flight.reserve_exact(deliveries.len());
            under_way.flight.extend(deliveries.iter().map(flight));
            return Some(deliveries);
        }
        if self.is_idle() {
            self.under_way = None;
        }
        None
    }

    /// Notes that a message waits that the last look has not found, or may not have.
    pub(super) fn note_more(&mut self, message: &Message) {
        // It may take the place of one that was found.
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

    /// Returns how many deliveries take a place of the window.
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
