use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::sqlite::migrations;

fn file() -> Connection {
    let connection = Connection::open_in_memory().expect("opened");
    migrations::run(&connection, migrations::STORE).expect("made");
    connection
}

fn leaves(connection: &Connection) -> Leaves<'_> {
    Leaves { connection, table: "token_leaves" }
}

/// Hashes that lie close together, apart, and at both ends.
fn hash() -> impl Strategy<Value = i64> {
    const END: i64 = 1 << BITS;
    prop_oneof![4 => 0..END, 2 => 0_i64..6, 1 => Just(END - 1)]
}

fn pairs() -> impl Strategy<Value = BTreeSet<HashPair>> {
    vec((hash(), 0_i64..4), 0..1_300).prop_map(|pairs| pairs.into_iter().collect())
}

fn sorted(pairs: &BTreeSet<HashPair>) -> Vec<HashPair> {
    pairs.iter().copied().collect()
}

/// Reads all leaves, and checks that they cover every hash once and contain only hashes that they cover.
fn all(leaves: &Leaves<'_>) -> BTreeSet<HashPair> {
    let mut held = BTreeSet::new();
    let mut from = i64::MIN;
    loop {
        let leaf = leaves.covering(from).expect("covered");
        assert_eq!(leaf.first, from, "a leaf begins where the one before ends");
        assert!(leaf.pairs.is_sorted());
        assert!(leaf.pairs.iter().all(|(hash, _)| (leaf.first..=leaf.until).contains(hash)));
        let crowd = leaf.pairs.iter().any(|(hash, _)| *hash != leaf.pairs[0].0);
        assert!(!crowd || leaf.pairs.len() <= ROOM_COUNT, "{} pairs in a leaf", leaf.pairs.len());
        held.extend(leaf.pairs);
        match leaf.until.checked_add(1) {
            Some(next) => from = next,
            None => return held,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn leaves_hold_what_a_set_would_hold(batches in vec((pairs(), pairs()), 1..6)) {
        let connection = file();
        let leaves = leaves(&connection);
        let mut expected = BTreeSet::new();
        for (new, gone) in batches {
            let count = leaves.add(&sorted(&new)).expect("added");
            prop_assert_eq!(count, new.difference(&expected).count());
            expected.extend(new);
            let missing: BTreeSet<_> = gone.difference(&expected).copied().collect();
            prop_assert_eq!(leaves.remove(&sorted(&gone)).expect("removed"), sorted(&missing));
            expected.retain(|pair| !gone.contains(pair));
            prop_assert_eq!(&all(&leaves), &expected);
            let hashes: BTreeSet<i64> = gone.iter().chain(&expected).map(|(hash, _)| *hash).collect();
            let mut found = Vec::new();
            leaves.find(&hashes.into_iter().collect::<Vec<_>>(), |pair| found.push(pair)).expect("found");
            prop_assert_eq!(found, sorted(&expected));
        }
    }

    #[test]
    fn what_is_taken_in_stretches_is_all_there_was(new in pairs(), most in 1_usize..300) {
        let connection = file();
        let leaves = leaves(&connection);
        leaves.add(&sorted(&new)).expect("added");
        let (mut taken, mut from) = (Vec::new(), i64::MIN);
        loop {
            let some = leaves.take(from, most).expect("taken");
            taken.extend(some.pairs);
            from = some.next;
            if from == i64::MIN {
                break;
            }
        }
        prop_assert_eq!(taken, sorted(&new));
        prop_assert!(all(&leaves).is_empty());
    }

    #[test]
    fn bytes_that_are_no_leaf_are_refused_and_never_a_panic(bytes in vec(any::<u8>(), 0..120)) {
        if let Some(page) = StoredLeaf::decode(&bytes) {
            prop_assert!(HEAD_BYTES + PAIR_BYTES * page.count() <= bytes.len());
            page.find(0, &mut drop);
        }
    }
}

#[test]
fn a_full_leaf_stays_in_its_page() {
    let connection = file();
    let many: Vec<HashPair> = (0..10_000).map(|number| (number * 1_000, (1 << BITS) - 1 - number)).collect();
    leaves(&connection).add(&many).expect("added");
    let sql = "SELECT count(*) FROM dbstat WHERE name = 'token_leaves' AND pagetype = 'overflow'";
    let overflown = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let rows: i64 =
        connection.query_row("SELECT count(*) FROM token_leaves", [], |row| row.get(0)).expect("counted");
    assert!(rows >= 25, "{rows} leaves");
    assert_eq!(overflown.expect("counted"), 0);
}

#[test]
fn a_leaf_that_was_cut_off_or_covers_too_little_counts_as_empty_and_is_noted() {
    let connection = file();
    let leaves = leaves(&connection);
    leaves.add(&[(5, 1)]).expect("added");
    for damage in ["substr(leaf, 1, 20)", "zeroblob(4044)", "x''"] {
        connection.execute(&format!("UPDATE token_leaves SET leaf = {damage}"), []).expect("damaged");
        let mut found = Vec::new();
        leaves.find(&[5], |pair| found.push(pair)).expect("looked");
        assert_eq!(found, [], "{damage}");
        assert_eq!(leaves.add(&[(5, 2)]).expect("added"), 1, "{damage}");
        leaves.mend().expect("mended");
        assert_eq!(sorted(&all(&leaves)), [(5, 2)], "{damage}");
        let noted = connection.execute("DELETE FROM leftovers", []).expect("written");
        assert_eq!(noted, 1, "{damage}");
    }
}
