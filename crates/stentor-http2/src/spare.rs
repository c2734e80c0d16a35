//! Memory that connections lend each other: a connection needs its buffers only while its loop runs, and on each thread
//! one loop runs at a time. Sixty connections thus need the buffers of a few.

use std::cell::RefCell;

/// Buffers kept for the next loop on a thread; each of two kinds.
const KEPT_MAX_COUNT: usize = 4;
/// A buffer that grew beyond this, for a peer that did not read, is not kept.
const KEPT_MAX_BYTES: usize = 256 * 1_024;

thread_local! {
    static EMPTY: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static ZEROED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Takes an empty vector, if possible one with room; leaves one alone that has room.
pub(crate) fn borrow(bytes: &mut Vec<u8>) {
    if bytes.capacity() == 0
        && let Some(spare) = EMPTY.with_borrow_mut(Vec::pop)
    {
        *bytes = spare;
    }
}

/// Gives the room of an empty vector to others; leaves one alone that holds something.
pub(crate) fn give_back(bytes: &mut Vec<u8>) {
    if bytes.is_empty() && bytes.capacity() > 0 {
        EMPTY.with_borrow_mut(|kept| keep(kept, std::mem::take(bytes)));
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

fn keep(kept: &mut Vec<Vec<u8>>, bytes: Vec<u8>) {
    if kept.len() < KEPT_MAX_COUNT && bytes.capacity() <= KEPT_MAX_BYTES {
        kept.push(bytes);
    }
}

#[cfg(test)]
mod tests;
