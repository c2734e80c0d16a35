//! Time limits of a connection: late requests, a silent peer, the maximum age.

use std::future::Future as _;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use super::Driver;
use super::phase::ConnectionPhase;
use super::pulse::Sign;
use crate::fault::Fault;

/// Maximum age of a connection: its clock counts milliseconds in 32 bits.
const AGE_MAX: Duration = Duration::from_secs(20 * 24 * 3_600);
/// Interval of the clock before the peer's first response. Slow start permits more requests as time passes, and no other event would wake
/// the loop for them.
const LISTEN_EVERY: Duration = Duration::from_millis(5);
/// Lower bound of the age at which a request is late.
const LATE_AFTER_MIN: Duration = Duration::from_millis(25);
/// The same age as a multiple of the shortest latency.
const LATE_LATENCIES: u32 = 16;
/// Bounds of the wait for a PING reply on an idle connection; the actual value depends on the latency.
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_MAX: Duration = Duration::from_millis(500);

impl Driver {
    /// Checks the clock once a tick; returns the fault if the connection is dead.
    pub(super) fn watch_clock(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        let busy = !self.phase.has_settled() || self.pulse.is_probing() || !self.mux.streams.is_empty();
        let elapsed = self.timer.as_mut().poll(cx).is_ready();
        // An elapsed busy interval says nothing about idle time, and vice versa.
        let is_due = elapsed && busy == self.was_busy;
        if elapsed || busy != self.was_busy {
            self.was_busy = busy;
            let span = self.span(busy);
            self.timer.as_mut().reset(self.now + span);
            // A reset timer wakes this loop only after it is polled again.
            let _ = self.timer.as_mut().poll(cx);
        }
        if is_due { self.tick(busy) } else { None }
    }

    /// Returns the time until the next check of the clock.
    fn span(&self, busy: bool) -> Duration {
        let limits = &self.pool.limits;
        match busy {
            true if self.pool.congestion.wait(self.now.duration_since(self.pool.began)) => {
                limits.tick().min(LISTEN_EVERY)
            }
            true => limits.tick(),
            false => limits.idle_close(),
        }
    }

    fn tick(&mut self, busy: bool) -> Option<Fault> {
        if let ConnectionPhase::Settling { until } = self.phase
            && self.now >= until
        {
            return Some(Fault::ConnectTimeout);
        }
        if !busy {
            self.retire_idle();
            return None;
        }
        // Retired and not closed: its open streams still get their responses.
        if self.now.duration_since(self.opened_at) >= AGE_MAX {
            self.retire();
        }
        // Must precede `expire`, which depends on the number of late requests.
        self.mark_late();
        self.expire();
        if self.member.is_probing() && self.pulse.asked_for(self.now) >= self.patience() {
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
        self.phase = ConnectionPhase::Retired;
        // Without `nudge`: this iteration opens no more streams but leaves, and `leave` wakes others for waiting requests.
        self.publish(0);
        self.member.retired.store(1, Relaxed);
    }

    /// Resets the streams past their timeout.
    fn expire(&mut self) {
        self.expire_after(self.pool.limits.request_timeout(), usize::MAX);
        let (late, open) = (self.mux.streams.late(), self.mux.streams.len());
        self.member.late.store(late, Relaxed);
        // If every available stream is in use, and late requests hold more than half of them, here and on all connections, no other request
        // can be served: the oldest ones give up their streams. On a connection of one stream a single late request is more than half.
        if late > open / 2 && self.room() == 0 && self.pool.is_blocked() {
            self.expire_after(self.late_after().max(self.pool.limits.late_timeout()), late - open / 2);
        }
    }

    fn expire_after(&mut self, age: Duration, most: usize) {
        let Some(opened_ms) = self.now_ms().checked_sub(millis(age)) else { return };
        let (expired, speak) = self.mux.expire(opened_ms, most);
        if expired > 0 {
            self.pool.counters.timeouts.add(expired as u64);
            self.pool.congestion.failed(speak);
            self.collect();
        }
    }

    /// Marks requests as late, so that they hold back no others.
    ///
    /// A request is late when requests sent much later have got their responses. In a peer's queue, responses come in order, and no request
    /// is late. If no response has come for the same time, all older requests are late as well: they may be the only ones under way, and no
    /// younger one could overtake them. A request that failed before is late after that time in any case, as long as such requests use less
    /// than half of the streams.
    fn mark_late(&mut self) {
        let (after, before) = (millis(self.late_after()), self.mux.streams.late());
        let old_ms = self.now_ms().checked_sub(after);
        let is_silent = old_ms.is_some_and(|old_ms| self.last_answer_ms <= old_ms);
        let overtaken_ms = if is_silent { old_ms } else { self.last_answered_ms.checked_sub(after) };
        let (congestion, slots) =
            (&self.pool.congestion, self.mux.slots(self.pool.limits.max_streams_per_connection));
        let forgive = |count: usize| congestion.forgive(count.min((slots / 2).saturating_sub(before)));
        self.mux.mark_late(overtaken_ms, old_ms, |count| congestion.excuse(count), forgive);
        if self.mux.streams.late() > before {
            self.pool.nudge();
        }
    }

    fn late_after(&self) -> Duration {
        LATE_AFTER_MIN.max(self.pool.latency.min_rtt() * LATE_LATENCIES)
    }

    /// Returns true if an unused connection must be probed before it gets requests.
    pub(super) fn must_probe(&mut self) -> bool {
        let quiet = self.pulse.silence(self.now) >= self.pool.limits.probe_after_idle();
        self.mux.streams.is_empty() && quiet && self.pulse.check(true, self.now) == Sign::Ask
    }

    /// Probes the peer. Waiting requests go to connections that need no probe, or to the first one to reply.
    pub(super) fn probe(&mut self) {
        self.mux.ping();
        // Must precede `nudge`, which opens no connection during a probe, and wakes none without room.
        self.publish(0);
        self.member.probing.store(1, Relaxed);
        self.pool.nudge();
    }

    /// Records a sign of life.
    pub(super) fn hear(&mut self) {
        // This iteration publishes the room and reads the queue, for requests that waited for this reply.
        if self.pulse.is_probing() {
            self.member.probing.store(0, Relaxed);
        }
        self.pulse.listen(self.now);
    }

    /// Returns the time limit of a probe. It is short, because a connection without requests is cheap to replace.
    fn patience(&self) -> Duration {
        (2 * self.pool.latency.min_rtt()).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
