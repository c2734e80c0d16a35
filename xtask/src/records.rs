//! `cargo xtask records`: brings the records of the studies, which a clone without history does not have, into `docs/studies`.
//!
//! A list in git names each file with the id of its content. The contents are part of the history, which is fetched if the clone is
//! shallow.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

use crate::workspace::Workspace;

/// The list: on each line the id of a content, a space, and the path of the file.
const LIST: &str = "docs/studies/records.txt";

/// A file of records.
#[derive(Debug, PartialEq, Eq)]
struct KeptFile {
    /// The id that git gives to the content.
    id: String,
    /// The place, from the root.
    path: String,
}

/// Writes every file of the list that is missing or has another content; returns true if all are present.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let list = std::fs::read_to_string(workspace.root.join(LIST)).context(LIST)?;
    let files = files(&list)?;
    let brought = bring(&workspace.root, &files)?;
    println!("records: {} files, {brought} of them written now", files.len());
    Ok(true)
}

/// Reads the list.
fn files(list: &str) -> anyhow::Result<Vec<KeptFile>> {
    let file = |line: &str| {
        let (id, path) = line.split_once(' ').with_context(|| format!("{LIST}: no path in {line:?}"))?;
        ensure!(!path.split('/').any(|part| part == ".."), "{LIST}: {path} leads elsewhere");
        Ok(KeptFile { id: id.to_owned(), path: path.to_owned() })
    };
    list.lines().map(file).collect()
}

/// Writes the files that differ from the list, and returns their number.
fn bring(root: &Path, files: &[KeptFile]) -> anyhow::Result<usize> {
    let mut missing = Vec::new();
    for file in files {
        if !is_there(root, file)? {
            missing.push(file);
        }
    }
    let mut is_known = true;
    for file in &missing {
        is_known &= git(root, &["cat-file", "-e", &file.id])?.status.success();
    }
    if !is_known {
        fetch(root)?;
    }
    for file in &missing {
        let content = git(root, &["cat-file", "blob", &file.id])?;
        ensure!(content.status.success(), "{}: the history does not have this content", file.path);
        let path = root.join(&file.path);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(&path, content.stdout).with_context(|| file.path.clone())?;
    }
    Ok(missing.len())
}

fn is_there(root: &Path, file: &KeptFile) -> anyhow::Result<bool> {
    if !root.join(&file.path).is_file() {
        return Ok(false);
    }
    let id = git(root, &["hash-object", "--no-filters", &file.path])?;
    Ok(String::from_utf8_lossy(&id.stdout).trim() == file.id)
}

/// Fetches the history of a shallow clone.
fn fetch(root: &Path) -> anyhow::Result<()> {
    let shallow = git(root, &["rev-parse", "--is-shallow-repository"])?;
    if String::from_utf8_lossy(&shallow.stdout).trim() != "true" {
        return Ok(());
    }
    let output = git(root, &["fetch", "--quiet", "--unshallow", "origin"])?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("the records are not here, and the history cannot be fetched: {}", why.trim());
    }
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    output.context("git could not be started: is it installed?")
}

#[cfg(test)]
mod tests;
