//! `cargo xtask package`: the files of a release in target/package: static binaries, and from each a deb, images and a bill of materials,
//! and the packages of the clients. The tools of this machine judge each file, and the report names them.
//!
//! Two builds of one commit are equal to the bit: every date is the commit's or a constant, and paths of this machine are replaced.

mod arch;
mod bill;
mod binary;
mod clients;
mod deb;
mod elf;
mod image;
mod judges;
mod licences;
mod tool;
mod trial;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

pub(crate) use self::arch::Arch;
use self::tool::Tool;
use crate::codegen;
use crate::workspace::Workspace;

/// The wishes of the caller.
pub(crate) struct PackageRequest {
    /// Processors to build for.
    pub(crate) archs: Vec<Arch>,
    /// Binaries that are packed in place of a build.
    pub(crate) binaries: Vec<PathBuf>,
    pub(crate) jobs: Option<u32>,
    pub(crate) json: bool,
}

/// What all files of a release have alike.
struct Release<'a> {
    workspace: &'a Workspace,
    version: String,
    /// Time of the commit, in seconds since 1970.
    epoch: String,
    /// The folder of the finished files.
    folder: PathBuf,
    /// The folder of everything between.
    scratch: PathBuf,
}

/// A finished file.
#[derive(Debug, PartialEq, Eq)]
struct PackedFile {
    path: PathBuf,
    /// The judges that found nothing.
    checked_by: Vec<&'static str>,
}

/// Makes all files; the first failure is the error.
pub(crate) fn run(workspace: &Workspace, request: &PackageRequest) -> anyhow::Result<bool> {
    let release = Release::new(workspace)?;
    let mut files = Vec::new();
    for binary in binary::all(&release, request)? {
        if binary.arch.is_native() {
            files.push(descriptions(&release, &binary.file.path)?);
        }
        let (bill, parts) = bill::write(&release, binary.arch)?;
        let licences = licences::write(&release, binary.arch, &parts)?;
        files.push(deb::write(&release, &binary, &licences)?);
        files.extend(image::write(&release, &binary, &licences)?);
        files.extend([binary.file, bill, licences]);
    }
    files.extend(clients::write(&release)?);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let sums = sums(&files)?;
    let list = release.folder.join("SHA256SUMS");
    std::fs::write(&list, lines(&sums))?;
    tool::note(&format!("sums in {}", list.display()));
    print!("{}", if request.json { format!("{}\n", report(&sums)) } else { table(&sums) });
    Ok(true)
}

impl<'a> Release<'a> {
    /// Begins with empty folders.
    fn new(workspace: &'a Workspace) -> anyhow::Result<Self> {
        let folder = workspace.metadata.target_directory.join("package").into_std_path_buf();
        let scratch = folder.join("scratch");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&scratch)?;
        let package = workspace.metadata.workspace_packages().into_iter().find(|one| one.name == "stentor");
        let version = package.context("there is no package stentor")?.version.to_string();
        let mut git = Tool::new("git", "git");
        let epoch = git.args(["log", "-1", "--format=%ct"]).folder(&workspace.root).output()?;
        Ok(Self { workspace, version, epoch: epoch.trim().to_owned(), folder, scratch })
    }

    /// Returns the time of the commit in a format of `date`.
    fn date(&self, format: &str) -> anyhow::Result<String> {
        let mut date = Tool::new("date", "coreutils");
        let text = date.args(["--utc", &format!("--date=@{}", self.epoch), format]).output()?;
        Ok(text.trim().to_owned())
    }

    /// Returns a tar that depends on names and contents alone. The caller adds mode, owner and files.
    fn tar(&self) -> Tool {
        let mut tar = Tool::new("tar", "tar");
        tar.args(["--format=gnu", "--sort=name", "--numeric-owner", &format!("--mtime=@{}", self.epoch)]);
        tar
    }
}

/// Packs the descriptions that the binary gives of its API, for tools.
fn descriptions(release: &Release<'_>, binary: &Path) -> anyhow::Result<PackedFile> {
    let folder = release.scratch.join("descriptions");
    codegen::write_descriptions(binary, &folder)?;
    let path = release.folder.join(format!("stentor-{}-descriptions.tar", release.version));
    let mut tar = release.tar();
    tar.args(["--create", &format!("--file={}", path.display()), "--owner=0", "--group=0"]);
    tar.args(["--mode=u=rwX,go=rX", "descriptions"]).folder(&release.scratch).output()?;
    Ok(PackedFile { path, checked_by: Vec::new() })
}

/// A finished file with its size and sum.
struct SummedFile<'a> {
    file: &'a PackedFile,
    bytes: u64,
    sha256: String,
}

fn sums(files: &[PackedFile]) -> anyhow::Result<Vec<SummedFile<'_>>> {
    files.iter().map(SummedFile::of).collect()
}

impl<'a> SummedFile<'a> {
    fn of(file: &'a PackedFile) -> anyhow::Result<Self> {
        let path = &file.path;
        let bytes = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
        ensure!(bytes > 0, "{} is empty", path.display());
        Ok(Self { file, bytes, sha256: tool::sha256(path)? })
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The lines that `sha256sum --check` reads.
fn lines(sums: &[SummedFile<'_>]) -> String {
    sums.iter().map(|sum| format!("{}  {}\n", sum.sha256, name(&sum.file.path))).collect()
}

fn report(sums: &[SummedFile<'_>]) -> Value {
    let file = |sum: &SummedFile<'_>| {
        let PackedFile { path, checked_by } = sum.file;
        json!({ "path": path, "bytes": sum.bytes, "sha256": sum.sha256, "checked_by": checked_by })
    };
    json!({ "files": sums.iter().map(file).collect::<Vec<_>>() })
}

fn table(sums: &[SummedFile<'_>]) -> String {
    let mut text = String::new();
    for sum in sums {
        let judges = match sum.file.checked_by.as_slice() {
            [] => "nobody".to_owned(),
            judges => judges.join(", "),
        };
        let _ = writeln!(text, "{:>12} bytes  {}  checked by {judges}", sum.bytes, sum.file.path.display());
    }
    text
}

#[cfg(test)]
mod tests;
