use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;

use super::*;

const FLEET: AppProvider = AppProvider { no: 3, app: AppId::from_raw(1), provider: ProviderKind::Fcm };

fn chunk(id: u64) -> ChunkId {
    ChunkId::from_raw(id)
}

fn seen(devices: std::ops::Range<u64>) -> Prefetched {
    let devices: Vec<_> = devices.map(DeviceId::from_raw).collect();
    let mut tokens = TokenList::default();
    devices.iter().for_each(|device| tokens.push(&format!("token {device}")));
    Prefetched { devices, tokens }
}

fn key(device: u64) -> i64 {
    FLEET.bound(DeviceId::from_raw(device))
}

fn bytes(cache: &PrefetchCache) -> usize {
    cache.lock().bytes
}

#[test]
fn what_was_seen_is_given_once() {
    let cache = PrefetchCache::default();
    cache.keep(cache.snapshot(), chunk(1), FLEET, seen(10..20));
    let taken = cache.take(chunk(1)).expect("kept");
    assert_eq!(taken.devices, seen(10..20).devices);
    assert_eq!(taken.tokens, seen(10..20).tokens);
    assert!(cache.take(chunk(1)).is_none());
    assert_eq!(bytes(&cache), 0);
}

#[test]
fn a_change_after_the_walk_forgets_the_chunk_that_holds_the_device_and_no_other() {
    let cache = PrefetchCache::default();
    let snapshot = cache.snapshot();
    cache.keep(snapshot, chunk(1), FLEET, seen(10..20));
    cache.keep(snapshot, chunk(2), FLEET, seen(20..30));
    cache.note_device(key(19));
    assert!(cache.take(chunk(1)).is_none());
    assert!(cache.take(chunk(2)).is_some());
    assert_eq!(bytes(&cache), 0);
}

#[test]
fn a_change_during_the_walk_keeps_the_chunk_out() {
    let cache = PrefetchCache::default();
    let snapshot = cache.snapshot();
    cache.note_device(key(15));
    cache.note_settled();
    cache.keep(snapshot, chunk(1), FLEET, seen(10..20));
    cache.keep(snapshot, chunk(2), FLEET, seen(20..30));
    assert!(cache.take(chunk(1)).is_none());
    assert!(cache.take(chunk(2)).is_some());
}

#[test]
fn a_change_that_was_not_committed_when_the_walk_began_counts_as_later() {
    let cache = PrefetchCache::default();
    cache.note_device(key(15));
    let before = cache.snapshot();
    cache.note_settled();
    let after = cache.snapshot();
    cache.keep(before, chunk(1), FLEET, seen(10..20));
    assert!(cache.take(chunk(1)).is_none());
    cache.keep(after, chunk(1), FLEET, seen(10..20));
    assert!(cache.take(chunk(1)).is_some());
}

#[test]
fn a_walk_that_saw_too_many_changes_is_not_kept() {
    let cache = PrefetchCache::default();
    let snapshot = cache.snapshot();
    (0..=CHANGES_MAX_COUNT as u64).for_each(|other| cache.note_device(key(1_000 + other)));
    cache.keep(snapshot, chunk(1), FLEET, seen(10..20));
    assert!(cache.take(chunk(1)).is_none());
    assert_eq!(cache.lock().changes.len(), CHANGES_MAX_COUNT);
}

#[test]
fn a_chunk_whose_row_changed_is_neither_kept_nor_held_any_longer() {
    let cache = PrefetchCache::default();
    let snapshot = cache.snapshot();
    cache.keep(snapshot, chunk(1), FLEET, seen(10..20));
    cache.note_chunk(1);
    cache.note_chunk(2);
    cache.keep(snapshot, chunk(2), FLEET, seen(20..30));
    assert!(cache.take(chunk(1)).is_none() && cache.take(chunk(2)).is_none());
    assert_eq!(bytes(&cache), 0);
}

#[test]
fn it_never_holds_more_than_its_limit() {
    let cache = PrefetchCache::default();
    let snapshot = cache.snapshot();
    for id in 1..200 {
        cache.keep(snapshot, chunk(id), FLEET, seen(id * 10_000..(id + 1) * 10_000));
    }
    let held = bytes(&cache);
    assert!(held <= WAITING_MAX_BYTES && held > WAITING_MAX_BYTES / 2, "{held}");
}

#[test]
fn a_list_that_lacks_a_token_is_not_kept() {
    let cache = PrefetchCache::default();
    let mut short = seen(10..20);
    short.devices.push(DeviceId::from_raw(20));
    cache.keep(cache.snapshot(), chunk(1), FLEET, short);
    assert!(cache.take(chunk(1)).is_none());
}

#[test]
fn memory_that_a_list_has_and_does_not_need_is_counted_or_given_back() {
    let cache = PrefetchCache::default();
    let mut wide = seen(10..20);
    wide.tokens = TokenList::with_capacity(1_000);
    wide.devices.iter().for_each(|device| wide.tokens.push(&format!("token {device}")));
    wide.devices.reserve_exact(990);
    cache.keep(cache.snapshot(), chunk(1), FLEET, wide);
    let cached_bytes = bytes(&cache);
    assert!(
        (8_000..8_400).contains(&cached_bytes),
        "{cached_bytes}: ids of a thousand devices, tokens of ten"
    );
}
