//! What has ended on a connection, as it is told to the pool and to the batches.

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
    /// Files the streams that have ended: neighbours of one batch in one go.
    pub(super) fn collect(&mut self) {
        self.note_counts();
        self.mux.take_ended(&mut self.ended, &mut self.plainly_ended);
        if self.ended.is_empty() && self.plainly_ended.is_empty() {
            return;
        }
        let answered = self.ended.iter().filter(|ended| matches!(ended.reply, Reply::Answered(_))).count();
        let answers = self.plainly_ended.len() + answered;
        // Before anything makes room: another connection would take what waits, though the peer asks to wait.
        self.obey(answers);
        // Those that were late are counted out already. Before replies are filed: who is woken by one may send the next batch
        // at once, and needs the room.
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

    /// Halts when most answers ask to wait; those to requests that failed before say nothing, for they ask again and again.
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
        // One lock of the batch for all its neighbours, not one for each answer.
        for group in self.plainly_ended.chunk_by(|one, next| one.batch == next.batch) {
            let batch = group[0].batch;
            if let Some(work) = self.mux.work(batch) {
                work.settle_plain(group.iter().map(|plain| plain.index));
            }
            self.mux.let_go(batch, group.len() as u32);
        }
        self.plainly_ended.clear();
    }

    /// Files what ended otherwise; returns whether some of it goes again.
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

    /// Notes how long the youngest of the answered streams took, and how many they are.
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

    /// Files streams of one batch; returns whether some of them go again.
    fn file(&mut self, batch: u32, group: impl Iterator<Item = Ended>) -> bool {
        let Some(work) = self.mux.work(batch).cloned() else { return false };
        let (mut count, mut again) = (0, false);
        // This runs under the batch's lock, and `again` takes the pool's: everywhere in this order.
        work.settle(group.filter_map(|Ended { open, reply }| {
            count += 1;
            let Reply::NotSent(fault) = reply else { return Some((open.index, reply)) };
            let run =
                Run { work: Arc::clone(&work), from: open.index, to: open.index + 1, resends: open.resends };
            let given_up = self.pool.again(run, fault);
            again |= given_up.is_none();
            given_up.map(|fault| (open.index, Reply::NotSent(fault)))
        }));
        // Last: from here on the place may belong to another batch.
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
