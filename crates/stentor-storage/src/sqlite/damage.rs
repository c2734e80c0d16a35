//! Rows that make no sense: each is left out, named in the log once, and holds nothing else up.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};

use super::fault::{Done, SqliteError, damaged};
use super::query::{all, run};

/// Most damaged rows of a file that are remembered so as not to name them again.
const NAMED_MAX_COUNT: usize = 4_096;

/// Rows by the tables and numbers that they have in a file.
type NamedRows = HashSet<(&'static str, i64)>;

/// What was named of each file. It belongs to the process, not to a store, because rows are read over many connections, and
/// the log is the process's too.
static NAMED: Mutex<Option<HashMap<String, NamedRows>>> = Mutex::new(None);

/// Names a damaged row in the log and counts it, unless it was named before; `key` is 0 where the row has no number.
pub(super) fn note(connection: &Connection, table: &'static str, key: i64, fault: &SqliteError) {
    note_by(connection, (table, key), key, fault);
}

fn note_by(connection: &Connection, identity: (&'static str, i64), key: i64, fault: &SqliteError) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let named = named.get_or_insert_default().entry(file_of(connection)).or_default();
    if named.len() < NAMED_MAX_COUNT && named.insert(identity) {
        let table = identity.0;
        tracing::error!(table, key, %fault, "a row cannot be read: it is left out, the others are not");
    }
}

/// Counts the rows of a file that could not be read since the process began: each once.
pub(super) fn count(connection: &Connection) -> u64 {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = named.as_ref().and_then(|named| named.get(&file_of(connection)));
    rows.map_or(0, |rows| rows.len() as u64)
}

/// Returns what rows without a number are told apart by; two that fall together count as one.
fn hash_of(value: ValueRef<'_>) -> i64 {
    let mut hasher = DefaultHasher::new();
    value.as_bytes_or_null().ok().flatten().hash(&mut hasher);
    hasher.finish().cast_signed()
}

fn file_of(connection: &Connection) -> String {
    connection.path().unwrap_or_default().to_owned()
}

/// Reads up to `max` rows of those that can be read, and gives the first column of the others, when that is a number.
/// The statement itself must set no limit below that.
pub(super) fn readable<T>(
    connection: &Connection,
    table: &'static str,
    (sql, params): (&str, impl Params),
    max: usize,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<(Vec<T>, Vec<i64>)> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    while found.len() < max && broken.len() < NAMED_MAX_COUNT {
        let Some(row) = rows.next()? else { break };
        match read(row) {
            Ok(value) => found.push(value),
            Err(fault) if fault.is_damage() => {
                let (identity, key) = match row.get_ref(0)? {
                    ValueRef::Integer(key) => (key, key),
                    other => (hash_of(other), 0),
                };
                note_by(connection, (table, identity), key, &fault);
                broken.push(key);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok((found, broken))
}

/// Does something whole or not at all; returns the fault when what it met makes no sense, and fails when the engine does.
pub(super) fn attempt<T>(
    connection: &Connection,
    work: impl FnOnce() -> Done<T>,
) -> Done<Result<T, SqliteError>> {
    run(connection, "SAVEPOINT attempt", [])?;
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(damaged("it made a job panic")));
    match done {
        // The whole transaction goes, and the engine may have taken the savepoint back with it.
        Err(fault) if fault.is_unavailable() => return Err(fault),
        Err(_) => run(connection, "ROLLBACK TO attempt", []).map(drop)?,
        Ok(_) => {}
    }
    run(connection, "RELEASE attempt", [])?;
    Ok(done)
}

/// Changes a row whatever else it holds: values of a kind that its columns do not take are replaced by empty ones first,
/// where they would forbid every change.
pub(super) fn force<P: Params + Copy>(
    connection: &Connection,
    (table, condition): (&str, &str),
    sql: &str,
    params: P,
) -> Done<usize> {
    match run(connection, sql, params) {
        Err(fault) if fault.is_damage() => {
            mend_kinds(connection, table, condition)?;
            run(connection, sql, params)
        }
        done => done,
    }
}

/// Replaces values of the wrong kind in the rows of a table for which `condition` holds, keys excepted.
fn mend_kinds(connection: &Connection, table: &str, condition: &str) -> Done<()> {
    let sql = format!("SELECT name, type, \"notnull\" FROM pragma_table_info('{table}') WHERE pk = 0");
    let columns = all(connection, &sql, [], |row| {
        let (name, kind, needed): (String, String, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (fits, empty) = match kind.as_str() {
            "INTEGER" => ("'integer'", "0"),
            "TEXT" => ("'text'", "''"),
            _ => ("'blob'", "x''"),
        };
        let (fits, empty) =
            if needed { (fits.to_owned(), empty) } else { (format!("{fits}, 'null'"), "NULL") };
        Ok(format!("{name} = CASE WHEN typeof({name}) IN ({fits}) THEN {name} ELSE {empty} END"))
    })?;
    let sql = format!("UPDATE {table} SET {} WHERE {condition}", columns.join(", "));
    run(connection, &sql, []).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_values_of_the_wrong_kind_can_be_changed_all_the_same() {
        let connection = Connection::open_in_memory().expect("opened");
        let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, m INTEGER, name TEXT NOT NULL) STRICT;
            INSERT INTO t VALUES (1, 2, 3, 'x'), (2, 2, 3, 'x');
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '');
            PRAGMA writable_schema = RESET;
            UPDATE t SET m = 'three', name = x'00' WHERE id = 1;
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = sql || ' STRICT';
            PRAGMA writable_schema = RESET;";
        connection.execute_batch(sql).expect("made");
        let change = "UPDATE t SET n = 7 WHERE id = 1";
        assert!(run(&connection, change, []).expect_err("refused").is_damage());
        assert_eq!(force(&connection, ("t", "id = 1"), change, []).expect("changed"), 1);
        let rows = all(&connection, "SELECT n, m, name FROM t ORDER BY id", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?))
        });
        assert_eq!(rows.expect("read"), [(7, None, String::new()), (2, Some(3), "x".to_owned())]);
    }

    #[test]
    fn an_attempt_that_meets_damage_or_panics_leaves_nothing_and_the_rest_goes_on() {
        let connection = Connection::open_in_memory().expect("opened");
        connection
            .execute_batch("CREATE TABLE t (n INTEGER); BEGIN; INSERT INTO t VALUES (1);")
            .expect("made");
        let insert = || run(&connection, "INSERT INTO t VALUES (2)", []);
        let torn = attempt(&connection, || insert().and_then(|_| Err::<(), _>(damaged("torn"))));
        assert!(torn.expect("the engine works").is_err());
        let panicked = attempt(&connection, || {
            insert()?;
            assert!(connection.is_autocommit(), "it is not");
            Ok(())
        });
        assert!(panicked.expect("the engine works").is_err());
        assert!(attempt(&connection, insert).expect("the engine works").is_ok());
        connection.execute_batch("COMMIT").expect("kept");
        let sum: i64 = connection.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).expect("read");
        assert_eq!(sum, 3);
    }
}
