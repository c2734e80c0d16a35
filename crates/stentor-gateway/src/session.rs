//! A device that is connected, as its protocol sees it.

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

/// What there is for a device.
#[derive(Debug)]
pub enum SessionEvent {
    /// Messages, in order of acceptance. Each is to be confirmed by its id.
    Messages(Vec<PendingMessage>),
    /// So many messages were deleted because too many waited.
    Deleted(usize),
}

/// One connected device. Dropping it ends the session; what was not confirmed waits in the ledger.
pub struct DeviceSession {
    state: Arc<SessionState>,
    gateway: Arc<GatewayState>,
}

impl DeviceSession {
    pub(crate) fn open(state: Arc<SessionState>, gateway: Arc<GatewayState>) -> Self {
        gateway.counts.note_opened(state.protocol());
        // Before the first look at the ledger: what is settled from here on is offered, or makes that look be
        // repeated.
        gateway.registry.add(&state);
        gateway.parked.hand_over(&state);
        Self { state, gateway }
    }

    /// Returns whose it is.
    #[must_use]
    pub fn identity(&self) -> DeviceIdentity {
        self.state.identity()
    }

    pub(crate) fn close(&self, why: Closed) {
        self.state.close(why);
    }

    /// Ends it from now on once the device has been silent for so long.
    pub(crate) fn end_after_silence(&self, longest: Duration) {
        self.gateway.silences.watch(&self.state, longest);
    }

    /// Returns how long the device may be silent.
    pub(crate) fn longest_silence(&self) -> Duration {
        self.state.silence().longest()
    }

    /// Notes that the device was heard.
    pub(crate) fn received(&self) {
        self.gateway.silences.received(&self.state);
    }

    /// Waits for what there is for the device; returns why the session is to end.
    ///
    /// It may be cut off at any moment and called again: nothing is lost by that.
    pub async fn next(&self) -> Result<SessionEvent, Closed> {
        loop {
            let step = poll_fn(|context| self.poll_step(context)).await;
            if let Some(event) = self.follow(step).await? {
                return Ok(event);
            }
        }
    }

    /// Waits for what is to be done next: of the steps that this returns, [`DeviceSession::follow`] makes an event.
    pub(crate) fn poll_step(&self, context: &Context<'_>) -> Poll<SessionStep> {
        self.state.poll_step(self.gateway.clock.now(), &self.gateway.doubts, context)
    }

    /// Returns what there is for the device now, looking at the ledger where need be. For a connection that serves several devices
    /// with one wake-up.
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

    /// Does a step, looking at the ledger where need be; returns what there is for the device then, if anything.
    pub(crate) async fn follow(&self, step: SessionStep) -> Result<Option<SessionEvent>, Closed> {
        match step {
            SessionStep::Give(deliveries) => Ok(Some(SessionEvent::Messages(self.counted(deliveries)))),
            SessionStep::End(closed) => Err(closed),
            SessionStep::Wait => Ok(None),
            // Begun before the future is polled: one that is dropped unpolled must still make it look again.
            SessionStep::LookUp => {
                // Apart, so that whoever only waits does not hold the memory of a look-up.
                let looking_up =
                    Box::pin(LookingUp::begin(&self.state, &self.gateway.held).run(&self.gateway));
                Ok(looking_up.await.map(SessionEvent::Deleted))
            }
        }
    }

    /// Counts what the connection is given.
    pub(crate) fn counted(&self, deliveries: Vec<PendingMessage>) -> Vec<PendingMessage> {
        self.gateway.counts.note_deliveries(deliveries.len());
        deliveries
    }

    /// Notes what the device confirms, by the ids of messages. What it was never given, or has confirmed before, changes nothing.
    pub fn confirm(&self, messages: &[MessageId]) {
        let ended = self.state.confirm_where(|message| messages.contains(&message));
        self.gateway.receipts.write(Some(&self.state), ended);
    }

    /// Notes that messages cannot reach the device, or that it has dropped them, for a reason other than [`Reason::None`]: they wait
    /// no more, and stay accepted.
    pub fn give_up(&self, messages: &[MessageId], reason: Reason) {
        let ended = self.state.end_where(|message| messages.contains(&message), ReceiptKind::Dropped(reason));
        self.gateway.receipts.write(Some(&self.state), ended);
    }

    /// Notes what the device says that it got through an earlier connection: what still waits of it is confirmed.
    pub async fn confirm_earlier(&self, messages: &[MessageId]) -> Result<(), StoreError> {
        self.gateway.confirm(self.identity(), Some(&self.state), messages).await.map(drop)
    }

    /// Returns how many deliveries were given and not confirmed.
    #[must_use]
    pub fn unconfirmed(&self) -> usize {
        self.state.unconfirmed().len()
    }

    /// Returns the messages that were given and not confirmed, in the order in which they were.
    #[must_use]
    pub fn unconfirmed_messages(&self) -> Vec<MessageId> {
        self.state.unconfirmed()
    }
}

impl Drop for DeviceSession {
    fn drop(&mut self) {
        // First: nothing is offered any more to a session that counts as closed.
        self.gateway.registry.remove(&self.state);
        self.gateway.doubts.abandoned(&self.state.abandon());
        let (device, now) = (self.state.identity().device, self.gateway.clock.now());
        if self.gateway.registry.get(device).is_none() {
            self.gateway.parked.put(device, self.state.park(), now);
        }
        self.gateway.counts.note_closed(self.state.protocol());
    }
}

/// Notes that a look-up is needed again, should this one be cut off.
struct LookingUp<'a> {
    state: &'a SessionState,
    held: &'a HeldMessages,
    is_over: bool,
}

impl<'a> LookingUp<'a> {
    const fn begin(state: &'a SessionState, held: &'a HeldMessages) -> Self {
        Self { state, held, is_over: false }
    }

    /// Looks at the ledger; returns how many deliveries were dropped because too many waited.
    async fn run(mut self, gateway: &Arc<GatewayState>) -> Option<usize> {
        let found = gateway.waiting(self.state).await;
        // Only now that the ledger has answered: cut off before, the session looks again.
        self.is_over = true;
        let deleted = found.deleted;
        self.state.looked(found, self.held);
        (deleted > 0).then_some(deleted)
    }
}

impl Drop for LookingUp<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // What was taken of what waits may be lost with it.
            self.state.look_again();
            self.state.looked(Waiting { has_more: true, ..Waiting::default() }, self.held);
        }
    }
}
