//! The directory of a store or queue that no later process opens.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use stentor_core::ports::store::StoreError;
use tempfile::TempDir;

/// Creates a directory that only its owner may read.
pub(super) fn folder() -> Result<TempDir, StoreError> {
    let mut builder = tempfile::Builder::new();
    let created = builder.prefix("stentor-").permissions(Permissions::from_mode(0o700)).tempdir();
    created.map_err(|error| StoreError::Unavailable(format!("no temporary directory: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_user_may_look_into_a_temporary_directory() {
        let folder = folder().expect("a directory");
        let mode = folder.path().metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
