//! The state of one connected device: deliveries to write, unconfirmed deliveries, and the need for a look-up in the ledger.

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

/// The reason for which the server ended a session.
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
    /// True if more may wait.
    pub(crate) has_more: bool,
    /// The number of messages dropped because too many waited.
    pub(crate) deleted: usize,
    /// Further waiting deliveries.
    pub(crate) backlog: Option<Box<DeliveryBacklog>>,
}

/// The next step of a connection.
pub(crate) enum SessionStep {
    /// Writes these deliveries.
    Give(Vec<PendingMessage>),
    /// Reads the ledger; the look-up counts as running until [`SessionState::looked`] is called.
    LookUp,
    /// Waits to be woken.
    Wait,
    /// Ends the session.
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
    /// The wake-up shared by several sessions of one connection.
    shared_wake: Option<Arc<Notify>>,
    state: Mutex<SessionInner>,
}

impl SessionState {
    pub(crate) fn new(
        identity: DeviceIdentity,
        protocol: DeviceProtocol,
        window: usize,
        opened_at: Timestamp,
        shared_wake: Option<Arc<Notify>>,
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

    /// Returns the time of its opening, by the server's clock.
    pub(crate) const fn opened_at(&self) -> Timestamp {
        self.opened_at
    }

    /// Lists the messages that the device gets next.
    pub(crate) fn next_messages(&self) -> Vec<MessageId> {
        let state = self.lock();
        let queue = state.under_way.iter().flat_map(|under_way| &under_way.queue);
        queue.map(|delivery| delivery.message.id).collect()
    }

    pub(crate) const fn silence(&self) -> &Silence {
        &self.silence
    }

    /// Takes a delivery that was just settled. One that finds no room is looked up later, so that a slow reader costs no memory. A held
    /// message is looked up after its release.
    pub(crate) fn offer(&self, delivery: &PendingMessage, held: &HeldMessages) {
        let mut state = self.lock();
        // Checked with the session locked: a message is added to the held ones before this session is searched for it.
        if held.has(self.identity.app, delivery.message.id) {
            return;
        }
        // A message that may not wait is in no look-up.
        let is_now_or_never = delivery.message.spec.ttl.as_seconds() == 0;
        match state.look_up {
            _ if is_now_or_never => {
                if state.has(delivery.message.id) || state.count() >= self.window() {
                    return;
                }
                state.under_way().queue.push_back(delivery.clone());
            }
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

    /// Requests another look-up in the ledger.
    pub(crate) fn look_again(&self) {
        let mut state = self.lock();
        state.forget_backlog();
        state.look_up = match state.look_up {
            LookUp::Running { .. } => LookUp::Running { again: true },
            LookUp::Needed | LookUp::Done => LookUp::Needed,
        };
        self.wake(state);
    }

    /// Returns the next step. Deliveries in it count as handed out from then on.
    pub(crate) fn step(self: &Arc<Self>, now: Timestamp, doubts: &Doubts) -> SessionStep {
        self.lock().step(now, self.window(), self.room(doubts))
    }

    /// Returns the function that requests room for deliveries in doubt.
    fn room(self: &Arc<Self>, doubts: &Doubts) -> impl FnOnce(usize, bool) -> Option<(usize, Given)> {
        move |count, is_in_line| doubts.take(count, self, is_in_line)
    }

    /// Lets the session request room again, after it was taken from the queue.
    pub(crate) fn leave_line(&self) {
        let mut state = self.lock();
        state.is_in_line = false;
        self.wake(state);
    }

    /// Returns the times of the deliveries in flight, whose receipts will no longer be counted.
    pub(crate) fn abandon(&self) -> Vec<Given> {
        let mut state = self.lock();
        let flights = state.under_way.iter_mut().flat_map(|under_way| &mut under_way.flight);
        flights.map(|flight| std::mem::replace(&mut flight.given, Given::UNCOUNTED)).collect()
    }

    /// Returns the next step as [`SessionState::step`] does; without a step, any change wakes `context`.
    pub(crate) fn poll_step(
        self: &Arc<Self>,
        now: Timestamp,
        doubts: &Doubts,
        context: &Context<'_>,
    ) -> Poll<SessionStep> {
        let mut state = self.lock();
        match state.step(now, self.window(), self.room(doubts)) {
            SessionStep::Wait => {
                // Stored under the same lock as the check, so that the next change finds it.
                match &mut state.waker {
                    Some(known) if known.will_wake(context.waker()) => {}
                    waker => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            step => Poll::Ready(step),
        }
    }

    /// Removes a message, which is now held back, from the next deliveries.
    pub(crate) fn withhold(&self, message: MessageId) {
        let mut state = self.lock();
        if let Some(under_way) = &mut state.under_way {
            under_way.queue.retain(|delivery| delivery.message.id != message);
        }
        if let Some(backlog) = &mut state.backlog {
            backlog.skip(|waiting| waiting == message);
        }
    }

    /// Removes messages from the backlog that the device has confirmed by other means.
    pub(crate) fn skip(&self, messages: &[MessageId]) {
        if let Some(backlog) = &mut self.lock().backlog {
            backlog.skip(|waiting| messages.contains(&waiting));
        }
    }

    /// Takes the next deliveries from the backlog, if it is still fresh.
    pub(crate) fn next_waiting(&self, now: Timestamp) -> Option<Vec<WaitingDelivery>> {
        let mut state = self.lock();
        let backlog = state.backlog.as_mut().filter(|backlog| backlog.is_fresh(now) && !backlog.is_empty());
        if let Some(backlog) = backlog {
            return Some(backlog.take(2 * self.window()));
        }
        state.backlog = None;
        None
    }

    /// Takes the result of a look-up, as far as the window has room; `has_more` is set if more wait. The rest goes to the backlog.
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
        // A chunk settled during the look-up may be missing from its result, so another one follows.
        let again = state.look_up == LookUp::Running { again: true };
        if let Some(backlog) = &mut state.backlog {
            left |= !backlog.is_empty() || !backlog.is_all();
            if again {
                backlog.note_more();
            }
        }
        // No wake-up, because the caller of the look-up takes the next step itself.
        state.look_up = if left || again { LookUp::Needed } else { LookUp::Done };
        if state.look_up == LookUp::Done {
            state.backlog = None;
        }
    }

    /// Confirms deliveries; returns the receipts to write. Deliveries that were not handed out or are already confirmed have none.
    pub(crate) fn confirm_where(&self, is_meant: impl Fn(MessageId) -> bool) -> EndedDeliveries {
        self.end_where(is_meant, ReceiptKind::Delivered)
    }

    /// Ends deliveries; returns the receipts to write. Deliveries that were not handed out or have already ended have none.
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
                // It keeps its place until its receipt is written: until then the ledger would return it again.
                flight.is_confirmed = true;
                let (chunk, device) = (flight.chunk, self.identity.device);
                ended.receipts.push(Receipt { chunk, device, kind });
                let wanted = flight.wanted.take().filter(|_| kind == ReceiptKind::Delivered);
                let receipts = wanted.map(|name| SenderReceipt::new(self.identity, flight.message, name));
                ended.wanted.extend(receipts);
            }
        }
        ended
    }

    /// Makes room for deliveries with written receipts, which the ledger no longer returns. Returns the times at which they were handed
    /// out.
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
            // An idle session holds no memory for deliveries.
            state.under_way = None;
        }
        // Only then: a session that knows all its waiting deliveries is not woken by its own receipts.
        if state.look_up == LookUp::Needed {
            self.wake(state);
        }
        given
    }

    /// Continues with the known waiting deliveries of an earlier session.
    pub(crate) fn go_on_from(&self, backlog: Box<DeliveryBacklog>) {
        self.lock().backlog = Some(backlog);
    }

    /// Takes the known waiting deliveries for the next session; `None` if the session was closed by the server.
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

    /// Drops the delivery of a chunk whose receipt cannot be written; returns the time at which it was handed out.
    pub(crate) fn give_up(&self, chunk: ChunkId) -> Vec<Given> {
        let mut state = self.lock();
        let under_way = state.under_way();
        under_way.given_up.push(chunk);
        let dropped = under_way.flight.extract_if(.., |flight| flight.chunk == chunk);
        dropped.map(|flight| flight.given).collect()
    }

    /// Returns the messages that were handed out and are not confirmed.
    pub(crate) fn unconfirmed(&self) -> Vec<MessageId> {
        let state = self.lock();
        let waiting = state.flight().iter().filter(|flight| !flight.is_confirmed);
        waiting.map(|flight| flight.message).collect()
    }

    /// Ends the session; the first reason counts.
    pub(crate) fn close(&self, why: Closed) {
        let mut state = self.lock();
        state.closed.get_or_insert(why);
        self.wake(state);
    }

    /// Wakes the task that waits for the next step.
    fn wake(&self, mut state: MutexGuard<'_, SessionInner>) {
        // Taken, because a waker serves one wait, and the next wait stores its own.
        let waker = state.waker.take();
        // Dropped first, because the woken task locks the state.
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

/// Returns true if a message has not expired.
pub(crate) fn is_live(delivery: &PendingMessage, now: Timestamp) -> bool {
    !delivery.message.is_expired(now)
}
