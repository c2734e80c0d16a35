use proptest::prelude::*;

use super::*;

fn open(index: u32, opened_ms: u32) -> Open {
    Open {
        batch: 0,
        index,
        resends: 0,
        is_late: false,
        status: 0,
        opened_ms,
        received_bytes: 0,
        offset: NonZeroU64::MIN,
    }
}

#[test]
fn ids_are_odd_and_never_used_again() {
    let mut streams = Streams::default();
    for index in 0..100 {
        assert_eq!(streams.next_id(), 1 + 2 * index);
        streams.push(open(index, 0));
        assert_eq!(streams.remove(1 + 2 * index).map(|open| open.index), Some(index));
    }
    assert!(streams.is_empty());
    assert_eq!(streams.remove(1), None);
}

#[test]
fn late_streams_are_marked_once_oldest_first_and_counted_when_they_end() {
    let mut streams = Streams::default();
    (0..10).for_each(|index| streams.push(open(index, 10 * index)));
    streams.remove(1);
    streams.mark_late(
        50,
        |_| true,
        |count| {
            assert_eq!(count, 5);
            2
        },
    );
    assert_eq!((streams.late(), streams.take_late_ended()), (2, 0));
    streams.mark_late(50, |_| true, |count| count);
    streams.mark_late(50, |_| true, |count| panic!("{count} are marked again"));
    assert_eq!(streams.late(), 5);
    streams.mark_late(90, |open| open.index == 8, |count| count);
    assert!(streams.remove(17).is_some_and(|open| open.is_late) && streams.take_late_ended() == 1);
    assert!(streams.remove(3).is_some_and(|open| open.is_late));
    assert!(streams.remove(19).is_some_and(|open| !open.is_late));
    assert_eq!((streams.late(), streams.take_late_ended(), streams.take_late_ended()), (4, 1, 0));
}

#[test]
fn a_stream_that_lives_long_does_not_keep_the_ring_growing() {
    let mut streams = Streams::default();
    streams.push(open(7, 0));
    for index in 0..100_000 {
        streams.push(open(index, 1));
        streams.remove(streams.next_id() - 2);
    }
    assert!(streams.ring.len() <= RING_MAX_STREAMS);
    assert_eq!(streams.older_than(0), [1]);
    assert_eq!(streams.remove(1).map(|open| open.index), Some(7));
    assert_eq!(streams.len(), 0);
}

proptest! {
    #[test]
    fn streams_behave_like_a_map(acts in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400)) {
        let mut streams = Streams::default();
        let mut model = std::collections::BTreeMap::new();
        for (at, (adds, pick)) in acts.into_iter().enumerate() {
            if adds || model.is_empty() {
                model.insert(streams.next_id(), at as u32);
                streams.push(open(at as u32, at as u32));
            } else {
                let id = *model.keys().nth(pick.index(model.len())).expect("within");
                prop_assert_eq!(streams.remove(id).map(|open| open.index), model.remove(&id));
            }
            prop_assert_eq!(streams.len(), model.len());
            let middle = at as u32 / 2;
            let old: Vec<u32> = model.iter().filter(|(_, at)| **at <= middle).map(|(id, _)| *id).collect();
            prop_assert_eq!(streams.older_than(middle), old);
            let above: Vec<u32> = model.keys().copied().filter(|id| *id > middle).collect();
            prop_assert_eq!(streams.above(middle), above);
        }
    }
}

#[test]
fn a_place_of_the_ring_takes_no_more_memory_than_a_stream() {
    assert_eq!(size_of::<Option<Open>>(), 32);
}

#[test]
fn a_ring_that_was_large_gives_its_memory_back_and_goes_on_with_its_ids() {
    let mut streams = Streams::default();
    (0..1_000).for_each(|index| streams.push(open(index, 0)));
    (0..1_000).for_each(|index| assert!(streams.remove(2 * index + 1).is_some()));
    streams.rest();
    assert!(streams.ring.capacity() <= 2 * RING_REST_STREAMS, "{}", streams.ring.capacity());
    assert_eq!(streams.next_id(), 2_001);
}
