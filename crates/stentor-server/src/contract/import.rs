//! Import of devices.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ServiceResult;

/// Options of an import.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportQuery {
    /// `ndjson` or `csv`; follows the content type when absent.
    pub(crate) format: Option<String>,
    /// Check all lines, store nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Lines of an import as a stream of byte chunks of any size.
pub type Lines = BoxStream<'static, ServiceResult<Bytes>>;

/// Devices to import.
pub struct ImportRequest {
    /// Format, and whether this is a dry run.
    pub(crate) query: ImportQuery,
    /// The lines, as a stream.
    pub(crate) lines: Lines,
}

/// Error in one line.
#[derive(Serialize, ToSchema)]
pub struct LineError {
    /// Line number in the body, from 1.
    pub(crate) line: u64,
    pub(crate) code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    pub(crate) detail: String,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// Result of an import.
#[derive(Serialize, ToSchema)]
pub struct ImportResult {
    /// Lines with a device (blank lines and the CSV header are not counted).
    pub(crate) lines: u64,
    /// Valid lines.
    pub(crate) valid: u64,
    /// Devices created.
    pub(crate) created: u64,
    /// Devices that already existed.
    pub(crate) updated: u64,
    /// Of these, devices that have moved from their `former_token` to a new one.
    pub(crate) renewed: u64,
    /// Of these, devices that have become one with the device of their `former_token`.
    pub(crate) merged: u64,
    /// Invalid lines.
    pub(crate) failed: u64,
    /// True if nothing was stored because of `dry_run`.
    pub(crate) dry_run: bool,
    /// The first 1,000 errors.
    pub(crate) errors: Vec<LineError>,
    /// True if there were more errors.
    pub(crate) errors_truncated: bool,
}
