//! Buffers shared by the connections of a thread. A connection needs them only while its loop runs, and each thread runs one loop at a
//! time. So sixty connections need only the buffers of a few.

use std::cell::RefCell;

/// Buffers of each kind kept for the next loop on a thread; a loop needs two.
const BUFFERS_MAX_COUNT: usize = 4;
/// Largest capacity of a kept buffer. A buffer that grew beyond it, for a peer that did not read, is dropped.
const BUFFER_MAX_BYTES: usize = 256 * 1_024;

thread_local! {
    static BYTES: BufferPool<u8> = const { BufferPool::new() };
    static ZEROED: BufferPool<u8> = const { BufferPool::new() };
}

/// A thread's pool of vectors of one kind.
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

/// An element type of pooled vectors.
pub(crate) trait Pooled: Sized {
    /// Returns access to this thread's pool of empty vectors.
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R;
}

impl Pooled for u8 {
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R {
        BYTES.with(act)
    }
}

/// Takes an empty vector, with capacity if the pool has one. A vector that already has capacity is left unchanged.
pub(crate) fn acquire<T: Pooled>(items: &mut Vec<T>) {
    if items.capacity() == 0
        && let Some(buffer) = T::with_pool(BufferPool::take)
    {
        *items = buffer;
    }
}

/// Returns an empty vector with capacity to the pool. A vector with contents is left unchanged.
pub(crate) fn release<T: Pooled>(items: &mut Vec<T>) {
    if items.is_empty() && items.capacity() > 0 {
        T::with_pool(|pool| pool.put(std::mem::take(items)));
    }
}

/// Takes a vector with all its bytes initialized, if the pool has one.
pub(crate) fn acquire_zeroed() -> Option<Vec<u8>> {
    ZEROED.with(BufferPool::take)
}

/// Returns such a vector to the pool; its contents do not matter.
pub(crate) fn release_zeroed(bytes: Vec<u8>) {
    ZEROED.with(|pool| pool.put(bytes));
}

#[cfg(test)]
mod tests;
