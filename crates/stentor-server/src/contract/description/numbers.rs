//! Stable numbers: of operations in the socket protocol, of fields in Protocol Buffers. They are stored in a file to which new ones are
//! only appended.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Description, RecordShape};

const KEPT: &str = include_str!("numbers.toml");

/// The numbers in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Numbers {
    /// Numbers of operations, by name.
    #[serde(default)]
    pub operations: BTreeMap<String, u32>,
    /// Numbers of fields, by record and name.
    #[serde(default)]
    pub records: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Numbers {
    /// Returns the numbers compiled into this program.
    #[must_use]
    pub fn kept() -> Self {
        toml::from_str(KEPT).unwrap_or_default()
    }

    /// Returns the number of an operation.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<u32> {
        self.operations.get(name).copied()
    }

    /// Returns the number of a field.
    #[must_use]
    pub fn field(&self, record: &str, field: &str) -> Option<u32> {
        self.records.get(record)?.get(field).copied()
    }

    /// Sorts a record's fields by their numbers. Fields without a number come last.
    pub(super) fn sort(&self, record: &mut RecordShape) {
        let name = record.name.clone();
        record.fields.sort_by_key(|field| self.field(&name, &field.name).unwrap_or(u32::MAX));
    }

    /// Assigns the next free numbers to operations and fields without one.
    #[must_use]
    pub fn extended(mut self, description: &Description) -> Self {
        for one in &description.operations {
            let next = self.operations.values().max().map_or(1, |last| last + 1);
            self.operations.entry(one.facts.name.to_owned()).or_insert(next);
        }
        for record in description.records() {
            let known = self.records.entry(record.name.clone()).or_default();
            for field in record.fields.iter().chain(&record.clear_field()) {
                let next = known.values().max().map_or(1, |last| last + 1);
                known.entry(field.name.clone()).or_insert(next);
            }
        }
        self
    }
}

/// Returns the text of the file, extended by numbers for new operations and fields. Existing numbers stay.
#[must_use]
pub fn appended(description: &Description) -> String {
    let numbers = Numbers::kept().extended(description);
    let mut text = String::from(
        "# Numbers of operations and of the fields of records. They never change and are never given again:\n\
         # `stentor contract numbers` prints this file with new ones appended.\n\n[operations]\n",
    );
    by_number(&numbers.operations)
        .for_each(|(name, number)| text.push_str(&format!("\"{name}\" = {number}\n")));
    for (record, fields) in &numbers.records {
        text.push_str(&format!("\n[records.{record}]\n"));
        by_number(fields).for_each(|(name, number)| text.push_str(&format!("{name} = {number}\n")));
    }
    text
}

fn by_number(numbers: &BTreeMap<String, u32>) -> impl Iterator<Item = (&String, &u32)> {
    let mut all: Vec<_> = numbers.iter().collect();
    all.sort_by_key(|(_, number)| **number);
    all.into_iter()
}
