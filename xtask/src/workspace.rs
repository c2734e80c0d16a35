//! The project for the rules: its packages, its Rust files, its tracked files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use cargo_metadata::{Metadata, MetadataCommand};

/// The folders of a package that may hold Rust files, besides its root (for a build script).
const SOURCE_FOLDERS: [&str; 4] = ["src", "tests", "benches", "examples"];

/// The checked-out project.
pub(crate) struct Workspace {
    /// The root folder, absolute.
    pub(crate) root: PathBuf,
    /// Cargo's metadata of the workspace members.
    pub(crate) metadata: Metadata,
}

/// A Rust file that belongs to a package, read but not parsed yet.
pub(crate) struct SourceText {
    /// The package's name.
    pub(crate) package: String,
    /// The path relative to the root.
    pub(crate) path: String,
    /// The content.
    pub(crate) text: String,
}

impl Workspace {
    /// Reads the metadata from cargo, of the members only, so that nothing is downloaded.
    pub(crate) fn load() -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata failed")?;
        let root = metadata.workspace_root.clone().into_std_path_buf();
        Ok(Self { root, metadata })
    }

    /// Reads every Rust file of every member.
    pub(crate) fn sources(&self) -> anyhow::Result<Vec<SourceText>> {
        let mut sources = Vec::new();
        for package in self.metadata.workspace_packages() {
            let home = package.manifest_path.parent().context("a manifest has a folder")?;
            for file in rust_files(home.as_std_path())? {
                let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                sources.push(SourceText {
                    package: package.name.to_string(),
                    path: self.relative(&file),
                    text,
                });
            }
        }
        Ok(sources)
    }

    /// Lists the files that git tracks, relative to the root.
    pub(crate) fn tracked_files(&self) -> anyhow::Result<Vec<String>> {
        let listing = self.output("git", &["ls-files", "-z"])?;
        Ok(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// Lists the names of all packages that a build for this machine compiles.
    pub(crate) fn built_packages(&self) -> anyhow::Result<BTreeSet<String>> {
        let arguments =
            ["tree", "--workspace", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}"];
        let listing = self.output("cargo", &arguments)?;
        Ok(listing.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
    }

    /// Writes a path relative to the root, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    }

    fn output(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(program).args(arguments).current_dir(&self.root).output();
        let output = output.with_context(|| format!("{program} could not be started: is it installed?"))?;
        ensure!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn rust_files(home: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let build_script = home.join("build.rs");
    if build_script.is_file() {
        found.insert(build_script);
    }
    let mut folders: Vec<PathBuf> = SOURCE_FOLDERS.iter().map(|name| home.join(name)).collect();
    folders.retain(|folder| folder.is_dir());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(path);
            }
        }
    }
    Ok(found)
}
