//! Pages of lists.

use std::io;

use serde::{Deserialize, Serialize};
use stentor_core::error::Invalid;
use stentor_core::ports::store::Page;
use utoipa::{IntoParams, ToSchema};

use super::{Problem, ServiceResult};

/// Maximum size in bytes, as JSON, of a page of a list, whatever its limit, and of the replies to all operations of one request together.
pub const REPLY_MAX_BYTES: usize = 1_024 * 1_024;
/// Maximum number of entries in a page.
pub const LIMIT_MAX: usize = 1_000;
const LIMIT_DEFAULT: usize = 100;

/// A page of a list in ascending order.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Start after this cursor: `next` of the previous page.
    pub after: Option<String>,
    /// Maximum number of entries, 1 to 1,000; 100 when absent.
    pub limit: Option<usize>,
}

/// A page of a list in descending order, newest first.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// Only entries older than this cursor: `next` of the previous page.
    pub before: Option<String>,
    /// Maximum number of entries, 1 to 1,000; 100 when absent.
    pub limit: Option<usize>,
}

impl After {
    /// Returns the limit, or its default.
    pub fn limit(&self) -> ServiceResult<usize> {
        checked_limit(self.limit)
    }

    /// Parses the cursor as a name.
    pub fn name<T>(&self, read: impl FnOnce(String) -> Result<T, Invalid>) -> ServiceResult<Option<T>> {
        let wrong = |_| Problem::field("after", "is not a value of `next`");
        self.after.clone().map(|text| read(text).map_err(wrong)).transpose()
    }

    /// Parses limit and cursor. The cursor is an id; `raw` returns its number.
    pub fn page(&self, raw: impl FnOnce(&str) -> Option<u64>) -> ServiceResult<Page> {
        Ok(Page { after: cursor("after", self.after.as_deref(), raw)?, limit: checked_limit(self.limit)? })
    }
}

impl Before {
    /// Parses limit and cursor. The cursor is an id; `raw` returns its number.
    pub fn page(&self, raw: impl FnOnce(&str) -> Option<u64>) -> ServiceResult<Page> {
        Ok(Page { after: cursor("before", self.before.as_deref(), raw)?, limit: checked_limit(self.limit)? })
    }
}

/// Checks a requested limit.
fn checked_limit(limit: Option<usize>) -> ServiceResult<usize> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::field("limit", format!("must be 1 to {LIMIT_MAX}"))),
    }
}

/// Parses a cursor that is an id.
fn cursor(
    field: &'static str,
    text: Option<&str>,
    raw: impl FnOnce(&str) -> Option<u64>,
) -> ServiceResult<u64> {
    let Some(text) = text else { return Ok(0) };
    raw(text).ok_or_else(|| Problem::field(field, "is not a value of `next`"))
}

/// A writer that counts bytes and discards them.
#[derive(Default)]
struct JsonLength(usize);

impl io::Write for JsonLength {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the size of a value as JSON, in bytes.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counter = JsonLength::default();
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // A value that cannot be serialized fails where it is written.
        Err(_) => 0,
    }
}
