//! The directory of a store or queue that no later process opens.

use stentor_core::ports::store::StoreError;
use tempfile::TempDir;

/// Creates a directory that only its owner may read.
pub(super) fn folder() -> Result<TempDir, StoreError> {
    let created = tempfile::Builder::new().prefix("stentor-").tempdir();
    created.map_err(|error| StoreError::Unavailable(format!("no temporary directory: {error}")))
}
