//! The parser of blocks of lines in NDJSON or CSV.

mod csv_line;

use std::str::FromStr;

use serde::Deserialize;
use stentor_core::error::Invalid;

use super::batch::Parsed;
use super::lines::LINE_MAX_BYTES;
use super::report::ImportProblem;
use crate::contract::devices::DeviceRequest;
use crate::decode::{StrictObjects, errors};
use crate::service::{ErrorCode, Problem, ServiceResult};
use csv_line::Columns;

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values, with a header line.
    Csv,
}

impl FromStr for Format {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.to_ascii_lowercase().as_str() {
            "ndjson" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            _ => Err(Invalid::new("format", "must be ndjson or csv")),
        }
    }
}

/// Parses one body, block by block.
#[derive(Debug)]
pub(super) struct Importer {
    format: Format,
    columns: Option<Columns>,
    line: u64,
}

impl Importer {
    /// Starts at line 1.
    #[must_use]
    pub(super) const fn new(format: Format) -> Self {
        Self { format, columns: None, line: 0 }
    }

    /// Parses a block of lines. Fails as a whole only for an invalid CSV header.
    pub(super) fn parse(&mut self, block: &[u8]) -> ServiceResult<Parsed> {
        let mut parsed = Parsed::default();
        if block.is_empty() {
            return Ok(parsed);
        }
        let block = block.strip_suffix(b"\n").unwrap_or(block);
        for line in block.split(|byte| *byte == b'\n') {
            self.line += 1;
            self.read_line(line, &mut parsed)?;
        }
        Ok(parsed)
    }

    /// Checks at the end that a CSV body has a header.
    pub(super) fn finish(&self) -> ServiceResult<()> {
        if self.format == Format::Csv && self.columns.is_none() {
            return Err(Problem::field("header", "the CSV body has no header line"));
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], parsed: &mut Parsed) -> ServiceResult<()> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Spreadsheets write a byte order mark before the first line.
        let bom = if self.line == 1 { line.strip_prefix(b"\xef\xbb\xbf") } else { None };
        let line = bom.unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let header_due = self.format == Format::Csv && self.columns.is_none();
        if header_due {
            self.columns = Some(Columns::read(checked_text(line)?)?);
            return Ok(());
        }
        match self.device(line).and_then(|device| device.checked().map_err(Problem::from)) {
            Ok(registration) => {
                parsed.push(self.line, registration);
            }
            Err(problem) => parsed.problems.push(ImportProblem::new(self.line, problem)),
        }
        Ok(())
    }

    fn device(&self, line: &[u8]) -> ServiceResult<DeviceRequest> {
        match &self.columns {
            None if line.len() > LINE_MAX_BYTES => Err(too_long()),
            // A struct could also be deserialized from a list, but a line must be an object.
            None if !line.trim_ascii_start().starts_with(b"{") => Err(not_an_object()),
            None => read(line).map_err(|_| explain(line)),
            Some(columns) => columns.device(checked_text(line)?),
        }
    }
}

fn read(line: &[u8]) -> serde_json::Result<DeviceRequest> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let device = DeviceRequest::deserialize(StrictObjects(&mut reader))?;
    reader.end()?;
    Ok(device)
}

/// Parses an invalid line again, with a slower parser that finds the field.
fn explain(line: &[u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let found = serde_path_to_error::deserialize::<_, DeviceRequest>(StrictObjects(&mut reader));
    match found {
        Err(error) => errors::of_json(&error.path().to_string(), error.inner()),
        Ok(_) => not_an_object(),
    }
}

fn checked_text(line: &[u8]) -> ServiceResult<&str> {
    if line.len() > LINE_MAX_BYTES {
        return Err(too_long());
    }
    std::str::from_utf8(line).map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the line is not UTF-8"))
}

fn not_an_object() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "a line must be one JSON object and nothing else")
}

fn too_long() -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, format!("a line may have at most {LINE_MAX_BYTES} bytes"))
}

/// Parses a word in the cell of a table as serde would.
fn word<T: serde::de::DeserializeOwned>(field: &str, text: &str) -> ServiceResult<T> {
    use serde::de::value::{Error, StrDeserializer};
    let read = T::deserialize(StrDeserializer::<Error>::new(text));
    read.map_err(|error| errors::of_text(field, &error.to_string()))
}
