//! Records as lines of a file, plain or compressed with zstd.

use super::{ForkRecord, RecordError, SCHEMA};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The maximum length of a line.
pub const LINE_MAX_BYTES: usize = 4 << 20;
/// The file of records in the directory of a run.
pub const RECORDS: &str = "records.jsonl";
/// The same for a study of campaigns.
pub const CAMPAIGNS: &str = "scenarios.ndjson";
/// The additional extension of a compressed record file.
const COMPRESSED_END: &str = "zst";
/// The first bytes of a zstd frame; no line of JSON begins with them.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Appends records to a file; each is synced to disk before the next fork begins.
pub struct RecordWriter {
    path: PathBuf,
    file: File,
}

impl RecordWriter {
    /// Opens a file for appending. An incomplete last line, left by an interruption, is cut off.
    pub fn append(path: &Path) -> Result<Self, RecordError> {
        let wrong = |source| io_error(path, source);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(wrong)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(wrong)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(wrong)?;
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends a record and syncs it to disk.
    pub fn write(&mut self, record: &ForkRecord) -> Result<(), RecordError> {
        let wrong = |source| io_error(&self.path, source);
        let mut line = serde_json::to_vec(record).map_err(|error| wrong(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(wrong)?;
        self.file.sync_data().map_err(wrong)
    }
}

/// Returns the record file in a run's directory, preferring the plain over the compressed one; `None` if there is none.
#[must_use]
pub fn file_of(directory: &Path) -> Option<PathBuf> {
    let plain = [RECORDS, CAMPAIGNS].map(|name| directory.join(name));
    let compressed = plain.each_ref().map(|path| compressed(path));
    plain.into_iter().chain(compressed).find(|path| path.is_file())
}

fn compressed(plain: &Path) -> PathBuf {
    plain.with_added_extension(COMPRESSED_END)
}

/// Decompresses the record file if only its compressed form exists, so that a run can continue.
pub(crate) fn decompress(plain: &Path) -> Result<(), RecordError> {
    let packed = compressed(plain);
    if plain.exists() || !packed.is_file() {
        return Ok(());
    }
    // A partially written file would look like a run that stopped early.
    let half = plain.with_added_extension("part");
    let mut lines = open(&packed).map_err(|source| io_error(&packed, source))?;
    let copied = File::create(&half).and_then(|mut file| std::io::copy(&mut lines, &mut file));
    copied.and_then(|_| std::fs::rename(&half, plain)).map_err(|source| io_error(&half, source))
}

fn io_error(path: &Path, source: std::io::Error) -> RecordError {
    RecordError::Io { path: path.display().to_string(), source }
}

/// Opens a record file; its first bytes show if it is compressed.
fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    if !file.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        return Ok(Box::new(file));
    }
    Ok(Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?)))
}

/// Reads the records of a run's directory.
pub fn read_directory(directory: &Path) -> Result<Vec<ForkRecord>, RecordError> {
    read(&file_of(directory).unwrap_or_else(|| directory.join(RECORDS)))
}

/// Lists the directories of runs within a directory, by name.
pub fn runs_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = paths.filter(|path| path.is_dir() && file_of(path).is_some()).collect();
    runs.sort();
    Ok(runs)
}

/// Joins the records of several runs. Runs of the same settings have the same id, so that each gets its number.
#[must_use]
pub fn joined(runs: Vec<Vec<ForkRecord>>) -> Vec<ForkRecord> {
    let are_several = runs.len() > 1;
    let numbered = runs.into_iter().enumerate().flat_map(|(place, records)| {
        records.into_iter().map(move |mut record| {
            if are_several {
                record.run_id = format!("{} ({})", record.run_id, place + 1);
            }
            record
        })
    });
    numbered.collect()
}

/// Reads a record file, plain or compressed. An incomplete last line is ignored, because its fork was interrupted.
pub fn read(path: &Path) -> Result<Vec<ForkRecord>, RecordError> {
    let name = path.display().to_string();
    let wrong = |source| io_error(path, source);
    let mut lines = open(path).map_err(wrong)?;
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
