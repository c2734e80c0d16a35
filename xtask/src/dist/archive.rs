//! The folder beside the binary: the binary's descriptions for tools, and the clients with their generated half.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::codegen;
use crate::workspace::Workspace;

/// The clients that are made from the OpenAPI description.
const CLIENTS: [&str; 2] = ["clients/python/", "clients/typescript/"];

/// Fills the folder, and returns its path. Files of an earlier run are removed.
pub(super) fn write(workspace: &Workspace, binary: &Path) -> anyhow::Result<PathBuf> {
    let folder = binary.with_file_name("archive");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    codegen::write_descriptions(binary, &folder.join("descriptions"))?;
    codegen::write_clients(workspace)?;
    copy(&workspace.root, &client_files(&workspace.tracked_files()?), &folder)?;
    Ok(folder)
}

/// Lists the files of the clients: those that git keeps, and those that are generated.
pub(super) fn client_files(tracked: &[String]) -> Vec<String> {
    let client_sources = tracked.iter().filter(|path| CLIENTS.iter().any(|client| path.starts_with(client)));
    client_sources.cloned().chain(codegen::client_paths().map(str::to_owned)).collect()
}

/// Copies files to the same places below another folder.
pub(super) fn copy(from: &Path, files: &[String], to: &Path) -> anyhow::Result<()> {
    for file in files {
        let target = to.join(file);
        std::fs::create_dir_all(target.parent().context("a file is in a folder")?)?;
        std::fs::copy(from.join(file), &target).with_context(|| file.clone())?;
    }
    Ok(())
}
