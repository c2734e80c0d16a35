//! The open streams of one connection, and when each is due.

use std::collections::VecDeque;

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::time::Instant;

use crate::work::Ticket;

/// Place of an open stream, and which stream of those that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    slot: usize,
    serial: u64,
}

/// One open stream.
pub(super) struct Open {
    pub(super) ticket: Ticket,
    pub(super) sender: SendStream<Bytes>,
    /// Where in the connection's bytes its own begin, at the earliest.
    pub(super) offset: u64,
    pub(super) timed_out: bool,
}

/// Slots that are used again, and the order in which their streams are due.
#[derive(Default)]
pub(super) struct Streams {
    slots: Vec<Option<(u64, Open)>>,
    free: Vec<usize>,
    due: VecDeque<(Instant, Key)>,
    serial: u64,
    len: usize,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a stream; `due` never goes back.
    pub(super) fn insert(&mut self, open: Open, due: Instant) -> Key {
        self.serial += 1;
        self.len += 1;
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some((self.serial, open));
        let key = Key { slot, serial: self.serial };
        self.forget_ended();
        self.due.push_back((due, key));
        key
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Open> {
        self.get(key)?;
        let (_, open) = self.slots[key.slot].take()?;
        self.free.push(key.slot);
        self.len -= 1;
        Some(open)
    }

    /// Resets every stream that is due, and calls `each` for it.
    pub(super) fn expire(&mut self, now: Instant, each: impl Fn()) {
        while let Some((_, key)) = self.due.pop_front_if(|(due, _)| *due <= now) {
            let Some(open) = self.get(key) else { continue };
            open.timed_out = true;
            open.sender.send_reset(Reason::CANCEL);
            each();
        }
    }

    /// Takes all streams out.
    pub(super) fn drain(&mut self) -> Vec<Open> {
        (self.len, self.free) = (0, Vec::new());
        self.due.clear();
        self.slots.drain(..).flatten().map(|(_, open)| open).collect()
    }

    /// Drops the oldest due times of streams that have ended, so that the list is no longer than needed.
    fn forget_ended(&mut self) {
        while let Some((_, key)) = self.due.front().copied() {
            if self.get(key).is_some() {
                return;
            }
            self.due.pop_front();
        }
    }

    fn get(&mut self, key: Key) -> Option<&mut Open> {
        let (serial, open) = self.slots.get_mut(key.slot)?.as_mut()?;
        (*serial == key.serial).then_some(open)
    }
}
