//! What passing time does to a connection: requests that are late, a peer that says nothing, the end of a long life.

use std::future::Future as _;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::Duration;

use super::Driver;
use super::phase::ConnectionPhase;
use super::pulse::Sign;
use crate::fault::Fault;

/// A connection older than this is replaced: its clock counts milliseconds in 32 bits.
const AGE_MAX: Duration = Duration::from_secs(20 * 24 * 3_600);
/// The clock's grain before the peer's first answer: silence lets more requests start, which nothing else would tell.
const LISTEN_EVERY: Duration = Duration::from_millis(5);
/// How old a request is that is late, at least.
const LATE_AFTER_MIN: Duration = Duration::from_millis(25);
/// The same in shortest latencies.
const LATE_LATENCIES: u32 = 16;
/// How long what waits for a connection that is asked after its idleness does so: between these, by the way's length.
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_MAX: Duration = Duration::from_millis(500);

impl Driver {
    /// Looks at the clock once a tick; returns the reason when the connection is dead.
    pub(super) fn watch_clock(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        let busy = !self.phase.has_settled() || self.pulse.is_probing() || !self.mux.streams.is_empty();
        let elapsed = self.timer.as_mut().poll(cx).is_ready();
        // A tick of the busy clock says nothing of how long a connection has been unused, and the other way round.
        let is_due = elapsed && busy == self.was_busy;
        if elapsed || busy != self.was_busy {
            self.was_busy = busy;
            let span = self.span(busy);
            self.timer.as_mut().reset(self.now + span);
            // A timer that was reset wakes this loop only once it is polled again.
            let _ = self.timer.as_mut().poll(cx);
        }
        if is_due { self.tick(busy) } else { None }
    }

    /// Returns when the clock is to be looked at again.
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
        // Retired and not closed: what is open on it still gets its answers.
        if self.now.duration_since(self.opened_at) >= AGE_MAX {
            self.retire();
        }
        // Before `expire`, which goes by how many are late.
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
        // Without `nudge`: the same turn looks at the queue no more, but leaves, and leaving looks for those who wait.
        self.publish(0);
        self.member.retired.store(1, Relaxed);
    }

    /// Resets the streams whose time is over.
    fn expire(&mut self) {
        self.expire_after(self.pool.limits.request_timeout(), usize::MAX);
        let (late, open) = (self.mux.streams.late(), self.mux.streams.len());
        // Where every stream that can be had is taken, and more of them by late requests than by others, nobody else can
        // be served: the oldest give their places back.
        if late > open / 2 && self.room() == 0 && self.pool.is_crowded() {
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

    /// Lets requests hold back nobody when others that were sent much later are answered: where a queue makes all wait they
    /// are answered in their order, and none of them is late. Where nothing at all is answered for as long, what is left may be
    /// all that waits, and nothing younger could overtake it: it is late too. What failed before holds back nobody after that
    /// time, answers to others or not, as long as it takes less than half of the streams.
    fn mark_late(&mut self) {
        let (after, before) = (millis(self.late_after()), self.mux.streams.late());
        let old_ms = self.now_ms().checked_sub(after);
        let is_silent = old_ms.is_some_and(|old_ms| self.last_answer_ms <= old_ms);
        let overtaken_ms = if is_silent { old_ms } else { self.last_answered_ms.checked_sub(after) };
        let (congestion, slots) =
            (&self.pool.congestion, self.mux.slots(self.pool.limits.max_streams_per_connection));
        let forgive = |count: usize| congestion.forgive(count.min((slots / 2).saturating_sub(before)));
        self.mux.mark_late((overtaken_ms, old_ms), |count| congestion.excuse(count), forgive);
        if self.mux.streams.late() > before {
            self.pool.nudge();
        }
    }

    fn late_after(&self) -> Duration {
        LATE_AFTER_MIN.max(self.pool.latency.min_rtt() * LATE_LATENCIES)
    }

    /// Asks an unused connection whether it lives before anything is entrusted to it.
    pub(super) fn must_probe(&mut self) -> bool {
        let quiet = self.pulse.silence(self.now) >= self.pool.limits.probe_after_idle();
        self.mux.streams.is_empty() && quiet && self.pulse.check(true, self.now) == Sign::Ask
    }

    /// Asks it; whatever waits is for connections that need not be asked, or for the first one to answer.
    pub(super) fn probe(&mut self) {
        self.mux.ping();
        // Before `nudge`, which opens no connection while one is asking, and wakes none without room.
        self.publish(0);
        self.member.probing.store(1, Relaxed);
        self.pool.nudge();
    }

    /// Notes a sign of life.
    pub(super) fn hear(&mut self) {
        // The same turn publishes its room and looks at the queue, for what was left waiting for this answer.
        if self.pulse.is_probing() {
            self.member.probing.store(0, Relaxed);
        }
        self.pulse.listen(self.now);
    }

    /// Returns how long the answer to a probe is waited for: a connection to which nothing is entrusted is soon replaced.
    fn patience(&self) -> Duration {
        (2 * self.pool.latency.min_rtt()).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
