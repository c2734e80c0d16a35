//! Files that other processes wait for.

use anyhow::Context;
use std::path::Path;

/// Writes a whole file atomically, so that a waiting reader never sees half of it.
pub fn publish(path: &Path, text: &str) -> anyhow::Result<()> {
    let draft = path.with_extension("draft");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    written.with_context(|| format!("{} cannot be written", path.display()))
}
