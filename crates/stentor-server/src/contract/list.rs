//! Pages of lists.

use std::io;

use serde::{Deserialize, Serialize};
use stentor_core::error::Invalid;
use stentor_core::ports::store::Page;
use utoipa::{IntoParams, ToSchema};

use super::{Problem, ServiceResult};

/// Where a page of a list ends, whatever its limit, and what the replies to all operations of one request may take together: bytes, as
/// JSON writes them.
pub const REPLY_MAX_BYTES: usize = 1_024 * 1_024;
/// Longest page of a list.
const LIMIT_MAX: usize = 1_000;
const LIMIT_DEFAULT: usize = 100;

/// A page of a list in rising order.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// What comes after this; `next` of the piece before.
    pub after: Option<String>,
    /// At most this many, 1 to 1,000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

/// A page of a list that begins with the newest.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// What is older than this; `next` of the piece before.
    pub before: Option<String>,
    /// At most this many, 1 to 1,000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

impl After {
    /// Reads the limit.
    pub fn limit(&self) -> ServiceResult<usize> {
        checked_limit(self.limit)
    }

    /// Reads the cursor as a name.
    pub fn name<T>(&self, read: impl FnOnce(String) -> Result<T, Invalid>) -> ServiceResult<Option<T>> {
        let wrong = |_| Problem::field("after", "is not what `next` gave");
        self.after.clone().map(|text| read(text).map_err(wrong)).transpose()
    }

    /// Reads limit and cursor; the cursor is an id whose number `raw` returns.
    pub fn page(&self, raw: impl FnOnce(&str) -> Option<u64>) -> ServiceResult<Page> {
        Ok(Page { after: cursor("after", self.after.as_deref(), raw)?, limit: checked_limit(self.limit)? })
    }
}

impl Before {
    /// Reads limit and cursor; the cursor is an id whose number `raw` returns.
    pub fn page(&self, raw: impl FnOnce(&str) -> Option<u64>) -> ServiceResult<Page> {
        Ok(Page { after: cursor("before", self.before.as_deref(), raw)?, limit: checked_limit(self.limit)? })
    }
}

/// Checks a limit that was asked for.
fn checked_limit(limit: Option<usize>) -> ServiceResult<usize> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::field("limit", format!("must be 1 to {LIMIT_MAX}"))),
    }
}

/// Reads a cursor that is an id.
fn cursor(
    field: &'static str,
    text: Option<&str>,
    raw: impl FnOnce(&str) -> Option<u64>,
) -> ServiceResult<u64> {
    let Some(text) = text else { return Ok(0) };
    raw(text).ok_or_else(|| Problem::field(field, "is not what `next` gave"))
}

/// Counts what is written, and keeps nothing of it.
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

/// Returns how many bytes something takes as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counter = JsonLength::default();
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // What cannot be written is refused where it is written.
        Err(_) => 0,
    }
}
