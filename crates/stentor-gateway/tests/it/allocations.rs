//! Counts what a thread has allocated and not freed.

#![expect(unsafe_code, reason = "an allocator is called through an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which each thread has count for itself: tests run beside each other.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: every call is passed on as it came; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the rules of the same method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps the rules of the same method.
        unsafe { System.dealloc(place, layout) }
    }
}

fn count(bytes: isize) {
    // A thread that ends has nothing to count with any more.
    let _it_ends = HELD_BYTES.try_with(|held| held.set(held.get() + bytes));
}

/// Returns what this thread has allocated and not freed, in bytes as they were asked for.
pub(crate) fn held_bytes() -> isize {
    HELD_BYTES.get()
}
