//! The open streams of one connection: a ring ordered by id, which is also the order of their deadlines.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;

/// Capacity of the ring. A stream that outlives this many younger ones moves to a map.
const RING_MAX_STREAMS: usize = 16 * 1_024;
/// Capacity kept by a ring without streams.
const RING_REST_STREAMS: usize = 64;

/// One open stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// Slot of its batch in the connection.
    pub(crate) batch: u32,
    /// Index of its request in the batch.
    pub(crate) index: u32,
    /// Number of earlier transmissions of the request.
    pub(crate) resends: u8,
    /// True if it has waited too long to hold back others.
    pub(crate) is_late: bool,
    /// Status of the response; zero until its head has come.
    pub(crate) status: u16,
    /// Opening time, in milliseconds since the start of the connection.
    pub(crate) opened_ms: u32,
    /// Body bytes received.
    pub(crate) received_bytes: u32,
    /// Offset of its first byte in the connection's output. Never zero, because the output begins with the connection preface.
    pub(crate) offset: NonZeroU64,
}

/// All open streams.
#[derive(Debug)]
pub(crate) struct Streams {
    ring: VecDeque<Option<Open>>,
    /// Id of the stream at the front of the ring.
    first: u32,
    stragglers: HashMap<u32, Open>,
    open: usize,
    late: usize,
    /// Late streams that have ended since this count was last taken.
    late_ended: usize,
}

impl Default for Streams {
    fn default() -> Self {
        Self { ring: VecDeque::new(), first: 1, stragglers: HashMap::new(), open: 0, late: 0, late_ended: 0 }
    }
}

impl Streams {
    pub(crate) const fn len(&self) -> usize {
        self.open
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Returns the id of the stream that will be opened next.
    pub(crate) fn next_id(&self) -> u32 {
        // A client's ids are odd, and the ring has no gaps.
        self.first + 2 * self.ring.len() as u32
    }

    /// Adds the stream with the next id.
    pub(crate) fn push(&mut self, open: Open) {
        if self.ring.len() >= RING_MAX_STREAMS {
            self.evict();
        }
        self.ring.push_back(Some(open));
        self.open += 1;
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Open> {
        match self.place(id) {
            Some(at) => self.ring.get_mut(at)?.as_mut(),
            None => self.stragglers.get_mut(&id),
        }
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Open> {
        let open = match self.place(id) {
            Some(at) => self.ring.get_mut(at)?.take(),
            None => self.stragglers.remove(&id),
        }?;
        self.open -= 1;
        if open.is_late {
            self.late -= 1;
            self.late_ended += 1;
        }
        // The ring begins with the oldest open stream.
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 2;
        }
        Some(open)
    }

    /// Releases the memory of earlier streams.
    pub(crate) fn rest(&mut self) {
        self.ring.shrink_to(RING_REST_STREAMS);
        self.stragglers.shrink_to(0);
    }

    /// Returns the number of late streams.
    pub(crate) const fn late(&self) -> usize {
        self.late
    }

    /// Returns the number of late streams that have ended since the previous call.
    pub(crate) fn take_late_ended(&mut self) -> usize {
        std::mem::take(&mut self.late_ended)
    }

    /// Marks streams as late that were opened at or before `opened_ms` and match `is_meant`, oldest first. `allow` gets the number of
    /// unmarked ones and returns how many of them to mark.
    pub(crate) fn mark_late(
        &mut self,
        opened_ms: u32,
        is_meant: impl Fn(&Open) -> bool,
        allow: impl FnOnce(usize) -> usize,
    ) {
        let is_young =
            |place: &&mut Option<Open>| place.as_ref().is_some_and(|open| open.opened_ms > opened_ms);
        let old = self.ring.iter_mut().take_while(|place| !is_young(place)).flatten();
        let mut late: Vec<&mut Open> = old.filter(|open| !open.is_late && is_meant(open)).collect();
        if late.is_empty() {
            return;
        }
        let allowed = allow(late.len()).min(late.len());
        late.iter_mut().take(allowed).for_each(|open| open.is_late = true);
        self.late += allowed;
    }

    /// Lists the streams opened at or before `opened_ms`, oldest first.
    pub(crate) fn older_than(&self, opened_ms: u32) -> Vec<u32> {
        let late = |open: &Open| open.opened_ms <= opened_ms;
        // Streams outside the ring come first: they are older than all in it, and the caller may cut the list.
        let mut ids: Vec<u32> =
            self.stragglers.iter().filter(|(_, open)| late(open)).map(|(id, _)| *id).collect();
        let ring = self.ring.iter().enumerate();
        let young = |open: &Option<Open>| open.as_ref().is_some_and(|open| !late(open));
        let old = ring.take_while(|(_, open)| !young(open)).filter(|(_, open)| open.is_some());
        ids.extend(old.map(|(at, _)| self.first + 2 * at as u32));
        ids
    }

    /// Lists the streams with ids above `last`.
    pub(crate) fn above(&self, last: u32) -> Vec<u32> {
        let ring = self.ring.iter().enumerate().filter(|(_, open)| open.is_some());
        let ids = ring.map(|(at, _)| self.first + 2 * at as u32).chain(self.stragglers.keys().copied());
        ids.filter(|id| *id > last).collect()
    }

    /// Returns the position of an id in the ring; `None` if it is older than the ring.
    fn place(&self, id: u32) -> Option<usize> {
        Some((id.checked_sub(self.first)? / 2) as usize)
    }

    fn evict(&mut self) {
        if let Some(Some(open)) = self.ring.pop_front() {
            self.stragglers.insert(self.first, open);
        }
        self.first += 2;
    }
}

#[cfg(test)]
mod tests;
