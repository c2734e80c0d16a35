use super::*;

const KEY: ProviderKey = (AppId::from_raw(0x7f12_3456_789a_bcde), ProviderKind::Fcm);

fn level(common_grains: i64) -> Level {
    Level { at: Timestamp::from_millis(1_800_000_000_123), warm_ms: 7, urgent_grains: -5, common_grains }
}

#[test]
fn what_was_kept_is_found_by_the_next_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("quotas");
    let other = (KEY.0, ProviderKind::Apns);
    let mut first = Levels::open(Some(&path));
    let slots = [KEY, other].map(|key| first.slot(key).0.expect("a place"));
    slots[0].keep(level(1));
    slots[1].keep(level(2));
    slots[0].keep(level(3));
    let mut next = Levels::open(Some(&path));
    assert_eq!([KEY, other].map(|key| next.slot(key).1), [Some(level(3)), Some(level(2))]);
    assert_eq!(path.metadata().expect("there").len(), 2 * RECORD_BYTES as u64, "each has one place");
}

#[test]
fn a_damaged_record_is_as_if_it_had_never_been() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("quotas");
    let (slot, _) = Levels::open(Some(&path)).slot(KEY);
    slot.expect("a place").keep(level(9));
    let whole = std::fs::read(&path).expect("read");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, bytes).expect("written");
        assert_eq!(Levels::open(Some(&path)).slot(KEY).1, None, "byte {at}");
    }
}

#[test]
fn the_places_of_apps_that_are_gone_go_to_others_and_are_empty_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("quotas");
    let key = |app| (AppId::from_raw(app), ProviderKind::Fcm);
    let mut levels = Levels::open(Some(&path));
    for app in 1..=3 {
        levels.slot(key(app)).0.expect("a place").keep(level(1));
    }
    levels.forget(&HashSet::from([AppId::from_raw(2)]));
    let mut next = Levels::open(Some(&path));
    assert_eq!(next.apps().collect::<HashSet<_>>(), HashSet::from([1, 3].map(AppId::from_raw)));
    for levels in [&mut levels, &mut next] {
        let (slot, before) = levels.slot(key(4));
        assert_eq!(before, None);
        slot.expect("a place").keep(level(4));
        assert_eq!(path.metadata().expect("there").len(), 3 * RECORD_BYTES as u64, "no place was added");
    }
    assert_eq!(Levels::open(Some(&path)).slot(key(3)).1, Some(level(1)), "the others stay");
}

#[test]
fn without_a_file_nothing_is_kept_and_nothing_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [None, Some(folder.path())] {
        let (slot, level) = Levels::open(path).slot(KEY);
        assert!(slot.is_none() && level.is_none());
    }
}
