//! The differences between the SQL dialects of the engines.

use std::sync::OnceLock;

/// The SQL dialect of an engine.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The place of the engine's texts.
    place: usize,
    /// True if many rows are read with one statement, because a network round trip costs more than a list as a parameter.
    pub(crate) reads_together: bool,
    /// A join that reads its tables in the order in which they are written. PostgreSQL's planner has statistics, and decides itself.
    pub(crate) join_in_order: &'static str,
    /// A prefix that keeps SQLite's planner from using the index of a column although another index serves better.
    pub(crate) without_index: &'static str,
    /// The function that returns the largest of several values.
    pub(crate) greatest: &'static str,
    /// Drops the claim of a message of a device: SQLite's file has one server, and no claims.
    pub(crate) unclaim: &'static str,
    /// The column with the process that expands a producer, if several processes share the database.
    pub(crate) producer_instance: &'static str,
    /// Names the index of a table; PostgreSQL's planner finds it.
    names_index: bool,
    /// The texts before and behind the number of a parameter that is a list.
    list: (&'static str, &'static str),
}

impl Dialect {
    /// Returns the clause that makes a statement use an index.
    pub(crate) fn index(&self, name: &str) -> String {
        if self.names_index { format!("INDEXED BY {name}") } else { String::new() }
    }

    /// Returns the condition that a value is in the list of a parameter.
    pub(crate) fn is_in(&self, column: &str, parameter: u32) -> String {
        let (before, behind) = self.list;
        format!("{column} {before}?{parameter}{behind}")
    }
}

/// The dialect of SQLite.
pub(crate) const SQLITE: Dialect = Dialect {
    place: 0,
    reads_together: false,
    join_in_order: "CROSS JOIN",
    without_index: "+",
    greatest: "max",
    unclaim: "",
    producer_instance: "NULL",
    names_index: true,
    list: ("IN (SELECT value FROM json_each(", "))"),
};
/// The dialect of PostgreSQL.
pub(crate) const POSTGRES: Dialect = Dialect {
    place: 1,
    reads_together: true,
    join_in_order: "JOIN",
    without_index: "",
    greatest: "greatest",
    unclaim: "claimed_by = NULL,",
    producer_instance: "p.instance",
    names_index: false,
    list: ("= ANY(", ")"),
};

/// A statement that depends on the dialect; its text is written once for each engine.
pub(crate) struct DialectText {
    write: fn(&Dialect) -> String,
    texts: [OnceLock<String>; 2],
}

impl DialectText {
    /// Creates a statement from the function that writes it.
    pub(crate) const fn new(write: fn(&Dialect) -> String) -> Self {
        Self { write, texts: [OnceLock::new(), OnceLock::new()] }
    }

    /// Returns the statement in the dialect of an engine.
    pub(crate) fn of(&self, dialect: &Dialect) -> &str {
        self.texts[dialect.place].get_or_init(|| (self.write)(dialect))
    }
}
