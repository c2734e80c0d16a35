//! A connected device as seen by its protocol.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use stentor_core::id::MessageId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{ReceiptKind, StoreError};

use crate::delivery::PendingMessage;
use crate::gateway::GatewayState;
use crate::held_messages::HeldMessages;
use crate::identity::DeviceIdentity;
use crate::session_state::{Closed, SessionState, SessionStep, Waiting};

/// An event for a device.
#[derive(Debug)]
pub enum SessionEvent {
    /// Messages, in order of acceptance. Each must be confirmed by its id.
    Messages(Vec<PendingMessage>),
    /// The number of messages that were deleted because too many waited.
    Deleted(usize),
}

/// One connected device. Dropping it ends the session; unconfirmed messages wait in the ledger.
pub struct DeviceSession {
    state: Arc<SessionState>,
    gateway: Arc<GatewayState>,
}

impl DeviceSession {
    pub(crate) fn open(state: Arc<SessionState>, gateway: Arc<GatewayState>) -> Self {
        gateway.counts.note_opened(state.protocol());
        // Added before the first look-up: chunks settled from here on are offered, or cause another look-up.
        gateway.registry.add(&state);
        gateway.parked.hand_over(&state);
        Self { state, gateway }
    }

    /// Returns the identity of the device.
    #[must_use]
    pub fn identity(&self) -> DeviceIdentity {
        self.state.identity()
    }

    pub(crate) fn close(&self, why: Closed) {
        self.state.close(why);
    }

    /// Sets the silence of the device after which the session ends.
    pub(crate) fn end_after_silence(&self, longest: Duration) {
        self.gateway.silences.watch(&self.state, longest);
    }

    /// Returns the longest silence of the device.
    pub(crate) fn longest_silence(&self) -> Duration {
        self.state.silence().longest()
    }

    /// Records a sign of life of the device.
    pub(crate) fn received(&self) {
        self.gateway.silences.received(&self.state);
    }

    /// Waits for the next event. The error is the reason for the end of the session.
    ///
    /// The call may be cancelled without losing data.
    pub async fn next(&self) -> Result<SessionEvent, Closed> {
        loop {
            let step = poll_fn(|context| self.poll_step(context)).await;
            if let Some(event) = self.follow(step).await? {
                return Ok(event);
            }
        }
    }

    /// Waits for the next step, which [`DeviceSession::follow`] turns into an event.
    pub(crate) fn poll_step(&self, context: &Context<'_>) -> Poll<SessionStep> {
        self.state.poll_step(self.gateway.clock.now(), &self.gateway.doubts, context)
    }

    /// Returns the next event if there is one now, reading the ledger if needed. For connections that serve several devices with one
    /// wake-up.
    pub async fn try_next(&self) -> Result<Option<SessionEvent>, Closed> {
        loop {
            let step = self.state.step(self.gateway.clock.now(), &self.gateway.doubts);
            if matches!(step, SessionStep::Wait) {
                return Ok(None);
            }
            if let Some(event) = self.follow(step).await? {
                return Ok(Some(event));
            }
        }
    }

    /// Performs a step, reading the ledger if needed; returns its event, if there is one.
    pub(crate) async fn follow(&self, step: SessionStep) -> Result<Option<SessionEvent>, Closed> {
        match step {
            SessionStep::Give(deliveries) => Ok(Some(SessionEvent::Messages(self.counted(deliveries)))),
            SessionStep::End(closed) => Err(closed),
            SessionStep::Wait => Ok(None),
            // Begun before the future is polled: dropping it unpolled must still cause another look-up.
            SessionStep::LookUp => {
                // Boxed, so that a waiting connection does not hold the memory of a look-up.
                let looking_up =
                    Box::pin(LookingUp::begin(&self.state, &self.gateway.held).run(&self.gateway));
                Ok(looking_up.await.map(SessionEvent::Deleted))
            }
        }
    }

    /// Counts deliveries passed to the connection.
    pub(crate) fn counted(&self, deliveries: Vec<PendingMessage>) -> Vec<PendingMessage> {
        self.gateway.counts.note_deliveries(deliveries.len());
        deliveries
    }

    /// Confirms messages by their ids. Messages that were never delivered, or are already confirmed, change nothing.
    pub fn confirm(&self, messages: &[MessageId]) {
        let ended = self.state.confirm_where(|message| messages.contains(&message));
        self.gateway.receipts.write(Some(&self.state), ended);
    }

    /// Records that messages cannot reach the device, or that it has dropped them, for a reason other than [`Reason::None`]. They no longer
    /// wait, and stay accepted.
    pub fn give_up(&self, messages: &[MessageId], reason: Reason) {
        let ended = self.state.end_where(|message| messages.contains(&message), ReceiptKind::Dropped(reason));
        self.gateway.receipts.write(Some(&self.state), ended);
    }

    /// Confirms messages that the device reports as received over an earlier connection, as far as they still wait.
    pub async fn confirm_earlier(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.gateway.confirm(self.identity(), Some(&self.state), messages).await.map(drop)
    }

    /// Returns the number of unconfirmed deliveries.
    #[must_use]
    pub fn unconfirmed(&self) -> usize {
        self.state.unconfirmed().len()
    }

    /// Returns the unconfirmed messages, in order of delivery.
    #[must_use]
    pub fn unconfirmed_messages(&self) -> Vec<MessageId> {
        self.state.unconfirmed()
    }
}

impl Drop for DeviceSession {
    fn drop(&mut self) {
        // First, so that nothing is offered to a session that counts as closed.
        self.gateway.registry.remove(&self.state);
        self.gateway.doubts.abandoned(&self.state.abandon());
        let (device, now) = (self.state.identity().device, self.gateway.clock.now());
        if self.gateway.registry.get(device).is_none() {
            self.gateway.parked.put(device, self.state.park(), now);
        }
        self.gateway.counts.note_closed(self.state.protocol());
    }
}

/// A guard that causes another look-up if this one is cancelled.
struct LookingUp<'a> {
    state: &'a SessionState,
    held: &'a HeldMessages,
    is_over: bool,
}

impl<'a> LookingUp<'a> {
    const fn begin(state: &'a SessionState, held: &'a HeldMessages) -> Self {
        Self { state, held, is_over: false }
    }

    /// Reads the ledger; returns the number of deliveries that were dropped because too many waited.
    async fn run(mut self, gateway: &Arc<GatewayState>) -> Option<usize> {
        let found = gateway.waiting(self.state).await;
        // Only after the ledger has answered: a look-up cancelled earlier is repeated.
        self.is_over = true;
        let deleted = found.deleted;
        self.state.looked(found, self.held);
        (deleted > 0).then_some(deleted)
    }
}

impl Drop for LookingUp<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Deliveries taken from the backlog may be lost with it.
            self.state.look_again();
            self.state.looked(Waiting { has_more: true, ..Waiting::default() }, self.held);
        }
    }
}
