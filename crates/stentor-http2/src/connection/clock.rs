//! What passing time does to a connection: requests that are late, a peer that says nothing, the end of a long life.

use std::future::Future as _;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use super::Driver;
use super::pulse::Sign;
use crate::fault::Fault;

/// A connection older than this is replaced: its clock counts milliseconds in 32 bits.
const AGE_MAX: Duration = Duration::from_secs(20 * 24 * 3_600);
/// The clock's grain before the peer's first answer: silence lets more requests start, which nothing else would tell.
const LISTEN_EVERY: Duration = Duration::from_millis(5);
/// How long what waits for a connection that is asked after its idleness does so: between these, by the way's length.
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_MAX: Duration = Duration::from_millis(500);

impl Driver {
    /// Looks at the clock once a tick; gives the reason when the connection is dead.
    pub(super) fn watch_clock(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        let busy = !self.settled || self.pulse.is_asking() || !self.mux.streams.is_empty();
        let elapsed = self.timer.as_mut().poll(cx).is_ready();
        // A tick of the busy clock says nothing of how long a connection has been unused, and the other way round.
        let is_due = elapsed && busy == self.was_busy;
        if elapsed || busy != self.was_busy {
            self.was_busy = busy;
            let span = self.span(busy);
            self.timer.as_mut().reset(self.now + span);
            let _ = self.timer.as_mut().poll(cx);
        }
        if is_due { self.tick(busy) } else { None }
    }

    /// Gives when the clock is to be looked at again.
    fn span(&self, busy: bool) -> Duration {
        let limits = &self.pool.limits;
        match busy {
            true if self.pool.pace.wait(self.now.duration_since(self.pool.began)) => {
                limits.tick().min(LISTEN_EVERY)
            }
            true => limits.tick(),
            false => limits.idle_close(),
        }
    }

    fn tick(&mut self, busy: bool) -> Option<Fault> {
        if !self.settled && self.now >= self.settle_by {
            return Some(Fault::ConnectTimeout);
        }
        if !busy {
            self.retire_idle();
            return None;
        }
        if self.now.duration_since(self.opened_at) >= AGE_MAX {
            self.retire();
        }
        self.expire();
        if self.member.is_asking() && self.pulse.asked_for(self.now) >= self.patience() {
            return Some(Fault::DeadConnection);
        }
        let silent =
            !self.mux.streams.is_empty() && self.pulse.silence(self.now) >= self.pool.limits.ping_interval();
        match self.pulse.check(silent, self.now) {
            Sign::Dead => return Some(Fault::DeadConnection),
            Sign::Ask => self.mux.ping(),
            Sign::Fine => {}
        }
        None
    }

    fn retire_idle(&mut self) {
        self.retired = true;
        self.publish(0);
        self.member.retired.store(1, Relaxed);
    }

    /// Resets the streams whose time is over.
    fn expire(&mut self) {
        let timeout_ms = self.pool.limits.request_timeout_ms.min(u64::from(u32::MAX)) as u32;
        let Some(opened_ms) = self.now_ms().checked_sub(timeout_ms) else { return };
        let late = self.mux.expire(opened_ms);
        if late > 0 {
            self.pool.counters.timeouts.add(late as u64);
            self.pool.pace.failed(late);
            self.collect();
        }
    }

    /// Asks an unused connection whether it lives before anything is entrusted to it.
    pub(super) fn must_probe(&mut self) -> bool {
        let quiet = self.pulse.silence(self.now) >= self.pool.limits.probe_after_idle();
        self.mux.streams.is_empty() && quiet && self.pulse.check(true, self.now) == Sign::Ask
    }

    /// Asks it; whatever waits is for connections that need not be asked, or for the first one to answer.
    pub(super) fn probe(&mut self) {
        self.mux.ping();
        self.publish(0);
        self.member.asking.store(1, Relaxed);
        self.pool.nudge();
    }

    /// Notes a sign of life.
    pub(super) fn hear(&mut self) {
        if self.pulse.is_asking() {
            self.member.asking.store(0, Relaxed);
        }
        self.pulse.listen(self.now);
    }

    /// Gives how long the answer to a probe is waited for: a connection to which nothing is entrusted is soon replaced.
    fn patience(&self) -> Duration {
        (2 * self.pool.latency.floor()).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }
}
