//! Bytes on their way through, in memory that is zeroed once and not at every turn.

use crate::buffer_pool;

/// A queue of bytes in one piece.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) const fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Returns at least `least` bytes of room behind the filled ones.
    pub(crate) fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = buffer_pool::acquire_zeroed().unwrap_or_default();
        }
        if self.bytes.len() - self.end < least {
            // Moved before it grows: as a rule what was consumed has left enough room in front.
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.len() - self.end < least {
            self.bytes.resize(self.end + least, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Counts `count` bytes of the room as filled.
    pub(crate) const fn fill(&mut self, count: usize) {
        self.end += count;
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Puts its memory into the pool while it holds nothing.
    pub(crate) fn release_buffers(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            (self.start, self.end) = (0, 0);
            buffer_pool::release_zeroed(std::mem::take(&mut self.bytes));
        }
    }

    /// Forgets the first `count` bytes.
    pub(crate) const fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
