//! Opening of streams for waiting requests of the pool.

use std::sync::atomic::Ordering::Relaxed;

use super::Driver;
use super::phase::ConnectionPhase;

use crate::batch::Reply;
use crate::work::Run;

/// Bytes of requests gathered for one write: about 180 pushes. Larger writes cost no less per request.
const WRITE_MAX_BYTES: usize = 64 * 1_024;

impl Driver {
    /// Opens streams for waiting requests, as many as the peer, congestion control and one write permit. Returns true if it opened any.
    pub(super) fn open_streams(&mut self) -> bool {
        if self.transport.backlog_bytes() > 0 {
            self.publish(0);
            return false;
        }
        let room = self.room();
        // The room is published before the queue is read under the pool's lock. A thread that adds requests later takes that lock after
        // this one, sees the room although it is `Relaxed`, and wakes this loop. Requests added earlier are seen here. In the reverse
        // order, requests added in between would wake no loop.
        self.publish(room);
        if !self.pool.has_waiting() {
            return false;
        }
        if room == 0 {
            if self.phase.has_settled() {
                self.pool.nudge();
            }
            return false;
        }
        if self.must_probe() {
            self.probe();
            return true;
        }
        let opened = self.fill(room);
        let room = self.room();
        // Must precede `nudge`, which would wake this loop for room that it has used.
        self.publish(room);
        if room == 0 {
            self.pool.nudge();
        }
        opened
    }

    /// Takes requests from the pool until the room, the buffer or the time is exhausted; returns true if there were any.
    fn fill(&mut self, mut room: usize) -> bool {
        let mut any = false;
        while room > 0 && self.mux.out.len() < WRITE_MAX_BYTES {
            self.pool.take(room, &mut self.taken);
            if self.taken.is_empty() {
                break;
            }
            any = true;
            room -= self.taken.iter().map(Run::len).sum::<usize>();
            // All runs taken are written or given back before more are taken, because they count as in flight.
            while self.open_first() {}
            if self.is_long() {
                break;
            }
        }
        any
    }

    /// Opens streams for the first run taken, and gives back the part that does not fit into the buffer. Returns false if there was no run.
    fn open_first(&mut self) -> bool {
        let now_ms = self.now_ms();
        let Some(run) = self.taken.front_mut() else { return false };
        // For the whole run: at zero the slot would go to another batch while its streams open.
        let batch = self.mux.enlist(&run.work, run.len() as u32);
        let refused = &mut self.refused;
        self.mux.open(batch, run, now_ms, WRITE_MAX_BYTES, |index, fault| {
            refused.push((index, Reply::NotSent(fault)));
        });
        let (left, lost) = (run.len(), self.refused.len());
        self.mux.let_go(batch, (left + lost) as u32);
        // Room before replies, as in `collect`.
        if lost > 0 {
            self.pool.congestion.ended(lost, 0);
            run.work.settle(self.refused.drain(..));
        }
        if let Some(run) = self.taken.pop_front().filter(|run| run.len() > 0) {
            self.pool.give_back(run);
        }
        true
    }

    pub(super) fn room(&self) -> usize {
        let is_probing = self.mux.streams.is_empty() && self.pulse.is_probing();
        let usable = self.phase == ConnectionPhase::Serving && !is_probing;
        if usable { self.mux.room(self.pool.limits.max_streams_per_connection) } else { 0 }
    }

    pub(super) fn publish(&self, room: usize) {
        self.member.room.store(room, Relaxed);
        self.member.open.store(self.mux.streams.len(), Relaxed);
        self.member.late.store(self.mux.streams.late(), Relaxed);
    }
}
