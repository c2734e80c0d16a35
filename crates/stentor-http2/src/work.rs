//! A batch on its way: its requests, and the replies as they come in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::{Batch, Keep, Reply, Requests};
use crate::fault::Fault;
use crate::hpack::Field;

/// Requests from which on a batch's own headers earn a place in a connection's table.
const REPEATS_FROM_REQUESTS: usize = 8;
/// The header that the next batches of the same client will have too.
const REPEATS_ALWAYS: &str = "authorization";

/// One batch in progress, shared by the connections that serve it.
pub(crate) struct Work {
    /// Method, scheme, authority, and the path if all have the same.
    pub(crate) pseudo: Vec<Field>,
    pub(crate) constant: Vec<Field>,
    pub(crate) has_path: bool,
    pub(crate) requests: Arc<dyn Requests>,
    pub(crate) count: u32,
    pub(crate) keep: Keep,
    /// When a request that has no stream yet gives up.
    pub(crate) give_up_at: Instant,
    replies: Mutex<Vec<Option<Reply>>>,
    left: AtomicUsize,
    done: Notify,
    abandoned: AtomicBool,
}

impl Work {
    /// `origin` holds the fields of every request to the endpoint.
    pub(crate) fn new(batch: Batch, origin: &[Field], give_up_at: Instant) -> Arc<Self> {
        let count = batch.requests.count().min(u32::MAX as usize);
        let repeats = count >= REPEATS_FROM_REQUESTS;
        let mut pseudo = origin.to_vec();
        let path = batch.path.iter().map(|path| Field {
            name: b":path".to_vec(),
            value: path.as_str().as_bytes().to_vec(),
            repeats: true,
        });
        pseudo.extend(path);
        let constant = batch.constant.iter().map(|(name, value)| Field {
            name: name.as_str().as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            repeats: repeats || name == REPEATS_ALWAYS,
        });
        Arc::new(Self {
            pseudo,
            constant: constant.collect(),
            has_path: batch.path.is_some(),
            requests: batch.requests,
            count: count as u32,
            keep: batch.keep,
            give_up_at,
            replies: Mutex::new((0..count).map(|_| None).collect()),
            left: AtomicUsize::new(count),
            done: Notify::new(),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Files replies by their requests' places; the first one to each counts.
    pub(crate) fn settle(&self, ended: impl Iterator<Item = (u32, Reply)>) {
        let mut filed = 0;
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, reply) in ended {
            if let Some(slot) = replies.get_mut(index as usize).filter(|slot| slot.is_none()) {
                *slot = Some(reply);
                filed += 1;
            }
        }
        drop(replies);
        if filed > 0 && self.left.fetch_sub(filed, Ordering::AcqRel) == filed {
            self.done.notify_one();
        }
    }

    /// Tells whether nobody waits for the rest any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits until every reply is there; requests without a stream are never sent once nobody waits.
    pub(crate) async fn done(&self) {
        let guard = Abandon(self);
        while self.left.load(Ordering::Acquire) > 0 {
            self.done.notified().await;
        }
        std::mem::forget(guard);
    }

    /// Gives the replies; what has none is in flight.
    pub(crate) fn replies(&self) -> Vec<Reply> {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = std::mem::take(&mut *replies);
        replies.into_iter().map(|reply| reply.unwrap_or(Reply::Unanswered(Fault::Abandoned))).collect()
    }
}

/// Marks the batch abandoned when its caller stops waiting.
struct Abandon<'a>(&'a Work);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
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

    /// Gives every request of it the same reply.
    pub(crate) fn settle(self, reply: &Reply) {
        self.work.settle((self.from..self.to).map(|index| (index, reply.clone())));
    }
}
