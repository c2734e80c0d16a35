//! The meanings of PostgreSQL's error codes: every class of its list of codes (documentation, appendix A), and each code whose meaning
//! differs from its class.
//!
//! Classes of unspecific errors (XX000 is any error without a code of its own, P0001 is raised by triggers) are retried, never taken as
//! damage.

use crate::failure::FailureMeaning::{
    self, Busy, Conflict, Damaged, Full, Lost, Misused, Refused, Retry, Unreadable,
};
use crate::failure::meaning_in;

/// Every class.
const CLASSES: &[(&str, FailureMeaning)] = &[
    ("00", Misused),  // successful completion
    ("01", Retry),    // warning
    ("02", Retry),    // no data
    ("03", Misused),  // SQL statement not yet complete
    ("08", Lost),     // connection exception
    ("09", Retry),    // triggered action exception
    ("0A", Misused),  // feature not supported
    ("0B", Misused),  // invalid transaction initiation
    ("0F", Misused),  // locator exception
    ("0L", Refused),  // invalid grantor
    ("0P", Refused),  // invalid role specification
    ("0Z", Misused),  // diagnostics exception
    ("20", Misused),  // case not found
    ("21", Misused),  // cardinality violation
    ("22", Damaged),  // data exception
    ("23", Damaged),  // integrity constraint violation
    ("24", Misused),  // invalid cursor state
    ("25", Retry),    // invalid transaction state: a server that only reads, too
    ("26", Lost),     // invalid SQL statement name: the session has lost its prepared statements
    ("27", Retry),    // triggered data change violation
    ("28", Refused),  // invalid authorization specification
    ("2B", Refused),  // dependent privilege descriptors still exist
    ("2D", Misused),  // invalid transaction termination
    ("2F", Retry),    // SQL routine exception
    ("34", Lost),     // invalid cursor name
    ("38", Retry),    // external routine exception
    ("39", Retry),    // external routine invocation exception
    ("3B", Retry),    // savepoint exception: the transaction had failed before
    ("3D", Refused),  // invalid catalog name
    ("3F", Refused),  // invalid schema name
    ("40", Conflict), // transaction rollback
    ("42", Misused),  // syntax error or access rule violation
    ("44", Retry),    // WITH CHECK OPTION violation
    ("53", Busy),     // insufficient resources
    ("54", Misused),  // program limit exceeded
    ("55", Retry),    // object not in prerequisite state
    ("57", Retry),    // operator intervention
    ("58", Retry),    // system error
    ("72", Conflict), // snapshot failure
    ("F0", Refused),  // configuration file error
    ("HV", Retry),    // foreign data wrapper error
    ("P0", Retry),    // PL/pgSQL error
    ("XX", Retry),    // internal error
];

/// Codes that mean something else than their class.
const CODES: &[(&str, FailureMeaning)] = &[
    // A statement that another server's new schema has outdated is prepared again over another connection.
    ("0A000", Lost),
    // Nothing is said of a value by these, or a setting is meant.
    ("22000", Retry),
    ("22023", Retry),
    ("23000", Retry),
    ("25P03", Lost), // idle_in_transaction_session_timeout
    ("25P04", Lost), // transaction_timeout
    ("40003", Lost), // statement_completion_unknown
    // A pooler has given the session to another client in between.
    ("42P05", Lost),       // duplicate_prepared_statement
    ("42501", Refused),    // insufficient_privilege
    ("42704", Refused),    // undefined_object
    ("53100", Full),       // disk_full
    ("55006", Busy),       // object_in_use
    ("55P02", Refused),    // cant_change_runtime_param
    ("55P03", Busy),       // lock_not_available
    ("57014", Busy),       // query_canceled: a time limit, or an operator
    ("57P01", Lost),       // admin_shutdown
    ("57P02", Lost),       // crash_shutdown
    ("57P03", Lost),       // cannot_connect_now
    ("57P04", Refused),    // database_dropped
    ("57P05", Lost),       // idle_session_timeout
    ("F0001", Retry),      // lock_file_exists
    ("XX001", Unreadable), // data_corrupted: a page; the server does not name its table
    ("XX002", Unreadable), // index_corrupted
];

/// Returns the meaning of a code; an unknown code is retried.
pub(super) fn meaning(code: &str) -> FailureMeaning {
    let class = || meaning_in(CLASSES, &code.get(..2).unwrap_or_default());
    meaning_in(CODES, &code).or_else(class).unwrap_or(Retry)
}

#[cfg(test)]
mod tests;
