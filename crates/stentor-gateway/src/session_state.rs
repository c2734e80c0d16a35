//! What is known of one connected device: what waits to be written, what is not confirmed yet, and whether the ledger must be
//! looked at again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use stentor_core::id::{ChunkId, MessageId};
use stentor_core::ports::store::{Receipt, ReceiptKind};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

use crate::delivery::PendingMessage;
use crate::doubts::{Doubts, Given};
use crate::held_messages::HeldMessages;
use crate::identity::DeviceIdentity;
use crate::sender_receipts::{self, EndedDeliveries, SenderReceipt};
use crate::silence::Silence;
use crate::stats::DeviceProtocol;

/// Why a session ended from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Another connection of the same device has taken its place.
    TakenOver,
    /// The device was removed, or has another token.
    CutOff,
    /// The device has been silent for too long.
    Silent,
    /// The app has as many devices connected as it may have here.
    Crowded,
    /// The server stops.
    Stopping,
}

/// Whether all that waits in the ledger is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUp {
    /// Something may wait in the ledger that was not given yet.
    Needed,
    /// The ledger is being looked at; `again` when something came meanwhile.
    Running { again: bool },
    /// Whatever is settled from now on is offered.
    Done,
}

/// A delivery that the connection has been given and whose receipt is not written yet.
#[derive(Debug)]
struct Flight {
    message: MessageId,
    chunk: ChunkId,
    /// The sender's name for it, if the sender wants to know of its receipt.
    wanted: Option<Arc<str>>,
    is_confirmed: bool,
    given: Given,
}

/// What a connection does next.
pub(crate) enum SessionStep {
    /// Writes these.
    Give(Vec<PendingMessage>),
    /// Looks at the ledger; the session counts as looking until [`SessionState::looked`] is called.
    LookUp,
    /// Waits to be woken.
    Wait,
    /// The session ends.
    End(Closed),
}

/// Deliveries on their way.
#[derive(Debug, Default)]
struct UnderWay {
    queue: VecDeque<PendingMessage>,
    flight: Vec<Flight>,
}

#[derive(Debug)]
struct SessionInner {
    /// Nothing while the session is idle, which most are.
    under_way: Option<Box<UnderWay>>,
    look_up: LookUp,
    closed: Option<Closed>,
    /// Whether it is in the line of those who wait until fewer deliveries are in doubt.
    is_in_line: bool,
    /// Who waits for the next step.
    waker: Option<Waker>,
}

/// One connected device. Its memory is bounded by its window.
#[derive(Debug)]
pub(crate) struct SessionState {
    identity: DeviceIdentity,
    protocol: DeviceProtocol,
    window: u32,
    silence: Silence,
    opened_at: Timestamp,
    /// What several sessions of one connection wake.
    shared_wake: Option<Arc<Notify>>,
    state: Mutex<SessionInner>,
}

impl SessionState {
    pub(crate) fn new(
        identity: DeviceIdentity,
        protocol: DeviceProtocol,
        window: usize,
        (opened_at, shared_wake): (Timestamp, Option<Arc<Notify>>),
    ) -> Self {
        let state = SessionInner {
            under_way: None,
            look_up: LookUp::Needed,
            closed: None,
            is_in_line: false,
            waker: None,
        };
        let window = u32::try_from(window.max(1)).unwrap_or(u32::MAX);
        let (silence, state) = (Silence::default(), Mutex::new(state));
        Self { identity, protocol, window, silence, opened_at, shared_wake, state }
    }

    pub(crate) const fn identity(&self) -> DeviceIdentity {
        self.identity
    }

    pub(crate) const fn protocol(&self) -> DeviceProtocol {
        self.protocol
    }

    pub(crate) const fn window(&self) -> usize {
        self.window as usize
    }

    /// Returns when it was opened, by the server's clock.
    pub(crate) const fn opened_at(&self) -> Timestamp {
        self.opened_at
    }

    /// Lists the messages that the device is to be given next.
    pub(crate) fn next_messages(&self) -> Vec<MessageId> {
        let state = self.lock();
        let queue = state.under_way.iter().flat_map(|under_way| &under_way.queue);
        queue.map(|delivery| delivery.message.id).collect()
    }

    pub(crate) const fn silence(&self) -> &Silence {
        &self.silence
    }

    /// Takes what was settled just now. What finds no room is looked up later: a slow reader costs no memory. What is held back is
    /// looked up when it is let go.
    pub(crate) fn offer(&self, delivery: &PendingMessage, held: &HeldMessages) {
        let mut state = self.lock();
        // Asked with the session locked: whoever holds a message back says so before he looks for it here.
        if held.has(self.identity.app, delivery.message.id) {
            return;
        }
        match state.look_up {
            LookUp::Needed => return,
            LookUp::Running { .. } => {
                state.look_up = LookUp::Running { again: true };
                return;
            }
            LookUp::Done if state.has(delivery.message.id) => return,
            LookUp::Done if state.count() >= self.window() => state.look_up = LookUp::Needed,
            LookUp::Done => state.under_way().queue.push_back(delivery.clone()),
        }
        self.wake(state);
    }

    /// Makes it look at the ledger again.
    pub(crate) fn look_again(&self) {
        let mut state = self.lock();
        state.look_up = match state.look_up {
            LookUp::Running { .. } => LookUp::Running { again: true },
            LookUp::Needed | LookUp::Done => LookUp::Needed,
        };
        self.wake(state);
    }

    /// Returns what is to be done next. What it gives counts as given from then on.
    pub(crate) fn step(self: &Arc<Self>, now: Timestamp, doubts: &Doubts) -> SessionStep {
        self.lock().step(now, self.window(), self.room(doubts))
    }

    /// Returns what asks for room among the deliveries in doubt.
    fn room(self: &Arc<Self>, doubts: &Doubts) -> impl FnOnce(usize, bool) -> Option<(usize, Given)> {
        move |count, is_in_line| doubts.take(count, self, is_in_line)
    }

    /// Lets it ask for room again: it was called out of the line.
    pub(crate) fn leave_line(&self) {
        let mut state = self.lock();
        state.is_in_line = false;
        self.wake(state);
    }

    /// Returns when what it has in flight was given, which no receipt is to tell of any more.
    pub(crate) fn abandon(&self) -> Vec<Given> {
        let mut state = self.lock();
        let flights = state.under_way.iter_mut().flat_map(|under_way| &mut under_way.flight);
        flights.map(|flight| std::mem::replace(&mut flight.given, Given::UNCOUNTED)).collect()
    }

    /// Returns what is to be done next, as [`SessionState::step`] does; where that is nothing, whatever comes wakes `context`.
    pub(crate) fn poll_step(
        self: &Arc<Self>,
        now: Timestamp,
        doubts: &Doubts,
        context: &Context<'_>,
    ) -> Poll<SessionStep> {
        let mut state = self.lock();
        match state.step(now, self.window(), self.room(doubts)) {
            SessionStep::Wait => {
                // Left under the lock with which the step was found to be none: what comes next finds it.
                match &mut state.waker {
                    Some(known) if known.will_wake(context.waker()) => {}
                    waker => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            step => Poll::Ready(step),
        }
    }

    /// Takes back what the device was to be given next and is held back now.
    pub(crate) fn withhold(&self, message: MessageId) {
        if let Some(under_way) = &mut self.lock().under_way {
            under_way.queue.retain(|delivery| delivery.message.id != message);
        }
    }

    /// Takes what was found in the ledger, as far as the window has room; `has_more` when that was not all.
    pub(crate) fn looked(&self, found: Vec<PendingMessage>, has_more: bool, held: &HeldMessages) {
        let mut state = self.lock();
        let mut left = has_more;
        for delivery in found {
            if state.has(delivery.message.id) || held.has(self.identity.app, delivery.message.id) {
                continue;
            }
            if state.count() >= self.window() {
                left = true;
                break;
            }
            state.under_way().queue.push_back(delivery);
        }
        // Whatever was settled while the ledger was read may or may not be in what was found: it is read once more.
        let again = state.look_up == LookUp::Running { again: true };
        // Nobody is woken: whoever has looked takes the next step itself.
        state.look_up = if left || again { LookUp::Needed } else { LookUp::Done };
    }

    /// Notes what the device confirms; returns the receipts to be written, none for what it was not given or confirmed before.
    pub(crate) fn confirm_where(&self, is_meant: impl Fn(MessageId) -> bool) -> EndedDeliveries {
        self.end_where(is_meant, ReceiptKind::Delivered)
    }

    /// Notes what became of messages; returns the receipts to be written, none for what was not given or has ended before.
    pub(crate) fn end_where(
        &self,
        is_meant: impl Fn(MessageId) -> bool,
        kind: ReceiptKind,
    ) -> EndedDeliveries {
        let mut state = self.lock();
        let mut ended = EndedDeliveries::default();
        let flights = state.under_way.iter_mut().flat_map(|under_way| &mut under_way.flight);
        for flight in flights.filter(|flight| !flight.is_confirmed) {
            if is_meant(flight.message) {
                // It keeps its place until it is written: until then the ledger would give it once more.
                flight.is_confirmed = true;
                let (chunk, device) = (flight.chunk, self.identity.device);
                ended.receipts.push(Receipt { chunk, device, kind });
                let wanted = flight.wanted.take().filter(|_| kind == ReceiptKind::Delivered);
                let told = wanted.map(|name| SenderReceipt::new(self.identity, flight.message, name));
                ended.wanted.extend(told);
            }
        }
        ended
    }

    /// Makes room for what was confirmed and is written: from now on the ledger says that it does not wait. Returns when it was given.
    pub(crate) fn written(&self, receipts: &[Receipt]) -> Vec<Given> {
        let mut state = self.lock();
        let is_written = |flight: &Flight| {
            flight.is_confirmed && receipts.iter().any(|receipt| receipt.chunk == flight.chunk)
        };
        let mut given = Vec::new();
        if let Some(under_way) = &mut state.under_way {
            let written = under_way.flight.extract_if(.., |flight| is_written(flight));
            given.extend(written.map(|flight| flight.given).filter(|given| *given != Given::UNCOUNTED));
        }
        if state.count() == 0 {
            // A session that is idle holds no room for more.
            state.under_way = None;
        }
        // Only then: a session that knows all that waits for it is not woken by its own receipts.
        if state.look_up == LookUp::Needed {
            self.wake(state);
        }
        given
    }

    /// Returns what it was given and has not confirmed.
    pub(crate) fn unconfirmed(&self) -> Vec<MessageId> {
        let state = self.lock();
        let waiting = state.flight().iter().filter(|flight| !flight.is_confirmed);
        waiting.map(|flight| flight.message).collect()
    }

    /// Ends it; the first reason counts.
    pub(crate) fn close(&self, why: Closed) {
        let mut state = self.lock();
        state.closed.get_or_insert(why);
        self.wake(state);
    }

    /// Wakes whoever waits for the next step.
    fn wake(&self, mut state: MutexGuard<'_, SessionInner>) {
        // Taken: a wake-up is meant for one wait, and the next wait leaves its own.
        let waker = state.waker.take();
        // Let go first: whoever is woken looks at the state.
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(shared_wake) = &self.shared_wake {
            shared_wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionInner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionInner {
    fn step(
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
    fn deliveries(
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
        if under_way.flight.is_empty() {
            self.under_way = None;
        }
        None
    }

    fn under_way(&mut self) -> &mut UnderWay {
        self.under_way.get_or_insert_default()
    }

    fn flight(&self) -> &[Flight] {
        self.under_way.as_ref().map_or(&[], |under_way| &under_way.flight)
    }

    /// Returns how many deliveries take a place of the window.
    fn count(&self) -> usize {
        self.under_way.as_ref().map_or(0, |under_way| under_way.queue.len() + under_way.flight.len())
    }

    fn has(&self, message: MessageId) -> bool {
        let Some(under_way) = &self.under_way else { return false };
        under_way.flight.iter().any(|flight| flight.message == message)
            || under_way.queue.iter().any(|delivery| delivery.message.id == message)
    }
}

/// Returns whether a message has not expired.
pub(crate) fn is_live(delivery: &PendingMessage, now: Timestamp) -> bool {
    !delivery.message.is_expired(now)
}
