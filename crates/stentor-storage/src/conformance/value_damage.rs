//! Damages a database file of ours, value by value, as a broken disk would: the constraints of the schema do not protect the values.
//!
//! The tables and columns are read from the file, so that a new table is damaged without being named here.

use std::path::Path;

use rusqlite::{Connection, Error, params_from_iter};

/// One thing to do to a file: a column gets a value in some of a table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueDamage {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The value, as SQL writes it.
    pub value: &'static str,
    keys: Vec<String>,
}

impl std::fmt::Display for ValueDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} = {}", self.table, self.column, self.value)
    }
}

/// Lists the possible damages of a file: every column of every table gets each of the values for its kind, and a value of another kind.
///
/// # Panics
///
/// Panics if the file cannot be read.
#[must_use]
pub fn possible(path: &Path) -> Vec<ValueDamage> {
    let connection = Connection::open(path).expect("the file opens");
    let sql = "SELECT t.name, c.name, c.type, c.pk FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid";
    let mut statement = connection.prepare(sql).expect("a statement");
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    let columns: Vec<(String, String, String, i64)> =
        columns.expect("columns").collect::<Result<_, Error>>().expect("columns");
    let mut damages = Vec::new();
    for (table, column, kind, _) in &columns {
        let values: &[&str] = match kind.as_str() {
            "INTEGER" => &["-1", "9223372036854775807", "'x'"],
            "TEXT" => &["''", "x'ff00'"],
            _ => &["x'ff'", "'x'"],
        };
        let of_table = columns.iter().filter(|(other, .., key)| other == table && *key > 0);
        let keys: Vec<String> = of_table.map(|(_, name, ..)| name.clone()).collect();
        let keys = if keys.is_empty() { vec!["rowid".to_owned()] } else { keys };
        damages.extend(values.iter().map(|value| ValueDamage {
            table: table.clone(),
            column: column.clone(),
            value,
            keys: keys.clone(),
        }));
    }
    damages
}

/// Damages the rows of a file that an earlier copy of it has too; returns their number. A row that would take the key of another stays as
/// it is.
///
/// # Panics
///
/// Panics if the file cannot be written.
pub fn apply(path: &Path, earlier: &Path, damage: &ValueDamage) -> usize {
    let connection = Connection::open(path).expect("the file opens");
    let schema: Vec<(String, String)> = {
        let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("tables").collect::<Result<_, Error>>().expect("tables")
    };
    let rewrite = |change: &dyn Fn(&str) -> String| {
        connection.execute_batch("PRAGMA writable_schema = ON").expect("allowed");
        for (name, sql) in &schema {
            let values = params_from_iter([change(sql), name.clone()]);
            connection
                .execute("UPDATE sqlite_schema SET sql = ?1 WHERE type = 'table' AND name = ?2", values)
                .expect("changed");
        }
        connection.execute_batch("PRAGMA writable_schema = RESET").expect("read again");
    };
    rewrite(&|sql| sql.replace("STRICT, WITHOUT ROWID", "WITHOUT ROWID").replace(") STRICT", ")"));
    connection.execute("ATTACH ?1 AS earlier", [earlier.to_string_lossy()]).expect("attached");
    let ValueDamage { table, column, value, keys } = damage;
    let keys = keys.join(", ");
    let sql = format!(
        "UPDATE OR IGNORE main.{table} SET {column} = {value} WHERE ({keys}) IN (SELECT {keys} FROM earlier.{table})"
    );
    // A disk cannot produce values that SQLite itself cannot hold, such as a text for the number of a row.
    let changed = connection.execute(&sql, []).unwrap_or_default();
    connection.execute_batch("DETACH earlier").expect("detached");
    rewrite(&|sql| sql.to_owned());
    changed
}
