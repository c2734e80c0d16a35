//! A batch on its way: its requests, and the replies as they come in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stentor_http2_codec::hpack::OwnedField;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::{Keep, Part, Replies, Reply, RequestBatch, Requests};
use crate::fault::Fault;

/// Requests from which on a batch's own headers earn a place in a connection's table.
const REPEATS_FROM_REQUESTS: usize = 8;
/// The header that the next batches of the same client will have too.
const REPEATS_ALWAYS: &str = "authorization";

/// One batch in progress, shared by the connections that serve it.
pub(crate) struct Work {
    /// Method, scheme, authority, and the path if all have the same.
    pub(crate) pseudo: Vec<OwnedField>,
    pub(crate) constant: Vec<OwnedField>,
    pub(crate) has_path: bool,
    /// `None` once nothing more is to be written of them.
    requests: Mutex<Option<Arc<dyn Requests>>>,
    pub(crate) count: u32,
    pub(crate) keep: Keep,
    /// Whether its requests failed before.
    pub(crate) repeated: bool,
    /// When a request that has no stream yet gives up.
    pub(crate) give_up_at: Instant,
    received: Mutex<ReceivedReplies>,
    left: AtomicUsize,
    began: Instant,
    /// When the last reply came, in microseconds since the beginning.
    replied_us: AtomicU64,
    done: Notify,
    abandoned: AtomicBool,
}

impl Work {
    /// `origin` holds the fields of every request to the endpoint.
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

    /// Files replies by their requests' places; the first one to each counts.
    pub(crate) fn settle(&self, ended: impl Iterator<Item = (u32, Reply)>) {
        self.file(|received| {
            ended.map(|(index, reply)| received.put(index, reply)).filter(|is_new| *is_new).count()
        });
    }

    /// Files plain 200s by their requests' places.
    pub(crate) fn settle_plain(&self, indices: impl Iterator<Item = u32>) {
        self.file(|received| indices.filter(|index| received.is_first(*index)).count());
    }

    /// `put` tells how many requests have their replies by it.
    fn file(&self, put: impl FnOnce(&mut ReceivedReplies) -> usize) {
        let mut received = self.received.lock();
        let count = put(&mut received);
        drop(received);
        if count == 0 {
            return;
        }
        // Before the count: who sees few left and then asks how long it has been silent must be told of this reply.
        self.replied_us.store(self.began.elapsed().as_micros() as u64, Ordering::Relaxed);
        // Released after the replies were filed, so that who finds none left finds all of them.
        if self.left.fetch_sub(count, Ordering::AcqRel) == count {
            // Leaves a permit when nobody waits yet: `done` looks, then waits, and is woken by it.
            self.done.notify_one();
        }
    }

    /// Returns how long no reply has come.
    pub(crate) fn silent(&self) -> Duration {
        let replied = Duration::from_micros(self.replied_us.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(replied)
    }

    /// Returns the requests, unless they were forgotten.
    pub(crate) fn requests(&self) -> Option<Arc<dyn Requests>> {
        self.requests.lock().clone()
    }

    /// Releases the memory of the requests: none of them is written again.
    pub(crate) fn forget_requests(&self) {
        *self.requests.lock() = None;
    }

    /// Counts the requests that have no reply yet.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Notes that nobody waits for the rest any more: requests without a stream are never sent.
    pub(crate) fn abandon(&self) {
        // It publishes nothing: a run that is taken a moment later goes out like one taken a moment before.
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns whether nobody waits for the rest any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits until every reply is there.
    pub(crate) async fn done(&self) {
        while self.left() > 0 {
            self.done.notified().await;
        }
    }

    /// Returns the replies; what has none is in flight.
    pub(crate) fn replies(&self) -> Replies {
        let mut received = self.received.lock();
        let mut all = std::mem::take(&mut *received);
        drop(received);
        // Counted down after filing: at zero none is missing, and most batches spare the pass over all.
        if self.left() > 0 {
            let abandoned = |index| (index, Reply::Unanswered(Fault::Abandoned));
            let missing: Vec<_> = all.missing(self.count).map(abandoned).collect();
            all.others.extend(missing);
        }
        Replies::new(self.count as usize, all.others)
    }

    /// Returns the replies that have come, and the places of the requests that have none.
    pub(crate) fn part(&self) -> Part {
        let received = self.received.lock();
        let missing = received.missing(self.count).map(|index| index as usize).collect();
        Part { replies: Replies::new(self.count as usize, received.others.clone()), missing }
    }
}

/// The replies that have come.
#[derive(Default)]
struct ReceivedReplies {
    /// A bit for each request that has its reply.
    seen: Vec<u64>,
    /// All but plain 200s.
    others: Vec<(u32, Reply)>,
}

impl ReceivedReplies {
    /// Marks a request as replied to; returns whether it was not before.
    fn is_first(&mut self, index: u32) -> bool {
        let Some(word) = self.seen.get_mut(index as usize / 64) else { return false };
        let bit = 1 << (index % 64);
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    /// Lists the places without a reply, ascending.
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

/// Neighbouring requests of one batch that go together.
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

    /// Settles every request of it with the same reply.
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
        // Late, and twice: neither counts.
        work.settle([(3, Reply::NotSent(Fault::Closed))].into_iter());
        work.settle_plain(60..65);
        work.settle([(67, Reply::Answered(Response::new(410, false, None)))].into_iter());
        let replies = work.replies();
        let abandoned = |reply: &Reply| matches!(reply, Reply::Unanswered(Fault::Abandoned));
        let others: Vec<(usize, bool)> = replies.others().map(|(at, reply)| (at, abandoned(reply))).collect();
        assert_eq!(others, [(65, true), (66, true), (67, false), (68, true), (69, true)]);
        // Nobody reads them any more.
        work.settle_plain(65..70);
        assert_eq!(work.replies().others().count(), 70);
    }
}
