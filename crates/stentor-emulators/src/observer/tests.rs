//! Counts are kept, survive, and are reported when they do not fit.

use super::*;

fn config(path: &std::path::Path, capacity_tokens: u64) -> ObserverConfig {
    ObserverConfig { path: Some(path.to_owned()), capacity_tokens }
}

fn hash(number: u64) -> u64 {
    token_hash(&number.to_le_bytes())
}

#[test]
fn the_hash_is_part_of_the_format_and_never_changes() {
    let found =
        ["", "abc", "0123456789abcdef0"].map(|token| format!("{:016x}", token_hash(token.as_bytes())));
    assert_eq!(found, ["b6997f9fce0138e6", "a779287b9c5dfdf1", "bcaaff19a6d73e79"]);
}

#[test]
fn hashes_of_many_similar_tokens_differ() {
    let tokens = (0..200_000_u32).map(|number| format!("{number:064x}"));
    let mut hashes: Vec<u64> = tokens.map(|token| token_hash(token.as_bytes())).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 200_000);
}

#[test]
fn a_full_capacity_fits_and_every_token_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    let observer = Observer::open(&config(&path, 60_000)).unwrap();
    for number in 0..60_000 {
        assert_eq!(observer.attempt(hash(number)), 1);
        observer.settle(hash(number), AnswerTally::Accepted);
    }
    assert_eq!(observer.totals().overflow, 0);
    let file = ObserverFile::open(&path).unwrap();
    assert_eq!(file.totals(), observer.totals());
    for number in 0..60_000 {
        assert_eq!(file.lookup_hash(hash(number)).accepted, 1);
    }
    let mut visited = 0;
    file.for_each(|_, counts| visited += counts.attempts);
    assert_eq!(visited, 60_000);
}

#[test]
fn a_full_table_counts_the_overflow_and_keeps_what_it_has() {
    let observer = Observer::open(&ObserverConfig { path: None, capacity_tokens: 3 }).unwrap();
    for number in 0..5 {
        observer.attempt_and_settle(hash(number), AnswerTally::Rejected);
    }
    observer.attempt(hash(0));
    let totals = observer.totals();
    assert_eq!((totals.tokens, totals.attempts, totals.rejected, totals.overflow), (3, 4, 3, 2));
}

#[test]
fn the_overflow_survives_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    let observer = Observer::open(&config(&path, 1)).unwrap();
    observer.attempt(hash(1));
    observer.attempt(hash(2));
    drop(observer);
    assert_eq!(Observer::open(&config(&path, 1)).unwrap().totals().overflow, 1);
    assert_eq!(ObserverFile::open(&path).unwrap().totals().overflow, 1);
}

#[test]
fn a_file_in_use_too_small_or_foreign_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    let observer = Observer::open(&config(&path, 10)).unwrap();
    let refused = |config: &ObserverConfig| Observer::open(config).err().unwrap().to_string();
    assert!(refused(&config(&path, 10)).contains("in use"));
    drop(observer);
    assert!(refused(&config(&path, 11)).contains("made for 10 tokens"));
    assert!(Observer::open(&config(&path, 5)).is_ok(), "a larger file will do");
    let foreign = directory.path().join("foreign");
    std::fs::write(&foreign, vec![7; 8192]).unwrap();
    assert!(refused(&config(&foreign, 10)).contains("not an observer file"));
    assert!(ObserverFile::open(&foreign).is_err());
    std::fs::write(&foreign, b"short").unwrap();
    assert!(Observer::open(&config(&foreign, 10)).is_err());
    std::fs::write(&foreign, &std::fs::read(&path).unwrap()[..5000]).unwrap();
    assert!(refused(&config(&foreign, 10)).contains("length"));
}

#[test]
fn threads_count_together() {
    let observer = Observer::open(&ObserverConfig { path: None, capacity_tokens: 100_000 }).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..1000 {
                    observer.attempt_and_settle(hash(number), AnswerTally::Accepted);
                }
            });
        }
    });
    let totals = observer.totals();
    assert_eq!((totals.tokens, totals.accepted, totals.tokens_accepted_twice), (1000, 4000, 1000));
}
