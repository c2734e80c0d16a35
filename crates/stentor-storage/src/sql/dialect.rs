//! Words in which the languages of the engines differ.

use std::sync::OnceLock;

/// The words of an engine.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The place of the engine's texts.
    place: usize,
    /// Whether many rows are read with one statement: a turn over the network costs more than a list as a parameter.
    pub(crate) reads_together: bool,
    /// A join that reads its tables in the order in which they are written. PostgreSQL's planner has statistics, and decides itself.
    pub(crate) join_in_order: &'static str,
    /// Keeps the index of a column from being used: SQLite's planner would take it although another index serves better.
    pub(crate) without_index: &'static str,
    /// The function that returns the largest of several values.
    pub(crate) greatest: &'static str,
    /// Drops the claim of a message of a device: SQLite's file has one server, and no claims.
    pub(crate) unclaim: &'static str,
    /// Names the index of a table; PostgreSQL's planner finds it.
    names_index: bool,
    /// What stands before and behind the number of a parameter that is a list of numbers.
    list: (&'static str, &'static str),
}

impl Dialect {
    /// Returns the words that make a statement use an index.
    pub(crate) fn index(&self, name: &str) -> String {
        if self.names_index { format!("INDEXED BY {name}") } else { String::new() }
    }

    /// Returns the condition that a number is in the list of a parameter.
    pub(crate) fn is_in(&self, column: &str, parameter: u32) -> String {
        let (before, behind) = self.list;
        format!("{column} {before}?{parameter}{behind}")
    }
}

/// The words of SQLite.
pub(crate) const SQLITE: Dialect = Dialect {
    place: 0,
    reads_together: false,
    join_in_order: "CROSS JOIN",
    without_index: "+",
    greatest: "max",
    unclaim: "",
    names_index: true,
    list: ("IN (SELECT value FROM json_each(", "))"),
};
/// The words of PostgreSQL.
pub(crate) const POSTGRES: Dialect = Dialect {
    place: 1,
    reads_together: true,
    join_in_order: "JOIN",
    without_index: "",
    greatest: "greatest",
    unclaim: "claimed_by = NULL,",
    names_index: false,
    list: ("= ANY(", ")"),
};

/// A statement with words of a dialect, written once for each engine.
pub(crate) struct DialectText {
    write: fn(&Dialect) -> String,
    texts: [OnceLock<String>; 2],
}

impl DialectText {
    /// Keeps how the statement is written.
    pub(crate) const fn new(write: fn(&Dialect) -> String) -> Self {
        Self { write, texts: [OnceLock::new(), OnceLock::new()] }
    }

    /// Returns the statement in the words of an engine.
    pub(crate) fn of(&self, dialect: &Dialect) -> &str {
        self.texts[dialect.place].get_or_init(|| (self.write)(dialect))
    }
}
