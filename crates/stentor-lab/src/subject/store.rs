//! Points of interest as rows of an SQLite file: a server reads them, a client stores them.
//!
//! A page and the number of stored pages are written in one transaction, so that a killed client knows exactly which pages it has. Before a
//! synchronisation is complete its rows can be read, and are marked stale.

use super::SubjectError;
use rusqlite::{Connection, params, params_from_iter};
use std::path::Path;
use stentor_wire::Point;
use stentor_wire::content::{POINT_FIELD_NAMES, POINT_FIELDS};

/// Points of interest as rows.
pub struct PointStore {
    connection: Connection,
}

/// The rows that a client can show without its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offline {
    /// All stored points, in order.
    pub points: Vec<Point>,
    /// Stored pages of the synchronisation.
    pub pages: u64,
    /// True if a synchronisation is incomplete: some rows may be old, and some are missing.
    pub is_stale: bool,
}

impl PointStore {
    /// Opens a file, or creates it.
    pub fn open(path: &Path) -> Result<Self, SubjectError> {
        let connection = Connection::open(path)?;
        let columns = POINT_FIELD_NAMES.map(|name| format!("{name} TEXT NOT NULL")).join(", ");
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS points (number INTEGER PRIMARY KEY, {columns});
             CREATE TABLE IF NOT EXISTS sync (one INTEGER PRIMARY KEY CHECK (one = 1), pages INTEGER NOT NULL,
                 complete INTEGER NOT NULL);
             INSERT OR IGNORE INTO sync VALUES (1, 0, 0);"
        ))?;
        Ok(Self { connection })
    }

    /// Replaces all rows by these points.
    pub fn fill(&mut self, points: &[Point]) -> Result<(), SubjectError> {
        self.connection.execute("DELETE FROM points", [])?;
        self.keep(0, points, 0, true)
    }

    /// Reads `count` points, starting at number `from`.
    pub fn rows(&self, from: u64, count: u64) -> Result<Vec<Point>, SubjectError> {
        let names = POINT_FIELD_NAMES.join(", ");
        let sql = format!("SELECT {names} FROM points WHERE number >= ?1 ORDER BY number LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            let mut fields: [String; POINT_FIELDS] = std::array::from_fn(|_| String::new());
            for (place, field) in fields.iter_mut().enumerate() {
                *field = row.get(place)?;
            }
            Ok(Point::of(fields))
        };
        let rows = statement.query_map(params![from.cast_signed(), count.cast_signed()], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores a page in one transaction: its points, numbered from `from`, and the number of stored pages.
    pub fn keep(
        &mut self,
        from: u64,
        points: &[Point],
        pages: u64,
        complete: bool,
    ) -> Result<(), SubjectError> {
        let places = (1..=POINT_FIELDS + 1).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let transaction = self.connection.transaction()?;
        {
            let mut statement =
                transaction.prepare_cached(&format!("INSERT OR REPLACE INTO points VALUES ({places})"))?;
            for (number, point) in (from..).zip(points) {
                let number = number.to_string();
                statement
                    .execute(params_from_iter(std::iter::once(number.as_str()).chain(point.fields())))?;
            }
            transaction.execute(
                "UPDATE sync SET pages = ?1, complete = ?2",
                params![pages.cast_signed(), complete],
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns the number of stored pages of an incomplete synchronisation, else 0.
    pub fn pages(&self) -> Result<u64, SubjectError> {
        let sql = "SELECT CASE WHEN complete THEN 0 ELSE pages END FROM sync";
        let pages: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(pages.cast_unsigned())
    }

    /// Returns true if no synchronisation was ever completed, or a new one has begun.
    pub fn is_stale(&self) -> Result<bool, SubjectError> {
        Ok(!self.connection.query_row("SELECT complete FROM sync", [], |row| row.get::<_, bool>(0))?)
    }

    /// Reads all rows without contacting the server.
    pub fn offline(&self) -> Result<Offline, SubjectError> {
        let state = "SELECT pages, complete FROM sync";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (pages, complete): (i64, bool) = self.connection.query_row(state, [], read)?;
        Ok(Offline {
            points: self.rows(0, u64::from(u32::MAX))?,
            pages: pages.cast_unsigned(),
            is_stale: !complete,
        })
    }
}
