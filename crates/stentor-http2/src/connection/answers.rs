//! Reports the ended streams of a connection to the pool and to the batches.

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use super::mux::Ended;
use super::phase::ConnectionPhase;

use crate::batch::Reply;
use crate::fault::Fault;
use crate::response::HaltResponse;
use crate::work::Run;

impl Driver {
    /// Files the streams that have ended; consecutive ones of a batch together.
    pub(super) fn collect(&mut self) {
        self.note_counts();
        self.mux.take_ended(&mut self.ended, &mut self.plainly_ended);
        if self.ended.is_empty() && self.plainly_ended.is_empty() {
            return;
        }
        let answered = self.ended.iter().filter(|ended| matches!(ended.reply, Reply::Answered(_))).count();
        let answers = self.plainly_ended.len() + answered;
        // Must precede everything that makes room: another connection would use it for waiting requests although the peer demands a pause.
        self.obey(answers);
        // Late requests were already removed from the count. This precedes the filing of replies: a caller woken by a reply may submit the
        // next batch at once, and needs the room.
        let late = self.mux.streams.take_late_ended();
        let ended = self.plainly_ended.len() + self.ended.len();
        self.pool.congestion.ended(ended.saturating_sub(late), answers);
        self.note_latency(answers);
        if answers > 0 && !std::mem::replace(&mut self.answered, true) {
            self.pool.usable();
        }
        self.file_plain();
        let again = self.file_others();
        if again || self.phase == ConnectionPhase::Retired {
            self.pool.nudge();
        }
    }

    /// Halts the pool when most responses demand a pause. Responses to requests that failed before do not count, because these requests are
    /// repeated again and again.
    fn obey(&self, answers: usize) {
        let is_first = |ended: &&Ended| self.mux.work(ended.open.batch).is_none_or(|work| !work.repeated);
        let first = self.ended.iter().filter(is_first).map(|ended| &ended.reply);
        let (halting, last) = Reply::halting(first, self.pool.halts);
        if self.pool.waits.note(answers, halting)
            && let Some(response) = last
        {
            self.pool.halt(Fault::Halted(HaltResponse::of(response)));
        }
    }

    fn file_plain(&mut self) {
        // One lock of the batch per group, not one per response.
        for group in self.plainly_ended.chunk_by(|one, next| one.batch == next.batch) {
            let batch = group[0].batch;
            if let Some(work) = self.mux.work(batch) {
                work.settle_plain(group.iter().map(|plain| plain.index));
            }
            self.mux.let_go(batch, group.len() as u32);
        }
        self.plainly_ended.clear();
    }

    /// Files all other ended streams; returns true if a request was queued again.
    fn file_others(&mut self) -> bool {
        let mut ended = std::mem::take(&mut self.ended);
        let mut again = false;
        let mut rest = ended.drain(..).peekable();
        while let Some(batch) = rest.peek().map(|ended| ended.open.batch) {
            again |= self.file(batch, std::iter::from_fn(|| rest.next_if(|ended| ended.open.batch == batch)));
        }
        drop(rest);
        self.ended = ended;
        again
    }

    /// Records the latency of the youngest request with a response, and the number of responses.
    fn note_latency(&mut self, answers: usize) {
        let answered = self.ended.iter().filter(|ended| matches!(ended.reply, Reply::Answered(_)));
        let opened = answered.map(|ended| ended.open.opened_ms);
        let Some(opened_ms) = opened.chain(self.plainly_ended.iter().map(|plain| plain.opened_ms)).max()
        else {
            return;
        };
        self.last_answered_ms = self.last_answered_ms.max(opened_ms);
        self.last_answer_ms = self.now_ms();
        let took = Duration::from_millis(self.now_ms().saturating_sub(opened_ms).into());
        let now = self.now.duration_since(self.pool.began);
        self.pool.latency.note(took, now);
        self.pool.congestion.observe(now, answers, took, self.pool.latency.min_rtt());
    }

    /// Files streams of one batch; returns true if a request was queued again.
    fn file(&mut self, batch: u32, group: impl Iterator<Item = Ended>) -> bool {
        let Some(work) = self.mux.work(batch).cloned() else { return false };
        let (mut count, mut again) = (0, false);
        // This runs under the batch's lock, and `again` takes the pool's lock. The order is the same everywhere.
        work.settle(group.filter_map(|Ended { open, reply }| {
            count += 1;
            let Reply::NotSent(fault) = reply else { return Some((open.index, reply)) };
            let run =
                Run { work: Arc::clone(&work), from: open.index, to: open.index + 1, resends: open.resends };
            let given_up = self.pool.again(run, fault);
            again |= given_up.is_none();
            given_up.map(|fault| (open.index, Reply::NotSent(fault)))
        }));
        // Must come last: afterwards the slot may belong to another batch.
        self.mux.let_go(batch, count);
        again
    }

    fn note_counts(&mut self) {
        let counts = std::mem::take(&mut self.mux.counts);
        self.pool.counters.goaways.add(counts.goaways);
        self.pool.counters.resets.add(counts.resets);
        self.pool.congestion.failed(counts.resets as usize);
    }
}
