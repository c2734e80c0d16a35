//! A counter of the memory that a thread has allocated and not freed.

#![expect(unsafe_code, reason = "an allocator is called through an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with a counter per thread, because tests run in parallel.
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
    // The counter of an ending thread is already gone.
    let _it_ends = HELD_BYTES.try_with(|held| held.set(held.get() + bytes));
}

/// Returns the bytes that this thread has allocated and not freed, by the requested sizes.
pub(crate) fn held_bytes() -> isize {
    HELD_BYTES.get()
}
