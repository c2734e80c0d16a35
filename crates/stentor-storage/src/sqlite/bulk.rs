//! Many rows with one statement: beginning and ending a statement costs more than the row that it writes.

use crate::sql::Done;
use rusqlite::{Connection, Statement, ToSql};

/// Most rows of one statement.
pub(super) const WIDTH: usize = 64;

/// The places of a statement, filled one after the other.
pub(super) struct Places<'a, 'b> {
    statement: &'a mut Statement<'b>,
    filled: usize,
}

impl<'a, 'b> Places<'a, 'b> {
    /// Begins at the first place; all are empty.
    pub(super) fn of(statement: &'a mut Statement<'b>) -> Self {
        statement.clear_bindings();
        Self { statement, filled: 0 }
    }

    /// Fills the next place.
    pub(super) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.filled += 1;
        self.statement.raw_bind_parameter(self.filled, value)
    }
}

/// Returns the placeholders of `rows` rows: `(?,?),(?,?)`.
pub(super) fn places(columns: usize, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    vec![row; rows].join(",")
}

/// Inserts rows in their order; `head` ends before the values. It should say `OR FAIL`: a job that fails is taken back as a
/// whole, and without a statement's own way back SQLite need not copy each page before it writes to it.
pub(super) fn insert<T>(
    connection: &Connection,
    head: &str,
    columns: usize,
    rows: &[T],
    put: impl Fn(&mut Places<'_, '_>, &T) -> rusqlite::Result<()>,
) -> Done<()> {
    let (wide, rest) = rows.split_at(rows.len() - rows.len() % WIDTH);
    for (rows, width) in [(wide, WIDTH), (rest, 1)] {
        if rows.is_empty() {
            continue;
        }
        let mut statement = connection.prepare_cached(&format!("{head}{}", places(columns, width)))?;
        for some in rows.chunks(width) {
            let mut places = Places::of(&mut statement);
            some.iter().try_for_each(|row| put(&mut places, row))?;
            statement.raw_execute()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_rows_is_written_whole_and_in_order() {
        let connection = Connection::open_in_memory().expect("opened");
        connection.execute_batch("CREATE TABLE t (at INTEGER PRIMARY KEY, word TEXT)").expect("made");
        let mut expected = Vec::new();
        for count in [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 3] {
            let rows: Vec<i64> = (0..count).map(|n| (expected.len() + n) as i64).collect();
            insert(&connection, "INSERT INTO t (at, word) VALUES ", 2, &rows, |places, row| {
                places.put(row)?;
                places.put((row % 3 == 0).then_some("third"))
            })
            .expect("written");
            expected.extend(rows);
            let mut all =
                connection.prepare("SELECT at, word IS NOT NULL FROM t ORDER BY rowid").expect("fine");
            let found: Vec<(i64, bool)> =
                all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("asked").flatten().collect();
            assert_eq!(found, expected.iter().map(|at| (*at, at % 3 == 0)).collect::<Vec<_>>());
        }
    }
}
