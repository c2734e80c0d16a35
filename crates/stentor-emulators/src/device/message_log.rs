//! The latest accepted messages of all tokens, for tests that read what has arrived.

use super::DeviceMessage;
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::watch;

/// The most messages that a log keeps; a message has at most 5 KiB.
const KEPT_MAX_COUNT: usize = 100_000;
/// The most messages of one page.
const PAGE_MAX_COUNT: usize = 1_000;
/// The longest wait for a message.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// An accepted message and its target.
#[derive(Clone, Serialize)]
struct ArrivedMessage {
    /// The number of the message, from 1; it is not given again.
    number: u64,
    /// The target as it is counted: a token, `/topics/NAME`, a condition or a channel.
    token: String,
    #[serde(flatten)]
    message: DeviceMessage,
}

/// Messages in the order of their arrival.
#[derive(Serialize)]
pub(crate) struct MessagePage {
    messages: Vec<ArrivedMessage>,
    /// The messages before these for which the log had no room.
    dropped: u64,
}

/// The latest accepted messages, up to a number.
pub(super) struct MessageLog {
    capacity: usize,
    kept: Mutex<KeptMessages>,
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct KeptMessages {
    messages: VecDeque<ArrivedMessage>,
    /// The number of the latest message that was forgotten on request.
    forgotten: u64,
}

impl MessageLog {
    pub(super) fn new(capacity: usize) -> Self {
        let (kept, newest) = (Mutex::default(), watch::Sender::new(0));
        Self { capacity: capacity.clamp(1, KEPT_MAX_COUNT), kept, newest }
    }

    pub(super) fn add(&self, token: String, message: DeviceMessage) {
        let mut kept = self.kept.lock();
        if kept.messages.len() == self.capacity {
            kept.messages.pop_front();
        }
        let number = *self.newest.borrow() + 1;
        kept.messages.push_back(ArrivedMessage { number, token, message });
        // Within the lock, so that numbers are given in the order of the log.
        self.newest.send_replace(number);
    }

    /// Returns the messages behind a number. Waits for one if there is none yet.
    pub(super) async fn behind(&self, number: u64, wait: Duration) -> MessagePage {
        let number = number.max(self.kept.lock().forgotten);
        let mut newest = self.newest.subscribe();
        // The sender lives as long as this log: the wait ends with a message or with its time.
        let _ = tokio::time::timeout(wait.min(WAIT_MAX), newest.wait_for(|newest| *newest > number)).await;
        self.page(number)
    }

    fn page(&self, number: u64) -> MessagePage {
        let kept = self.kept.lock();
        let from = number.max(kept.forgotten);
        let first = kept.messages.partition_point(|message| message.number <= from);
        let page = kept.messages.iter().skip(first).take(PAGE_MAX_COUNT);
        let messages: Vec<ArrivedMessage> = page.cloned().collect();
        let dropped = messages.first().map_or(0, |message| message.number - from - 1);
        MessagePage { messages, dropped }
    }

    /// Forgets the messages. Numbers go on.
    pub(super) fn clear(&self) {
        let mut kept = self.kept.lock();
        kept.messages.clear();
        kept.forgotten = *self.newest.borrow();
    }
}
