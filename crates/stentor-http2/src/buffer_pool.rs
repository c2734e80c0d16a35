//! Buffers that the connections of a thread share: a connection needs them only while its loop runs, and on each thread
//! one loop runs at a time. Sixty connections thus need the buffers of a few.

use std::cell::RefCell;

/// Buffers kept for the next loop on a thread, of each kind; a loop needs two.
const BUFFERS_MAX_COUNT: usize = 4;
/// A buffer that grew beyond this, for a peer that did not read, is not kept.
const BUFFER_MAX_BYTES: usize = 256 * 1_024;

thread_local! {
    static BYTES: BufferPool<u8> = const { BufferPool::new() };
    static ZEROED: BufferPool<u8> = const { BufferPool::new() };
}

/// The vectors of one kind that a thread keeps for whoever needs one next.
#[derive(Debug)]
pub(crate) struct BufferPool<T>(RefCell<Vec<Vec<T>>>);

impl<T> BufferPool<T> {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn take(&self) -> Option<Vec<T>> {
        self.0.borrow_mut().pop()
    }

    fn put(&self, buffer: Vec<T>) {
        let mut buffers = self.0.borrow_mut();
        if buffers.len() < BUFFERS_MAX_COUNT && buffer.capacity() * size_of::<T>() <= BUFFER_MAX_BYTES {
            buffers.push(buffer);
        }
    }
}

/// What pooled vectors consist of.
pub(crate) trait Pooled: Sized {
    /// Returns access to this thread's pool of empty vectors.
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R;
}

impl Pooled for u8 {
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R {
        BYTES.with(act)
    }
}

/// Takes an empty vector, if possible one with room; leaves one alone that has room.
pub(crate) fn acquire<T: Pooled>(items: &mut Vec<T>) {
    if items.capacity() == 0
        && let Some(buffer) = T::with_pool(BufferPool::take)
    {
        *items = buffer;
    }
}

/// Puts an empty vector with room into the pool; leaves one alone that holds something.
pub(crate) fn release<T: Pooled>(items: &mut Vec<T>) {
    if items.is_empty() && items.capacity() > 0 {
        T::with_pool(|pool| pool.put(std::mem::take(items)));
    }
}

/// Takes a vector of which every byte was written once, if there is one.
pub(crate) fn acquire_zeroed() -> Option<Vec<u8>> {
    ZEROED.with(BufferPool::take)
}

/// Puts such a vector into the pool, whatever it holds.
pub(crate) fn release_zeroed(bytes: Vec<u8>) {
    ZEROED.with(|pool| pool.put(bytes));
}

#[cfg(test)]
mod tests;
