//! The end of a connection: it stops taking requests, and its open requests get their replies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

use stentor_http2_codec::frame::ErrorCode;

use super::phase::ConnectionPhase;
use super::{Driver, Turn};

use crate::batch::Reply;
use crate::fault::Fault;

impl Driver {
    /// Stops taking requests; waiting requests go to other connections.
    pub(super) fn retire(&mut self) {
        if self.phase == ConnectionPhase::Retired {
            return;
        }
        self.phase = ConnectionPhase::Retired;
        // Must precede `nudge`, which counts connections and their room under the pool's lock.
        self.publish(0);
        self.member.retired.store(1, Relaxed);
        // A connection that used up its requests is no failure, even without a response.
        if !self.answered && !self.mux.is_spent() {
            self.pool.back_off();
        }
        self.pool.nudge();
    }

    /// Ends a connection after its loop panicked. All its requests get their replies, because callers wait for them.
    ///
    /// Nothing more is written, because the buffer may end in half a frame.
    pub(super) fn rescue(&mut self) {
        let fault = Fault::Lost("an error in this program ended the connection".into());
        tracing::error!(streams = self.mux.streams.len(), "a connection's loop panicked");
        if let Some(run) = self.taken.front() {
            self.pool.congestion.ended(self.refused.len(), 0);
            run.work.settle(self.refused.drain(..));
        }
        for run in self.taken.drain(..) {
            self.pool.congestion.ended(run.len(), 0);
            run.settle(&Reply::NotSent(fault.clone()));
        }
        // A second panic must not prevent the removal of the connection from the pool.
        let ended = catch_unwind(AssertUnwindSafe(|| self.abort(fault.clone(), ErrorCode::NO_ERROR)));
        if ended.is_err() {
            self.leave(&fault, ErrorCode::NO_ERROR);
        }
    }

    /// Ends a lost connection: every open stream gets its reply.
    pub(super) fn abort(&mut self, fault: Fault, code: ErrorCode) -> Turn {
        tracing::debug!(%fault, streams = self.mux.streams.len(), "connection over");
        // Retired before its requests return to the queue, so that the pool does not count on this connection for them.
        self.publish(0);
        self.pool.congestion.hear();
        self.member.retired.store(1, Relaxed);
        self.mux.end_all(&fault);
        self.collect();
        // Must follow `collect`: a caller that waits for the last connection to leave finds every reply.
        if self.phase.has_settled() {
            self.retire();
        }
        self.leave(&fault, code)
    }

    pub(super) fn leave(&mut self, fault: &Fault, code: ErrorCode) -> Turn {
        if self.phase.has_settled() {
            self.pool.leave(&self.member);
        } else {
            self.pool.failed_to_settle(&self.member, fault);
        }
        Turn::Over(code)
    }
}
