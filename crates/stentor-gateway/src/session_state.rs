//! What is known of one connected device: what waits to be written, what is not confirmed yet, and whether the ledger must be
//! looked at again.

mod inner;

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{ChunkId, MessageId};
use stentor_core::ports::store::{Receipt, ReceiptKind};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

use inner::{Flight, LookUp, SessionInner, UnderWay};

use crate::backlog::{DeliveryBacklog, GivenDelivery, ParkedSession, WaitingDelivery};
use crate::delivery::PendingMessage;
use crate::doubts::{Doubts, Given};
use crate::held_messages::HeldMessages;
use crate::identity::DeviceIdentity;
use crate::sender_receipts::{EndedDeliveries, SenderReceipt};
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

/// The messages of a device in the ledger.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) deliveries: Vec<PendingMessage>,
    /// Whether that is not all, or not known.
    pub(crate) has_more: bool,
    /// The number of messages dropped because too many waited.
    pub(crate) deleted: usize,
    /// What waits beyond that.
    pub(crate) backlog: Option<Box<DeliveryBacklog>>,
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
            backlog: None,
            is_stale: false,
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
            LookUp::Needed => return state.note_more(&delivery.message),
            LookUp::Running { .. } => {
                state.look_up = LookUp::Running { again: true };
                return state.note_more(&delivery.message);
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
        state.forget_backlog();
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
        let mut state = self.lock();
        if let Some(under_way) = &mut state.under_way {
            under_way.queue.retain(|delivery| delivery.message.id != message);
        }
        if let Some(backlog) = &mut state.backlog {
            backlog.skip(|waiting| waiting == message);
        }
    }

    /// Takes messages out of what waits that the device has confirmed otherwise.
    pub(crate) fn skip(&self, messages: &[MessageId]) {
        if let Some(backlog) = &mut self.lock().backlog {
            backlog.skip(|waiting| messages.contains(&waiting));
        }
    }

    /// Takes the next of what the last look found, if that may still be gone by.
    pub(crate) fn next_waiting(&self, now: Timestamp) -> Option<Vec<WaitingDelivery>> {
        let mut state = self.lock();
        let backlog = state.backlog.as_mut().filter(|backlog| backlog.is_fresh(now) && !backlog.is_empty());
        if let Some(backlog) = backlog {
            return Some(backlog.take(2 * self.window()));
        }
        state.backlog = None;
        None
    }

    /// Takes what was found in the ledger, as far as the window has room; `has_more` when that was not all. What is left of it waits.
    pub(crate) fn looked(&self, found: Waiting, held: &HeldMessages) {
        let mut state = self.lock();
        if let Some(backlog) = found.backlog {
            state.backlog = Some(backlog);
        }
        if std::mem::take(&mut state.is_stale) {
            state.backlog = None;
        }
        let (mut left, mut found_deliveries) = (found.has_more, found.deliveries.into_iter());
        while let Some(delivery) = found_deliveries.next() {
            let is_known = state.has(delivery.message.id) || state.is_given_up(delivery.chunk);
            if is_known || held.has(self.identity.app, delivery.message.id) {
                continue;
            }
            if state.count() >= self.window() {
                left = true;
                let rest = std::iter::once(delivery).chain(found_deliveries);
                state.put_back(rest.collect());
                break;
            }
            state.under_way().queue.push_back(delivery);
        }
        // Whatever was settled while the ledger was read may or may not be in what was found: it is read once more.
        let again = state.look_up == LookUp::Running { again: true };
        if let Some(backlog) = &mut state.backlog {
            left |= !backlog.is_empty() || !backlog.is_all();
            if again {
                backlog.note_more();
            }
        }
        // Nobody is woken: whoever has looked takes the next step itself.
        state.look_up = if left || again { LookUp::Needed } else { LookUp::Done };
        if state.look_up == LookUp::Done {
            state.backlog = None;
        }
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
        if state.is_idle() {
            // A session that is idle holds no room for more.
            state.under_way = None;
        }
        // Only then: a session that knows all that waits for it is not woken by its own receipts.
        if state.look_up == LookUp::Needed {
            self.wake(state);
        }
        given
    }

    /// Goes on from what was known to wait when an earlier session ended.
    pub(crate) fn go_on_from(&self, backlog: Box<DeliveryBacklog>) {
        self.lock().backlog = Some(backlog);
    }

    /// Takes out what is known to wait, for the next session; nothing where another has the device, or may not.
    pub(crate) fn park(&self) -> Option<ParkedSession> {
        let mut state = self.lock();
        let mut backlog = state.backlog.take().filter(|_| state.closed.is_none())?;
        let Some(UnderWay { queue, flight, .. }) = state.under_way.take().map(|under_way| *under_way) else {
            return Some(ParkedSession { given: Vec::new(), backlog });
        };
        let queued = queue.iter().map(|one| WaitingDelivery { message: one.message.id, chunk: one.chunk });
        backlog.put_back(queued);
        let given = flight.into_iter().filter(|flight| !flight.is_confirmed).map(|flight| GivenDelivery {
            waiting: WaitingDelivery { message: flight.message, chunk: flight.chunk },
            wanted: flight.wanted,
        });
        Some(ParkedSession { given: given.collect(), backlog })
    }

    /// Drops what a chunk has for the device, whose receipt cannot be written; returns when it was given.
    pub(crate) fn give_up(&self, chunk: ChunkId) -> Vec<Given> {
        let mut state = self.lock();
        let under_way = state.under_way();
        under_way.given_up.push(chunk);
        let dropped = under_way.flight.extract_if(.., |flight| flight.chunk == chunk);
        dropped.map(|flight| flight.given).collect()
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
        self.state.lock()
    }
}

/// Returns whether a message has not expired.
pub(crate) fn is_live(delivery: &PendingMessage, now: Timestamp) -> bool {
    !delivery.message.is_expired(now)
}
