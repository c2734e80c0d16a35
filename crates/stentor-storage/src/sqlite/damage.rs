//! Rows that make no sense: each is left out, named in the log once, and holds nothing else up.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::sql::{Done, SqlError, all, run};

/// Most damaged rows of a file that are remembered so as not to name them again.
const NAMED_MAX_COUNT: usize = 4_096;

/// Rows by the tables and numbers that they have in a file.
type NamedRows = HashSet<(&'static str, i64)>;

/// The damaged rows logged for each file. It belongs to the process, not to a store, because rows are read over many connections, and the
/// log is the process's too.
static NAMED: Mutex<Option<HashMap<String, NamedRows>>> = Mutex::new(None);

/// Logs and counts a damaged row, unless that was done before.
pub(super) fn note(connection: &Connection, table: &'static str, key: i64, identity: i64, error: &SqlError) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let named = named.get_or_insert_default().entry(file_of(connection)).or_default();
    if named.len() < NAMED_MAX_COUNT && named.insert((table, identity)) {
        tracing::error!(table, key, %error, "a row cannot be read: it is left out, the others are not");
    }
}

/// Counts the rows of a file that could not be read since the process began: each once.
pub(super) fn count(connection: &Connection) -> u64 {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = named.as_ref().and_then(|named| named.get(&file_of(connection)));
    rows.map_or(0, |rows| rows.len() as u64)
}

fn file_of(connection: &Connection) -> String {
    connection.path().unwrap_or_default().to_owned()
}

/// Replaces values of the wrong kind in the rows of a table for which `condition` holds, keys excepted.
pub(super) fn mend_kinds(connection: &Connection, table: &str, condition: &str) -> Done<()> {
    let sql = format!("SELECT name, type, \"notnull\" FROM pragma_table_info('{table}') WHERE pk = 0");
    let columns = all(connection, &sql, (), |row| {
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
    run(connection, &sql, ()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{attempt, damaged, force};

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
        assert!(run(&connection, change, ()).expect_err("refused").is_damage());
        assert_eq!(force(&connection, "t", "id = 1", change, ()).expect("changed"), 1);
        let rows = all(&connection, "SELECT n, m, name FROM t ORDER BY id", (), |row| {
            Ok((row.get::<i64>(0)?, row.get::<Option<i64>>(1)?, row.get::<String>(2)?))
        });
        assert_eq!(rows.expect("read"), [(7, None, String::new()), (2, Some(3), "x".to_owned())]);
    }

    #[test]
    fn an_attempt_that_meets_damage_or_panics_leaves_nothing_and_the_rest_goes_on() {
        let connection = Connection::open_in_memory().expect("opened");
        connection
            .execute_batch("CREATE TABLE t (n INTEGER); BEGIN; INSERT INTO t VALUES (1);")
            .expect("made");
        let insert = || run(&connection, "INSERT INTO t VALUES (2)", ());
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
