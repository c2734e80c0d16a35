//! The records of the published runs, which are missing in a clone without history.

use std::io::Write as _;
use std::path::Path;

use crate::record::{ForkRecord, file_of, read_directory};

/// Returns the records of a run in `docs/studies`. Without them the test is skipped, unless `STENTOR_TEST_REQUIRE` lists `records`.
pub(crate) fn kept(study: &str) -> Option<Vec<ForkRecord>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies").join(study);
    if file_of(&directory).is_some() {
        return Some(read_directory(&directory).expect("readable"));
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word.trim() == "records");
    let why = format!("the records of {study} are not here: run `cargo xtask records`");
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE does not allow to skip it)");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    None
}
