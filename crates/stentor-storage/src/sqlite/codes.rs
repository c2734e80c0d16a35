//! The meanings of SQLite's result codes: each primary code, and each extended code whose meaning differs (sqlite.org/rescode.html).

use std::ffi::c_int;

use rusqlite::ffi;

use crate::failure::FailureMeaning::{self, Busy, Damaged, Full, Misused, Refused, Retry, Unreadable};
use crate::failure::meaning_in;

/// The part of an extended code that is the primary one.
const PRIMARY: c_int = 0xff;

const PRIMARY_CODES: &[(c_int, FailureMeaning)] = &[
    (ffi::SQLITE_OK, Misused),
    (ffi::SQLITE_ERROR, Misused),
    (ffi::SQLITE_INTERNAL, Retry),
    (ffi::SQLITE_PERM, Refused),
    (ffi::SQLITE_ABORT, Retry),
    (ffi::SQLITE_BUSY, Busy),
    (ffi::SQLITE_LOCKED, Busy),
    (ffi::SQLITE_NOMEM, Busy),
    (ffi::SQLITE_READONLY, Retry),
    (ffi::SQLITE_INTERRUPT, Retry),
    (ffi::SQLITE_IOERR, Retry),
    // The page itself contradicts the format.
    (ffi::SQLITE_CORRUPT, Damaged),
    (ffi::SQLITE_NOTFOUND, Misused),
    (ffi::SQLITE_FULL, Full),
    (ffi::SQLITE_CANTOPEN, Retry),
    (ffi::SQLITE_PROTOCOL, Busy),
    (ffi::SQLITE_EMPTY, Misused),
    (ffi::SQLITE_SCHEMA, Retry),
    (ffi::SQLITE_TOOBIG, Misused),
    (ffi::SQLITE_CONSTRAINT, Damaged),
    (ffi::SQLITE_MISMATCH, Misused),
    (ffi::SQLITE_MISUSE, Misused),
    (ffi::SQLITE_NOLFS, Full),
    (ffi::SQLITE_AUTH, Refused),
    (ffi::SQLITE_FORMAT, Misused),
    (ffi::SQLITE_RANGE, Misused),
    (ffi::SQLITE_NOTADB, Damaged),
    (ffi::SQLITE_NOTICE, Retry),
    (ffi::SQLITE_WARNING, Retry),
    (ffi::SQLITE_ROW, Misused),
    (ffi::SQLITE_DONE, Misused),
];

/// Codes that mean something else than their primary one.
const EXTENDED_CODES: &[(c_int, FailureMeaning)] = &[
    // Every write goes to the end of the log, so that a failed write or sync says nothing about a single page; a failed read does.
    (ffi::SQLITE_IOERR_READ, Unreadable),
    (ffi::SQLITE_IOERR_SHORT_READ, Unreadable),
    (ffi::SQLITE_IOERR_DATA, Unreadable),
    (ffi::SQLITE_IOERR_NOMEM, Busy),
    (ffi::SQLITE_IOERR_BLOCKED, Busy),
    (ffi::SQLITE_READONLY_DIRECTORY, Refused),
    (ffi::SQLITE_CANTOPEN_ISDIR, Refused),
    // No constraint of a row: a hook, a function or a trigger refuses.
    (ffi::SQLITE_CONSTRAINT_COMMITHOOK, Retry),
    (ffi::SQLITE_CONSTRAINT_FUNCTION, Retry),
    (ffi::SQLITE_CONSTRAINT_TRIGGER, Retry),
    (ffi::SQLITE_CONSTRAINT_VTAB, Retry),
    (ffi::SQLITE_CONSTRAINT_PINNED, Retry),
];

/// Returns the meaning of an extended code; an unknown code is retried.
pub(super) fn meaning(code: c_int) -> FailureMeaning {
    let primary = || meaning_in(PRIMARY_CODES, &(code & PRIMARY));
    meaning_in(EXTENDED_CODES, &code).or_else(primary).unwrap_or(Retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of extended codes of each primary code, which are numbered from 1 (sqlite3.h).
    const EXTENDED_COUNTS: [(c_int, c_int); 13] = [
        (ffi::SQLITE_ERROR, 6),
        (ffi::SQLITE_IOERR, 36),
        (ffi::SQLITE_LOCKED, 2),
        (ffi::SQLITE_BUSY, 3),
        (ffi::SQLITE_CANTOPEN, 6),
        (ffi::SQLITE_CORRUPT, 3),
        (ffi::SQLITE_READONLY, 6),
        (ffi::SQLITE_ABORT, 2),
        (ffi::SQLITE_CONSTRAINT, 12),
        (ffi::SQLITE_NOTICE, 3),
        (ffi::SQLITE_WARNING, 1),
        (ffi::SQLITE_AUTH, 1),
        (ffi::SQLITE_OK, 2),
    ];

    #[test]
    fn every_primary_code_has_one_meaning_and_each_exception_differs_from_its_primary_code() {
        let known: Vec<c_int> = (0..=28).chain([100, 101]).collect();
        assert_eq!(PRIMARY_CODES.iter().map(|(code, _)| *code).collect::<Vec<_>>(), known);
        for (code, own) in EXTENDED_CODES {
            let (primary, number) = (code & PRIMARY, code >> 8);
            assert_ne!(meaning_in(PRIMARY_CODES, &primary), Some(*own), "{code} says nothing new");
            assert!(
                EXTENDED_COUNTS.iter().any(|(of, count)| *of == primary && (1..=*count).contains(&number)),
                "{code}"
            );
        }
    }

    #[test]
    fn of_all_extended_codes_only_torn_pages_and_constraints_of_a_row_are_damage() {
        let all = EXTENDED_COUNTS.iter().flat_map(|(of, count)| (1..=*count).map(move |no| of | no << 8));
        let damaged: Vec<c_int> = all.filter(|code| meaning(*code) == Damaged).collect();
        let corrupt = [ffi::SQLITE_CORRUPT_VTAB, ffi::SQLITE_CORRUPT_SEQUENCE, ffi::SQLITE_CORRUPT_INDEX];
        let constraints = [
            ffi::SQLITE_CONSTRAINT_CHECK,
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
            ffi::SQLITE_CONSTRAINT_NOTNULL,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            ffi::SQLITE_CONSTRAINT_ROWID,
            ffi::SQLITE_CONSTRAINT_DATATYPE,
        ];
        assert_eq!(damaged, [corrupt.as_slice(), &constraints].concat());
    }

    #[test]
    fn each_trouble_of_a_disk_or_of_a_neighbour_means_what_is_to_be_done() {
        let expected = [
            (ffi::SQLITE_FULL, Full),
            (ffi::SQLITE_BUSY_SNAPSHOT, Busy),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Busy),
            (ffi::SQLITE_IOERR_WRITE, Retry),
            (ffi::SQLITE_IOERR_FSYNC, Retry),
            (ffi::SQLITE_IOERR_READ, Unreadable),
            (ffi::SQLITE_READONLY_DBMOVED, Retry),
            (ffi::SQLITE_ERROR_RETRY, Misused),
            (99, Retry),
        ];
        for (code, meant) in expected {
            assert_eq!(meaning(code), meant, "{code}");
        }
    }
}
