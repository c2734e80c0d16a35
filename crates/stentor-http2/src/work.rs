//! A batch in progress: its requests, and the replies received so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stentor_http2_codec::hpack::OwnedField;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::{Keep, Part, Replies, Reply, RequestBatch, Requests};
use crate::fault::Fault;

/// Number of requests from which on a batch's own headers enter a connection's table.
const REPEATS_FROM_REQUESTS: usize = 8;
/// A header shared by all batches of a client, which always enters the table.
const REPEATS_ALWAYS: &str = "authorization";

/// One batch in progress, shared by the connections that serve it.
pub(crate) struct Work {
    /// Method, scheme, authority, and the path if all have the same.
    pub(crate) pseudo: Vec<OwnedField>,
    pub(crate) constant: Vec<OwnedField>,
    pub(crate) has_path: bool,
    /// `None` once no more requests will be written.
    requests: Mutex<Option<Arc<dyn Requests>>>,
    pub(crate) count: u32,
    pub(crate) keep: Keep,
    /// True if its requests failed before.
    pub(crate) repeated: bool,
    /// Deadline of requests without a stream.
    pub(crate) give_up_at: Instant,
    received: Mutex<ReceivedReplies>,
    left: AtomicUsize,
    began: Instant,
    /// Time of the last reply, in microseconds since the start.
    replied_us: AtomicU64,
    done: Notify,
    abandoned: AtomicBool,
}

impl Work {
    /// Creates the work of a batch; `origin` holds the fields of every request to the endpoint.
    pub(crate) fn new(batch: RequestBatch, origin: &[OwnedField], give_up_at: Instant) -> Arc<Self> {
        let count = batch.requests.count().min(u32::MAX as usize);
        let repeats = count >= REPEATS_FROM_REQUESTS;
        let mut pseudo = origin.to_vec();
        let path = batch.path.iter().map(|path| OwnedField {
            name: b":path".to_vec(),
            value: path.as_str().as_bytes().to_vec(),
            repeats: true,
        });
        pseudo.extend(path);
        let constant = batch.constant.iter().map(|(name, value)| OwnedField {
            name: name.as_str().as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            repeats: repeats || name == REPEATS_ALWAYS,
        });
        Arc::new(Self {
            pseudo,
            constant: constant.collect(),
            has_path: batch.path.is_some(),
            requests: Mutex::new(Some(batch.requests)),
            count: count as u32,
            keep: batch.keep,
            repeated: batch.repeated,
            give_up_at,
            received: Mutex::new(ReceivedReplies { seen: vec![0; count.div_ceil(64)], others: Vec::new() }),
            left: AtomicUsize::new(count),
            began: Instant::now(),
            replied_us: AtomicU64::new(0),
            done: Notify::new(),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Files replies by the indices of their requests; the first reply to each counts.
    pub(crate) fn settle(&self, ended: impl Iterator<Item = (u32, Reply)>) {
        self.file(|received| {
            ended.map(|(index, reply)| received.put(index, reply)).filter(|is_new| *is_new).count()
        });
    }

    /// Files plain 200s by the indices of their requests.
    pub(crate) fn settle_plain(&self, indices: impl Iterator<Item = u32>) {
        self.file(|received| indices.filter(|index| received.is_first(*index)).count());
    }

    /// Files replies through `put`, which returns the number of requests that got their first reply.
    fn file(&self, put: impl FnOnce(&mut ReceivedReplies) -> usize) {
        let mut received = self.received.lock();
        let count = put(&mut received);
        drop(received);
        if count == 0 {
            return;
        }
        // Stored before the count: a thread that sees few requests left and then reads the silence must see this reply.
        self.replied_us.store(self.began.elapsed().as_micros() as u64, Ordering::Relaxed);
        // Released after the replies were filed, so that a thread that finds none left finds all replies.
        if self.left.fetch_sub(count, Ordering::AcqRel) == count {
            // Stores a permit if no task waits yet; `done` checks first, then waits, and is woken by the permit.
            self.done.notify_one();
        }
    }

    /// Returns the time since the last reply.
    pub(crate) fn silent(&self) -> Duration {
        let replied = Duration::from_micros(self.replied_us.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(replied)
    }

    /// Returns the requests, unless they were dropped.
    pub(crate) fn requests(&self) -> Option<Arc<dyn Requests>> {
        self.requests.lock().clone()
    }

    /// Drops the requests to release their memory: none of them is written again.
    pub(crate) fn forget_requests(&self) {
        *self.requests.lock() = None;
    }

    /// Returns the number of requests without a reply.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Records that the caller no longer waits: requests without a stream are never sent.
    pub(crate) fn abandon(&self) {
        // `Relaxed`, because it publishes nothing: the exact moment does not matter to a run being taken.
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns true if the caller no longer waits.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for the last reply.
    pub(crate) async fn done(&self) {
        while self.left() > 0 {
            self.done.notified().await;
        }
    }

    /// Returns the replies; requests without one are reported as unanswered.
    pub(crate) fn replies(&self) -> Replies {
        let mut received = self.received.lock();
        let mut all = std::mem::take(&mut *received);
        drop(received);
        // The counter falls only after filing: at zero no reply is missing, so most batches skip the scan.
        if self.left() > 0 {
            let abandoned = |index| (index, Reply::Unanswered(Fault::Abandoned));
            let missing: Vec<_> = all.missing(self.count).map(abandoned).collect();
            all.others.extend(missing);
        }
        Replies::new(self.count as usize, all.others)
    }

    /// Returns the replies received so far, and the indices of the requests without one.
    pub(crate) fn part(&self) -> Part {
        let received = self.received.lock();
        let missing = received.missing(self.count).map(|index| index as usize).collect();
        Part { replies: Replies::new(self.count as usize, received.others.clone()), missing }
    }
}

/// The replies received so far.
#[derive(Default)]
struct ReceivedReplies {
    /// One bit for each request with a reply.
    seen: Vec<u64>,
    /// All replies but plain 200s.
    others: Vec<(u32, Reply)>,
}

impl ReceivedReplies {
    /// Marks a request as answered; returns true if it was not before.
    fn is_first(&mut self, index: u32) -> bool {
        let Some(word) = self.seen.get_mut(index as usize / 64) else { return false };
        let bit = 1 << (index % 64);
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    /// Lists the indices without a reply, ascending.
    fn missing(&self, count: u32) -> impl Iterator<Item = u32> {
        let is_missing = |index: &u32| {
            self.seen.get(*index as usize / 64).is_none_or(|word| word >> (index % 64) & 1 == 0)
        };
        (0..count).filter(is_missing)
    }

    fn put(&mut self, index: u32, reply: Reply) -> bool {
        let is_first = self.is_first(index);
        if is_first {
            self.others.push((index, reply));
        }
        is_first
    }
}

/// Consecutive requests of one batch that are sent together.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) work: Arc<Work>,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) resends: u8,
}

impl Run {
    pub(crate) const fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// Takes up to `most` requests off the front.
    pub(crate) fn split(&mut self, most: usize) -> Self {
        let to = self.from + self.len().min(most) as u32;
        let front = Self { work: Arc::clone(&self.work), from: self.from, to, resends: self.resends };
        self.from = to;
        front
    }

    /// Settles all its requests with the same reply.
    pub(crate) fn settle(self, reply: &Reply) {
        self.work.settle((self.from..self.to).map(|index| (index, reply.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Request;
    use crate::response::Response;

    #[tokio::test]
    async fn the_first_reply_to_each_request_counts_and_what_has_none_is_in_flight() {
        let request =
            || Request { path: "/".parse().expect("a path"), headers: Vec::new(), body: "b".into() };
        let requests: Vec<Request> = std::iter::repeat_with(request).take(70).collect();
        let keep = Keep::Refusals;
        let batch = RequestBatch {
            constant: Vec::new(),
            path: None,
            requests: Arc::new(requests),
            start_within: None,
            keep,
            repeated: false,
        };
        let work = Work::new(batch, &[], Instant::now());
        work.settle_plain(0..65);
        // Late and duplicate replies: neither counts.
        work.settle([(3, Reply::NotSent(Fault::Closed))].into_iter());
        work.settle_plain(60..65);
        work.settle([(67, Reply::Answered(Response::new(410, false, None)))].into_iter());
        let replies = work.replies();
        let abandoned = |reply: &Reply| matches!(reply, Reply::Unanswered(Fault::Abandoned));
        let others: Vec<(usize, bool)> = replies.others().map(|(at, reply)| (at, abandoned(reply))).collect();
        assert_eq!(others, [(65, true), (66, true), (67, false), (68, true), (69, true)]);
        // These replies come too late to be read.
        work.settle_plain(65..70);
        assert_eq!(work.replies().others().count(), 70);
    }
}
