//! Records as lines of a file.

use super::{ForkRecord, RecordError, SCHEMA};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The longest line that is read.
pub const LINE_MAX_BYTES: usize = 4 << 20;
/// The file of records in the directory of a run.
pub const RECORDS: &str = "records.jsonl";
/// The same for a study of campaigns.
pub const CAMPAIGNS: &str = "scenarios.ndjson";

/// Appends records to a file; each is on the disk before the next fork begins.
pub struct RecordWriter {
    path: PathBuf,
    file: File,
}

impl RecordWriter {
    /// Opens a file to append to. A last line without an end, left by an interruption, is cut off.
    pub fn append(path: &Path) -> Result<Self, RecordError> {
        let wrong = |source| RecordError::Io { path: path.display().to_string(), source };
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(wrong)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(wrong)?;
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a record and waits until it is on the disk.
    pub fn write(&mut self, record: &ForkRecord) -> Result<(), RecordError> {
        let wrong = |source| RecordError::Io { path: self.path.display().to_string(), source };
        let mut line = serde_json::to_vec(record).map_err(|error| wrong(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(wrong)?;
        self.file.sync_data().map_err(wrong)
    }
}

/// Returns the file of records of a run's directory; `None` where there is none.
#[must_use]
pub fn file_of(directory: &Path) -> Option<PathBuf> {
    [RECORDS, CAMPAIGNS].map(|name| directory.join(name)).into_iter().find(|path| path.is_file())
}

/// Reads the records of a run's directory.
pub fn read_directory(directory: &Path) -> Result<Vec<ForkRecord>, RecordError> {
    read(&file_of(directory).unwrap_or_else(|| directory.join(RECORDS)))
}

/// Reads a file of records. A last line without an end is left out: the fork was interrupted.
pub fn read(path: &Path) -> Result<Vec<ForkRecord>, RecordError> {
    let name = path.display().to_string();
    let wrong = |source| RecordError::Io { path: name.clone(), source };
    let mut lines = BufReader::new(File::open(path).map_err(wrong)?);
    let mut records = Vec::new();
    for line in 1.. {
        let mut text = Vec::new();
        let mut limited = (&mut lines).take(LINE_MAX_BYTES as u64 + 1);
        let read = limited.read_until(b'\n', &mut text).map_err(wrong)?;
        if read > LINE_MAX_BYTES {
            return Err(RecordError::TooLong { path: name, line });
        }
        if text.last() != Some(&b'\n') {
            break;
        }
        records.push(parse(&text, &name, line)?);
    }
    Ok(records)
}

fn parse(text: &[u8], path: &str, line: usize) -> Result<ForkRecord, RecordError> {
    let record: ForkRecord = serde_json::from_slice(text).map_err(|source| RecordError::Line {
        path: path.to_owned(),
        line,
        source,
    })?;
    if record.schema != SCHEMA {
        let schema = record.schema.chars().take(80).collect();
        return Err(RecordError::Schema { path: path.to_owned(), line, schema });
    }
    Ok(record)
}
