use super::*;
use crate::connection::mux::Ended;

#[test]
fn what_one_gives_back_the_next_gets() {
    let mut first: Vec<u8> = Vec::with_capacity(1_000);
    let place = first.as_ptr();
    first.push(7);
    give_back(&mut first);
    assert_eq!(first, [7], "what holds something stays");
    first.clear();
    give_back(&mut first);
    assert_eq!(first.capacity(), 0);
    let mut second: Vec<u8> = Vec::new();
    borrow(&mut second);
    assert_eq!((second.as_ptr(), second.len()), (place, 0));
    let mut third: Vec<u8> = Vec::with_capacity(9);
    borrow(&mut third);
    assert_eq!(third.capacity(), 9, "it has room of its own");
}

#[test]
fn few_are_kept_and_none_that_is_large() {
    for size in [KEPT_MAX_BYTES + 1, 10, 10, 10, 10, 10, 10] {
        give_back_zeroed(vec![0; size]);
    }
    let kept: Vec<usize> = std::iter::from_fn(borrow_zeroed).map(|bytes| bytes.len()).collect();
    assert_eq!(kept, [10; KEPT_MAX_COUNT]);
}

#[test]
fn ends_of_streams_are_lent_as_well() {
    let mut first: Vec<Ended> = Vec::with_capacity(1_000);
    give_back(&mut first);
    let mut second: Vec<Ended> = Vec::new();
    borrow(&mut second);
    assert_eq!((first.capacity(), second.capacity()), (0, 1_000));
}
