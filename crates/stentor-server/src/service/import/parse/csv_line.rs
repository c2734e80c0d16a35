//! A parser of single CSV lines, so that a stray quote affects only its own line.

use std::borrow::Cow;

use stentor_core::device::{DEVICE_TEXTS_COUNT, with_device_texts};

use super::word;
use crate::contract::devices::DeviceRequest;
use crate::decode::errors;
use crate::service::{ErrorCode, Problem, ServiceResult};

/// Names of columns, in the order of the fields.
const NAMES: [&str; 7 + DEVICE_TEXTS_COUNT] =
    with_device_texts(&["platform", "provider", "token", "former_token", "user"], &["tags", "topics"]);
const PLATFORM: usize = 0;
const PROVIDER: usize = 1;
const TOKEN: usize = 2;
/// Separates tags and topics within a cell.
const LIST_SEPARATOR: char = ';';

/// The field of each column.
#[derive(Debug)]
pub(super) struct Columns {
    fields: Vec<usize>,
}

impl Columns {
    /// Parses the header line.
    pub(super) fn read(line: &str) -> ServiceResult<Self> {
        let mut fields = Vec::new();
        for name in cells(line)? {
            let name = name.trim().to_ascii_lowercase();
            let field = NAMES.iter().position(|known| *known == name);
            let field = field.ok_or_else(|| unknown_column(&name))?;
            if fields.contains(&field) {
                return Err(Problem::field("header", format!("the column `{name}` occurs twice")));
            }
            fields.push(field);
        }
        for needed in [PLATFORM, TOKEN] {
            if !fields.contains(&needed) {
                let problem = format!("the column `{}` is missing", NAMES[needed]);
                return Err(Problem::field("header", problem));
            }
        }
        Ok(Self { fields })
    }

    /// Parses a line.
    pub(super) fn device(&self, line: &str) -> ServiceResult<DeviceRequest> {
        let cells = cells(line)?;
        if cells.len() != self.fields.len() {
            let detail = format!("{} cells where the header has {}", cells.len(), self.fields.len());
            return Err(Problem::new(ErrorCode::InvalidRequest, detail));
        }
        let mut found: [Option<Cow<'_, str>>; NAMES.len()] = Default::default();
        for (field, cell) in self.fields.iter().zip(cells) {
            found[*field] = Some(cell).filter(|cell| !cell.is_empty());
        }
        let [platform, provider, token, former_token, user, texts @ .., tags, topics] = found;
        let platform = platform.ok_or_else(|| Problem::field(NAMES[PLATFORM], "is missing"))?;
        let platform = word(NAMES[PLATFORM], &platform)?;
        let provider = provider.map(|text| word(NAMES[PROVIDER], &text)).transpose()?;
        let token = token.ok_or_else(|| Problem::field(NAMES[TOKEN], "is missing"))?.into_owned();
        let mut device = DeviceRequest::new(platform, token);
        device.provider = provider;
        device.former_token = former_token.map(Cow::into_owned);
        device.user = user.map(Cow::into_owned);
        device.set_texts(texts.map(|text| text.map(Cow::into_owned)));
        (device.tags, device.topics) = (list(tags), list(topics));
        Ok(device)
    }
}

/// Splits a line; only lines with quotes need the full grammar.
fn cells(line: &str) -> ServiceResult<Vec<Cow<'_, str>>> {
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    let mut record = csv::StringRecord::new();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    let read = reader.read_record(&mut record).unwrap_or(false);
    // The reader accepts an unclosed quote as text to the end of the line.
    if !read || line.matches('"').count() % 2 == 1 {
        return Err(Problem::new(ErrorCode::InvalidRequest, "the quotes of the line do not match"));
    }
    Ok(record.iter().map(|cell| Cow::Owned(cell.to_owned())).collect())
}

fn list(cell: Option<Cow<'_, str>>) -> Vec<String> {
    let cell = cell.unwrap_or_default();
    let parts = cell.split(LIST_SEPARATOR).map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn unknown_column(name: &str) -> Problem {
    let problem = Problem::field("header", format!("there is no column `{name}`"));
    match errors::nearest(name, NAMES) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None => problem.with_hint(format!("known are {}", NAMES.join(", "))),
    }
}
