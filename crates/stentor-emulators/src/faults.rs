//! Faults that are switched on and off while an emulator runs, beside the policy.

use crate::policy::AfterGoAway;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stentor_http2_codec::frame::ErrorCode;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// One fault, done at once on every open connection or from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum InjectedFault {
    /// Sends GOAWAY on every open connection, with the last stream id that was processed.
    Goaway {
        /// The behaviour of the connection afterwards.
        #[serde(default)]
        then: AfterGoAway,
        /// The error code.
        #[serde(default)]
        code: u32,
    },
    /// Leaves requests unanswered (`on: true`), or answers all that wait (`on: false`).
    Stall {
        /// The new state.
        on: bool,
    },
    /// Announces a new stream limit on every open connection.
    Streams {
        /// The limit.
        limit: u32,
    },
    /// Resets the next requests instead of answering them.
    ResetNext {
        /// The number of requests.
        requests: u64,
        /// The code; by default REFUSED_STREAM.
        #[serde(default = "refused")]
        code: crate::policy::ResetCode,
    },
}

fn refused() -> crate::policy::ResetCode {
    crate::policy::ResetCode::RefusedStream
}

/// The switches of one emulator.
pub(crate) struct Faults {
    stalled: AtomicBool,
    stalls: watch::Sender<Stalls>,
    reset_next: AtomicU64,
    reset_code: Mutex<crate::policy::ResetCode>,
    connections: Mutex<Vec<UnboundedSender<InjectedFault>>>,
}

/// The number of releases of stalls so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stalls(u64);

impl Default for Faults {
    fn default() -> Self {
        Self {
            stalled: AtomicBool::new(false),
            stalls: watch::Sender::default(),
            reset_next: AtomicU64::new(0),
            reset_code: Mutex::new(refused()),
            connections: Mutex::default(),
        }
    }
}

impl Faults {
    /// Injects a fault.
    pub(crate) fn inject(&self, fault: InjectedFault) {
        match fault {
            InjectedFault::Stall { on } => self.stall(on),
            InjectedFault::ResetNext { requests, code } => {
                // The code is stored first: a connection that takes one of these resets must find it.
                *self.reset_code.lock() = code;
                self.reset_next.store(requests, Ordering::Relaxed);
            }
            fault => self.notify_connections(&fault),
        }
    }

    fn stall(&self, on: bool) {
        self.stalled.store(on, Ordering::Relaxed);
        if !on {
            self.release();
        }
    }

    /// Answers everything that is stalled at this moment.
    pub(crate) fn release(&self) {
        self.stalls.send_modify(|stalls| stalls.0 += 1);
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Waits for the next release after this call.
    pub(crate) fn released(mut stalls: watch::Receiver<Stalls>) -> impl Future<Output = ()> + Send + 'static {
        // Looked at when this is called, not when the future is first polled: a release in between counts.
        let before = stalls.borrow_and_update().0;
        async move {
            // A closed channel means that the emulator is gone: nothing to wait for.
            let _ = stalls.wait_for(|now| now.0 > before).await;
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Stalls> {
        self.stalls.subscribe()
    }

    /// Takes one of the pending resets.
    pub(crate) fn take_reset(&self) -> Option<ErrorCode> {
        // Resets are nearly never pending: this fast path is a read, not a write that all cores share.
        if self.reset_next.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let take = |left: u64| left.checked_sub(1);
        self.reset_next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(self.reset_code.lock().error_code())
    }

    /// Registers a connection and returns its receiver of faults.
    pub(crate) fn connect(&self) -> UnboundedReceiver<InjectedFault> {
        let (sender, receiver) = unbounded_channel();
        let mut connections = self.connections.lock();
        // Closed connections are removed only here.
        connections.retain(|connection| !connection.is_closed());
        connections.push(sender);
        receiver
    }

    fn notify_connections(&self, fault: &InjectedFault) {
        let mut connections = self.connections.lock();
        connections.retain(|connection| connection.send(fault.clone()).is_ok());
    }
}
