//! Records as Protocol Buffers, by the shapes and the numbers of the contract: no generated code, so that whatever is in the
//! table is carried.
//!
//! A number is `int64`, JSON of any form is a `string` with its text, a list is `repeated`, a map is `map<string, V>`. A field
//! that must be there has no presence of its own: when it is absent, a number is zero, a list is empty, and a text is missing.
//! The format has no null: what can be cleared is cleared by its name in the list `clear`, which no other form of a record has.
//! A choice is a `oneof`; one without content is a `bool` that is true, and its name alone in JSON.

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

/// The records that can be read and written, each under its name.
#[derive(Debug)]
pub struct Schema(Layouts);

impl Schema {
    /// Returns the schema of all records of the contract.
    pub fn get() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self::of(description().records(), &description().numbers))
    }

    /// Makes the schema of some records; a field without a number is not carried.
    pub fn of<'a>(records: impl Iterator<Item = &'a RecordShape>, numbers: &Numbers) -> Self {
        Self(Layouts::new(records, numbers))
    }

    /// Reads the record of a name. Fields that it does not know are passed over, as the format demands it.
    pub fn read(&self, record: &str, bytes: &[u8], limits: &DocumentLimits) -> ServiceResult<Record> {
        let layout = self.0.named(record).ok_or_else(|| unknown(record))?;
        read::record(&self.0, layout, bytes, limits)
    }

    /// Writes the record of a name.
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

/// Puts the name of a field before the path that a problem has.
fn within(name: &str, problem: Problem) -> Problem {
    let path = match problem.field.as_deref().unwrap_or_default() {
        "" => name.to_owned(),
        inner if inner.starts_with('[') => format!("{name}{inner}"),
        inner => format!("{name}.{inner}"),
    };
    problem.at(path)
}
