use std::collections::BTreeSet;

use super::super::app_providers;
use super::*;
use crate::sqlite::migrations;

const SMALL: Room = Room { fresh_max_count: 100, stretch_count: 30 };

fn file() -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    connection
}

fn pairs(leaves: &Leaves<'_>, expected: &BTreeSet<HashPair>) -> BTreeSet<HashPair> {
    let hashes: BTreeSet<i64> = expected.iter().map(|(hash, _)| *hash).collect();
    let mut held = BTreeSet::new();
    let insert = |pair| assert!(held.insert(pair), "{pair:?} is there twice");
    leaves.find(&hashes.into_iter().collect::<Vec<_>>(), insert).expect("found");
    held
}

/// Spreads numbers over all hashes, with the outermost ones and some that many share.
fn numbered(number: i64) -> HashPair {
    let hash = match number % 50 {
        0 => 0,
        1 => (1 << BITS) - 1,
        2..8 => 7,
        _ => cut(number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed())),
    };
    (hash, number)
}

/// Checks that both tables together hold the expected pairs, and that the count is right.
fn check(connection: &Connection, expected: &BTreeSet<HashPair>) {
    let (fresh, old) = (pairs(&fresh(connection), expected), pairs(&old(connection), expected));
    assert!(fresh.is_disjoint(&old));
    assert_eq!(fresh.union(&old).copied().collect::<BTreeSet<_>>(), *expected);
    let count = change_count(connection, 0).expect("counted");
    assert_eq!(count, fresh.len() as i64);
    assert!(count <= SMALL.fresh_max_count);
}

#[test]
fn no_hash_is_lost_or_doubled_while_stretches_are_moved() {
    let connection = file();
    let mut expected = BTreeSet::new();
    for batch in 0..40_i64 {
        let size = [1, 7, 64, 150][(batch % 4) as usize];
        let new: Vec<HashPair> = (0..size).map(|at| numbered(batch * 1_000 + at)).collect();
        let sorted: BTreeSet<HashPair> = new.iter().copied().collect();
        note_within(&connection, &sorted.into_iter().collect::<Vec<_>>(), SMALL).expect("noted");
        expected.extend(new);
        check(&connection, &expected);
        let gone: Vec<_> = expected.iter().step_by(9).copied().collect();
        forget(&connection, gone.iter().copied()).expect("forgotten");
        expected.retain(|pair| !gone.contains(pair));
        check(&connection, &expected);
    }
    assert!(!pairs(&old(&connection), &expected).is_empty(), "nothing was ever moved");
}

#[test]
fn forgetting_a_hash_that_nobody_noted_changes_nothing() {
    let connection = file();
    note(&connection, [(1, 2)]).expect("noted");
    forget(&connection, [(1, 3)]).expect("looked");
    assert_eq!(change_count(&connection, 0).expect("counted"), 1);
}

#[test]
fn a_count_that_says_more_than_there_is_begins_anew_and_is_no_endless_search() {
    let connection = file();
    note(&connection, [(1, 2)]).expect("noted");
    change_count(&connection, 1_000).expect("counted");
    note_within(&connection, &[(3, 4)], SMALL).expect("noted");
    assert_eq!(change_count(&connection, 0).expect("counted"), 0);
}

#[test]
fn the_rows_of_older_files_are_adopted() {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, &migrations::STORE[..5]).expect("made");
    let rows =
        (1..40_000_i64).map(|key| (key.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()), 3 << 40 | key));
    for row in rows.clone() {
        let table = ["token_hashes", "token_hashes_fresh"][usize::from(row.1 % 3 == 0)];
        let sql = format!("INSERT INTO {table} (hash, key) VALUES (?1, ?2)");
        run(&connection, &sql, [row.0, row.1]).expect("written");
    }
    migrations::run(&connection, migrations::STORE).expect("adopted");
    let expected: BTreeSet<HashPair> = rows.map(|(hash, key)| (cut(hash), key & ((1 << 40) - 1))).collect();
    assert_eq!(pairs(&old(&connection), &expected), expected);
}

#[test]
fn a_device_of_another_fleet_holds_no_token_of_this_one() {
    let connection = file();
    let apps = [AppId::from_raw(1), AppId::from_raw(2)];
    run(&connection, "INSERT INTO apps VALUES (1, 'a', 0), (2, 'b', 0)", ()).expect("made");
    let [ours, theirs] =
        apps.map(|app| app_providers::ensure(&connection, app, ProviderKind::Fcm).expect("a fleet"));
    let token = PushToken::new("one-token").expect("a token");
    let key = theirs.bound(DeviceId::from_raw(7));
    let sql = "INSERT INTO devices (key, token_since, registered_at, platform, listed, token)
        VALUES (?1, 0, 0, 1, 1, 'one-token')";
    run(&connection, sql, [key]).expect("written");
    for fleet in [ours, theirs] {
        note(&connection, [(hash(fleet.app, fleet.provider, &token), key)]).expect("noted");
    }
    assert_eq!(holder(&connection, theirs, &token).expect("looked"), Some(key));
    assert_eq!(holder(&connection, ours, &token).expect("looked"), None);
}
