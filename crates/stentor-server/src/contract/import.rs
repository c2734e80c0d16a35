//! Import of devices.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ServiceResult;

/// How to import.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportQuery {
    /// `ndjson` or `csv`; decided by the content type when absent.
    pub(crate) format: Option<String>,
    /// Check everything, keep nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Lines of an import as they come: pieces of any size.
pub type Lines = BoxStream<'static, ServiceResult<Bytes>>;

/// Devices to import.
pub struct ImportRequest {
    /// The format, and whether anything is kept.
    pub(crate) query: ImportQuery,
    /// The lines, in pieces.
    pub(crate) lines: Lines,
}

/// Why a line was refused.
#[derive(Serialize, ToSchema)]
pub struct LineError {
    /// Line of the body, from 1.
    pub(crate) line: u64,
    pub(crate) code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    pub(crate) detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// What an import came to.
#[derive(Serialize, ToSchema)]
pub struct ImportResult {
    /// Lines that should hold a device (blank lines and the CSV header do not).
    pub(crate) lines: u64,
    /// Lines without fault.
    pub(crate) valid: u64,
    /// Devices made known.
    pub(crate) created: u64,
    /// Devices known before.
    pub(crate) updated: u64,
    /// Lines refused.
    pub(crate) failed: u64,
    /// Whether nothing was kept on purpose.
    pub(crate) dry_run: bool,
    /// The first 1,000 refusals.
    pub(crate) errors: Vec<LineError>,
    /// Whether there were more.
    pub(crate) errors_truncated: bool,
}
