//! The licences of everything that is linked into a binary, in one text: most of them ask that their text comes with the binary.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use cargo_metadata::Package;

use super::{Arch, PackedFile, Release, bill};

/// Beginnings of the names of files with licences, in lower case.
const NAMES: [&str; 5] = ["licence", "license", "copying", "copyright", "notice"];
/// Bytes of a text; no licence has as many.
const TEXT_MAX_BYTES: u64 = 256 * 1024;

/// Writes the texts, each once, under the packages that have it.
pub(super) fn write(release: &Release<'_>, arch: Arch, packages: &[Package]) -> anyhow::Result<PackedFile> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let foreign = || packages.iter().filter(|package| package.source.is_some());
    for package in foreign() {
        let name = format!("{} {}", package.name, package.version);
        for text in texts(bill::folder(package).context("a manifest has a folder")?)? {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    ensure!(!by_text.is_empty(), "no package has a licence: cargo has fetched none");
    let mut list = format!("Packages that are part of stentor {}, with their licences.\n\n", release.version);
    for package in foreign() {
        let licence = package.license.as_deref().unwrap_or("see its text");
        list.push_str(&format!("{} {}: {licence}\n", package.name, package.version));
    }
    for (text, packages) in &by_text {
        let line = "-".repeat(80);
        list.push_str(&format!("\n{line}\n{}\n{line}\n\n{}\n", packages.join(", "), text.trim_end()));
    }
    let path =
        release.folder.join(format!("stentor-{}-linux-{}.licences.txt", release.version, arch.debian()));
    std::fs::write(&path, list)?;
    Ok(PackedFile { path, checked_by: Vec::new() })
}

/// Reads the licences of one package, in the order of their names.
fn texts(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_text = entry.metadata()?.is_file() && entry.metadata()?.len() <= TEXT_MAX_BYTES;
        if is_text && NAMES.iter().any(|beginning| name.starts_with(beginning)) {
            files.push(entry.path());
        }
    }
    files.sort();
    let text =
        |file: &std::path::PathBuf| anyhow::Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned());
    files.iter().map(text).collect()
}
