//! The folder of an artifact: what is copied into it, and its checksums.

use anyhow::Context;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use stentor_lab::artifact::CrateFile;
use stentor_lab::runner::PLAN;
use stentor_terminal::failure::CommandFailure;

const CHECKSUMS: &str = "SHA256SUMS";
const METADATA: &str = "ro-crate-metadata.json";
/// Folders of a source tree that hold what was built or fetched.
const BUILT: [&str; 4] = ["target", "node_modules", "__pycache__", ".git"];
/// Maximum depth of folders that are copied.
const DEPTH_MAX: usize = 32;
const EXECUTABLE: u32 = 0o755;

/// A folder that is being filled.
pub(super) struct ArtifactFolder {
    top: PathBuf,
    files: Vec<PathBuf>,
}

impl ArtifactFolder {
    /// Creates the folder.
    pub(super) fn create(top: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(top).with_context(|| format!("{} cannot be made", top.display()))?;
        if std::fs::read_dir(top)?.next().is_some() {
            let sentence = format!("{} is not empty: name another folder", top.display());
            return Err(CommandFailure::usage(sentence).into());
        }
        Ok(Self { top: top.to_owned(), files: Vec::new() })
    }

    /// Writes a text.
    pub(super) fn write(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.place(Path::new(name))?;
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Writes a script.
    pub(super) fn write_program(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        self.write(name, text)?;
        Ok(std::fs::set_permissions(self.top.join(name), PermissionsExt::from_mode(EXECUTABLE))?)
    }

    /// Copies a file.
    pub(super) fn copy(&mut self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let path = self.place(to)?;
        std::fs::copy(from, &path).with_context(|| format!("{} cannot be copied", from.display()))?;
        Ok(())
    }

    /// Copies a program.
    pub(super) fn copy_program(&mut self, from: &Path, name: &str) -> anyhow::Result<()> {
        let to = Path::new("bin").join(name);
        self.copy(from, &to)?;
        Ok(std::fs::set_permissions(self.top.join(to), PermissionsExt::from_mode(EXECUTABLE))?)
    }

    /// Copies the files directly in a folder. Folders are left out: among those of a run are the private keys of its TLS.
    pub(super) fn copy_flat(&mut self, from: &Path, to: &str) -> anyhow::Result<()> {
        let files = listed(from)?.into_iter().filter(|path| path.is_file());
        files.into_iter().try_for_each(|file| {
            let name = file.file_name().unwrap_or_default().to_owned();
            self.copy(&file, &Path::new(to).join(name))
        })
    }

    /// Copies a tree without what was built in it.
    pub(super) fn copy_sources(&mut self, from: &Path, to: &str) -> anyhow::Result<()> {
        self.copy_tree(from, Path::new(to), DEPTH_MAX)
    }

    fn copy_tree(&mut self, from: &Path, to: &Path, depth: usize) -> anyhow::Result<()> {
        for path in listed(from)? {
            let name = path.file_name().unwrap_or_default();
            // A link could lead out of the tree.
            let kind = std::fs::symlink_metadata(&path)?.file_type();
            if kind.is_dir() && depth > 0 && !BUILT.iter().any(|built| name == OsStr::new(built)) {
                self.copy_tree(&path, &to.join(name), depth - 1)?;
            } else if kind.is_file() {
                self.copy(&path, &to.join(name))?;
            }
        }
        Ok(())
    }

    /// Packs the sources of the repository that a file is at the top of, at its present commit; returns false if there is none.
    pub(super) fn archive_sources(&mut self, manifest: Option<&Path>) -> anyhow::Result<bool> {
        let Some(top) = manifest.and_then(Path::parent).filter(|top| top.join(".git").exists()) else {
            return Ok(false);
        };
        let archive = std::path::absolute(self.place(Path::new("source.tar.gz"))?)?;
        let mut git = Command::new("git");
        git.arg("-C").arg(top).args(["archive", "--format=tar.gz", "--prefix=stentor/", "HEAD", "-o"]);
        let status = git.arg(&archive).stdin(Stdio::null()).status();
        let is_packed = status.is_ok_and(|status| status.success());
        if !is_packed {
            self.files.pop();
        }
        Ok(is_packed)
    }

    /// Reads the plan of the run; null without one.
    pub(super) fn recorded_plan(&self) -> Value {
        let text = std::fs::read_to_string(self.top.join("run").join(PLAN)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes the description of all files, and then the checksums.
    pub(super) fn finish(mut self, describe: impl FnOnce(&[CrateFile]) -> Value) -> anyhow::Result<()> {
        self.files.sort();
        self.files.dedup();
        let files =
            self.files.iter().map(|file| self.crate_file(file)).collect::<anyhow::Result<Vec<_>>>()?;
        self.write(METADATA, &serde_json::to_string_pretty(&describe(&files))?)?;
        let metadata = self.crate_file(Path::new(METADATA))?;
        let lines = files.iter().chain([&metadata]).map(|file| format!("{}  {}\n", file.sha256, file.path));
        self.write(CHECKSUMS, &lines.collect::<String>())
    }

    fn crate_file(&self, path: &Path) -> anyhow::Result<CrateFile> {
        let (bytes, sha256) = sha256(&self.top.join(path))?;
        Ok(CrateFile { path: path.to_string_lossy().into_owned(), bytes, sha256 })
    }

    /// Notes a file, and returns its place, whose folder exists then.
    fn place(&mut self, file: &Path) -> anyhow::Result<PathBuf> {
        let is_inside = file.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        anyhow::ensure!(is_inside, "{} leads out of the artifact", file.display());
        let path = self.top.join(file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        self.files.push(file.to_owned());
        Ok(path)
    }
}

fn listed(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// Returns the size and the SHA-256 of a file.
fn sha256(path: &Path) -> anyhow::Result<(u64, String)> {
    let mut file = std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut digest = stentor_lab::artifact::Sha256::default();
    let mut part = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut part)?;
        if read == 0 {
            return Ok((bytes, digest.hex()));
        }
        digest.update(&part[..read]);
        bytes += read as u64;
    }
}
