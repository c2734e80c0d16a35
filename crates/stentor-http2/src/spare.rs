//! Memory that connections lend each other: a connection needs its buffers only while its loop runs, and on each thread
//! one loop runs at a time. Sixty connections thus need the buffers of a few.

use std::cell::RefCell;

/// Buffers kept for the next loop on a thread, of each kind.
const KEPT_MAX_COUNT: usize = 4;
/// A buffer that grew beyond this, for a peer that did not read, is not kept.
const KEPT_MAX_BYTES: usize = 256 * 1_024;

thread_local! {
    static EMPTY: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static ZEROED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// What vectors that are lent consist of.
pub(crate) trait Lent: Sized {
    /// Returns access to the empty vectors of this thread.
    fn with_kept<R>(act: impl FnOnce(&mut Vec<Vec<Self>>) -> R) -> R;
}

impl Lent for u8 {
    fn with_kept<R>(act: impl FnOnce(&mut Vec<Vec<Self>>) -> R) -> R {
        EMPTY.with_borrow_mut(act)
    }
}

/// Takes an empty vector, if possible one with room; leaves one alone that has room.
pub(crate) fn borrow<T: Lent>(items: &mut Vec<T>) {
    if items.capacity() == 0
        && let Some(spare) = T::with_kept(Vec::pop)
    {
        *items = spare;
    }
}

/// Gives the room of an empty vector to others; leaves one alone that holds something.
pub(crate) fn give_back<T: Lent>(items: &mut Vec<T>) {
    if items.is_empty() && items.capacity() > 0 {
        T::with_kept(|kept| keep(kept, std::mem::take(items)));
    }
}

/// Takes a vector of which every byte was written once, if there is one.
pub(crate) fn borrow_zeroed() -> Option<Vec<u8>> {
    ZEROED.with_borrow_mut(Vec::pop)
}

/// Gives such a vector to others, whatever it holds.
pub(crate) fn give_back_zeroed(bytes: Vec<u8>) {
    ZEROED.with_borrow_mut(|kept| keep(kept, bytes));
}

fn keep<T>(kept: &mut Vec<Vec<T>>, items: Vec<T>) {
    if kept.len() < KEPT_MAX_COUNT && items.capacity() * size_of::<T>() <= KEPT_MAX_BYTES {
        kept.push(items);
    }
}

#[cfg(test)]
mod tests;
