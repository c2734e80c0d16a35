//! A batch on its way: its requests, and the replies as they come in.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::{Batch, Reply, Request};
use crate::fault::Fault;

/// One batch in progress, shared by the connections that serve it.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) constant: HeaderMap,
    pub(crate) requests: Vec<Request>,
    /// When a request that has no stream yet gives up.
    pub(crate) give_up_at: Instant,
    replies: Mutex<Vec<Option<Reply>>>,
    left: AtomicUsize,
    done: Notify,
    abandoned: AtomicBool,
}

impl Work {
    pub(crate) fn new(batch: Batch, give_up_at: Instant) -> Arc<Self> {
        let count = batch.requests.len();
        let mut constant = HeaderMap::with_capacity(batch.constant.len() + 4);
        constant.extend(batch.constant);
        Arc::new(Self {
            constant,
            requests: batch.requests,
            give_up_at,
            replies: Mutex::new((0..count).map(|_| None).collect()),
            left: AtomicUsize::new(count),
            done: Notify::new(),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Files the reply to request `index`; the first one counts.
    pub(crate) fn settle(&self, index: usize, reply: Reply) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = replies.get_mut(index).filter(|slot| slot.is_none());
        let Some(slot) = slot else { return };
        *slot = Some(reply);
        drop(replies);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_one();
        }
    }

    /// Tells whether nobody waits for the rest any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for every reply.
    pub(crate) async fn replies(self: &Arc<Self>) -> Vec<Reply> {
        let guard = Abandon(self);
        while self.left.load(Ordering::Acquire) > 0 {
            self.done.notified().await;
        }
        std::mem::forget(guard);
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.drain(..).map(|reply| reply.unwrap_or(Reply::Unanswered(Fault::Closed))).collect()
    }
}

/// Marks the batch abandoned when its caller stops waiting.
struct Abandon<'a>(&'a Work);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

/// One request of a batch in progress.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) work: Arc<Work>,
    pub(crate) index: usize,
    pub(crate) resends: u8,
}

impl Ticket {
    pub(crate) fn settle(self, reply: Reply) {
        self.work.settle(self.index, reply);
    }
}
