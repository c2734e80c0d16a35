//! A byte queue in memory that is zeroed once and not on every use.

use crate::buffer_pool;

/// A contiguous queue of bytes.
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

    /// Returns at least `least` bytes of space after the filled ones.
    pub(crate) fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = buffer_pool::acquire_zeroed().unwrap_or_default();
        }
        if self.bytes.len() - self.end < least {
            // Compacted before it grows: consumed bytes usually leave enough space in front.
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.len() - self.end < least {
            self.bytes.resize(self.end + least, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Marks `count` bytes of the space as filled.
    pub(crate) const fn fill(&mut self, count: usize) {
        self.end += count;
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Returns the memory of an empty queue to the pool.
    pub(crate) fn release_buffers(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            (self.start, self.end) = (0, 0);
            buffer_pool::release_zeroed(std::mem::take(&mut self.bytes));
        }
    }

    /// Removes the first `count` bytes.
    pub(crate) const fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
