use super::*;
use crate::connection::mux::Ended;

#[test]
fn what_one_gives_back_the_next_gets() {
    let mut first: Vec<u8> = Vec::with_capacity(1_000);
    let place = first.as_ptr();
    first.push(7);
    release(&mut first);
    assert_eq!(first, [7], "what holds something stays");
    first.clear();
    release(&mut first);
    assert_eq!(first.capacity(), 0);
    let mut second: Vec<u8> = Vec::new();
    acquire(&mut second);
    assert_eq!((second.as_ptr(), second.len()), (place, 0));
    let mut third: Vec<u8> = Vec::with_capacity(9);
    acquire(&mut third);
    assert_eq!(third.capacity(), 9, "it has room of its own");
}

#[test]
fn few_are_kept_and_none_that_is_large() {
    for size in [BUFFER_MAX_BYTES + 1, 10, 10, 10, 10, 10, 10] {
        release_zeroed(vec![0; size]);
    }
    let lengths: Vec<usize> = std::iter::from_fn(acquire_zeroed).map(|bytes| bytes.len()).collect();
    assert_eq!(lengths, [10; BUFFERS_MAX_COUNT]);
}

#[test]
fn ends_of_streams_are_pooled_as_well() {
    let mut first: Vec<Ended> = Vec::with_capacity(1_000);
    release(&mut first);
    let mut second: Vec<Ended> = Vec::new();
    acquire(&mut second);
    assert_eq!((first.capacity(), second.capacity()), (0, 1_000));
}
