//! Records as Protocol Buffers, by the shapes and the numbers of the contract. Without generated code, every operation of the table is
//! available.
//!
//! A number is `int64`, any JSON is a `string` with its text, a list is `repeated`, a map is `map<string, V>`. A required field has no
//! presence of its own: if it is absent, a number is zero, a list is empty, and a text is an error. The format has no null: the list
//! `clear`, which other forms of a record do not have, names the fields to clear. A choice is a `oneof`; one without content is a `bool`
//! that is true, and in JSON its bare name.

mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::OnceLock;

use stentor_wire::DocumentLimits;

use super::dispatch::Record;
use crate::contract::description::{Numbers, description};
use crate::contract::shape::RecordShape;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use layout::Layouts;

/// Records that can be read and written, by name.
#[derive(Debug)]
pub struct Schema(Layouts);

impl Schema {
    /// Returns the schema of all records of the contract.
    pub fn get() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self::of(description().records(), &description().numbers))
    }

    /// Creates the schema of some records. Fields without a number are left out.
    pub fn of<'a>(records: impl Iterator<Item = &'a RecordShape>, numbers: &Numbers) -> Self {
        Self(Layouts::new(records, numbers))
    }

    /// Reads the named record. Unknown fields are skipped, as the format requires.
    pub fn read(&self, record: &str, bytes: &[u8], limits: &DocumentLimits) -> ServiceResult<Record> {
        let layout = self.0.named(record).ok_or_else(|| unknown(record))?;
        read::record(&self.0, layout, bytes, limits)
    }

    /// Writes the named record.
    pub fn write(&self, record: &str, fields: &Record) -> ServiceResult<Vec<u8>> {
        let layout = self.0.named(record).ok_or_else(|| unknown(record))?;
        let mut bytes = Vec::new();
        write::record(&self.0, layout, fields, &mut bytes)?;
        Ok(bytes)
    }
}

fn unknown(record: &str) -> Problem {
    Problem::new(ErrorCode::Internal, format!("no record is called {record}"))
}

/// Prepends the name of a field to the path of a problem.
fn within(name: &str, problem: Problem) -> Problem {
    let path = match problem.field.as_deref().unwrap_or_default() {
        "" => name.to_owned(),
        inner if inner.starts_with('[') => format!("{name}{inner}"),
        inner => format!("{name}.{inner}"),
    };
    problem.at(path)
}
