//! Meanings of failures, the same for all engines: each engine has one table from its codes to these meanings.

/// The meaning of a failure of a database or a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureMeaning {
    /// It cannot be done now; the same may do well later.
    Retry,
    /// Too many ask at once, or somebody else has what it needs.
    Busy,
    /// There is no room.
    Full,
    /// Another change came in between: the same is to be done again at once.
    Conflict,
    /// The connection is of no use any more; another one may be.
    Lost,
    /// The disk does not give a part of what is kept, which says nothing of the rest.
    Unreadable,
    /// What is kept makes no sense, and the row itself proves it.
    Damaged,
    /// Nothing helps until an operator changes something: no server starts with it.
    Refused,
    /// This program asked for what it must not ask for; nothing that is kept is at fault.
    Misused,
}

/// Returns the meaning of the first row of a table whose code is the given one.
pub(crate) fn meaning_in<C: PartialEq>(table: &[(C, FailureMeaning)], code: &C) -> Option<FailureMeaning> {
    table.iter().find(|(known, _)| known == code).map(|(_, meaning)| *meaning)
}
