//! Meanings of failures, the same for all engines: each engine has one table from its codes to these meanings.

/// The meaning of a failure of a database or a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureMeaning {
    /// It cannot be done now; the same may do well later.
    Retry,
    /// The server is overloaded, or another transaction holds a lock.
    Busy,
    /// There is no room.
    Full,
    /// Another change came in between: the same is to be done again at once.
    Conflict,
    /// The connection is of no use any more; another one may be.
    Lost,
    /// The disk cannot read a part of the data; the other parts may be intact.
    Unreadable,
    /// The stored data is invalid, as the row itself proves.
    Damaged,
    /// Nothing helps until an operator changes something: no server starts with it.
    Refused,
    /// The program made an invalid request; the stored data is not at fault.
    Misused,
}

/// Returns the meaning of a code in a table.
pub(crate) fn meaning_in<C: PartialEq>(table: &[(C, FailureMeaning)], code: &C) -> Option<FailureMeaning> {
    table.iter().find(|(known, _)| known == code).map(|(_, meaning)| *meaning)
}
