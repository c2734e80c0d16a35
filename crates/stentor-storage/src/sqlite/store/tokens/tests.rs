use std::collections::BTreeSet;

use super::*;
use crate::sqlite::migrations;
use crate::sqlite::query::all;

const SMALL: Room = Room { fresh_max_count: 100, stretch_count: 30 };

fn file() -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    connection
}

fn pairs(connection: &Connection, table: &str) -> BTreeSet<(i64, i64)> {
    let sql = format!("SELECT hash, key FROM {table}");
    let rows = all(connection, &sql, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    rows.into_iter().collect()
}

/// Spreads numbers over all hashes, with the outermost ones and some that many share.
fn pair(number: i64) -> (i64, i64) {
    let hash = match number % 50 {
        0 => i64::MIN,
        1 => i64::MAX,
        2..8 => 7,
        _ => number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()),
    };
    (hash, number)
}

/// Sees that both tables together hold what they must, and that the count is the count.
fn check(connection: &Connection, expected: &BTreeSet<(i64, i64)>) {
    let (fresh, old) = (pairs(connection, "token_hashes_fresh"), pairs(connection, "token_hashes"));
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
        let new: Vec<(i64, i64)> = (0..size).map(|at| pair(batch * 1_000 + at)).collect();
        note_within(&connection, &new, SMALL).expect("noted");
        expected.extend(new);
        check(&connection, &expected);
        let gone: Vec<_> = expected.iter().step_by(9).copied().collect();
        for (hash, key) in gone {
            forget(&connection, hash, key).expect("forgotten");
            expected.remove(&(hash, key));
        }
        check(&connection, &expected);
    }
    assert!(!pairs(&connection, "token_hashes").is_empty(), "nothing was ever moved");
}

#[test]
fn forgetting_a_hash_that_nobody_noted_changes_nothing() {
    let connection = file();
    note(&connection, &[(1, 2)]).expect("noted");
    forget(&connection, 1, 3).expect("looked");
    assert_eq!(change_count(&connection, 0).expect("counted"), 1);
}
