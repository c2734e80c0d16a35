//! The static binaries: built, judged by their headers, and tried.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::tool::{Tool, note};
use super::{Arch, PackageRequest, PackedFile, Release, elf, tool, trial};

/// A finished binary.
pub(super) struct StaticBinary {
    pub(super) arch: Arch,
    pub(super) file: PackedFile,
}

/// Makes the binaries of a release.
pub(super) fn all(release: &Release<'_>, request: &PackageRequest) -> anyhow::Result<Vec<StaticBinary>> {
    let built = match request.binaries.as_slice() {
        [] => {
            let compiler = Compiler::find(release, &request.archs)?;
            let build = |arch: &Arch| compiler.build(release, *arch, request.jobs);
            request.archs.iter().map(build).collect::<anyhow::Result<Vec<PathBuf>>>()?
        }
        binaries => binaries.to_vec(),
    };
    built.iter().map(|binary| pack(release, binary)).collect()
}

/// Cargo with a C compiler for all processors (SQLite, aws-lc and mimalloc are C).
struct Compiler {
    /// The folder of cargo-zigbuild, and of the Python that has Zig.
    tools: PathBuf,
}

impl Compiler {
    /// Fails if a tool is missing, before a build of ten minutes.
    fn find(release: &Release<'_>, archs: &[Arch]) -> anyhow::Result<Self> {
        let target = &release.workspace.metadata.target_directory;
        let tools = target.join("packaging/venv/bin").into_std_path_buf();
        ensure!(tools.join("cargo-zigbuild").is_file(), "the C compiler is missing: packaging/install");
        for arch in archs {
            let mut rustc = Tool::new("rustc", "rustup");
            let libraries = rustc.args(["--print", "target-libdir", "--target", arch.target()]).output()?;
            let is_there = Path::new(libraries.trim()).is_dir();
            ensure!(is_there, "Rust's library for {} is missing: packaging/install", arch.target());
        }
        Ok(Self { tools })
    }

    fn build(&self, release: &Release<'_>, arch: Arch, jobs: Option<u32>) -> anyhow::Result<PathBuf> {
        let target = release.workspace.metadata.target_directory.as_std_path();
        let places = places(&release.workspace.root, target)?;
        let rust = places.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
        let c = places.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
        let path = std::env::join_paths([&self.tools].into_iter().cloned().chain(path_folders()))?;
        let mut cargo = Tool::new("cargo-zigbuild", "python3-venv");
        cargo.args(["zigbuild", "--locked", "--profile", "dist", "--target", arch.target()]);
        cargo.args(["--package", "stentor", "--features", "stentor/nats"]);
        cargo.args(jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
        // Line tables are for profiles. Flags of the caller are for another target.
        cargo.env("CARGO_PROFILE_DIST_STRIP", "true").without_env("RUSTFLAGS").env("PATH", path);
        cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.collect::<Vec<_>>().join("\u{1f}"));
        cargo.env(&format!("CFLAGS_{}", arch.target().replace('-', "_")), c.collect::<Vec<_>>().join(" "));
        // Dependencies write it into the binary. It is the same for each commit, because cargo keeps what was built with another one.
        cargo.env("SOURCE_DATE_EPOCH", "0").folder(&release.workspace.root).show()?;
        Ok(target.join(arch.target()).join("dist/stentor"))
    }
}

fn path_folders() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Lists the folders of this machine that a compiler writes into binaries, each with its replacement; the last match counts.
fn places(root: &Path, target: &Path) -> anyhow::Result<[(String, &'static str); 3]> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("there is no home")?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not text");
    Ok([(text(root)?, "/stentor"), (text(target)?, "/stentor/target"), (text(&home)?, "/cargo")])
}

/// Judges and tries a binary, and copies it to the finished files.
fn pack(release: &Release<'_>, binary: &Path) -> anyhow::Result<StaticBinary> {
    let bytes = std::fs::read(binary).with_context(|| binary.display().to_string())?;
    let judged = || format!("{} cannot be judged", binary.display());
    let needs = elf::needs(&bytes).with_context(judged)?;
    ensure!(needs.is_empty(), "{} is not static: it needs {}", binary.display(), needs.join(", "));
    let arch = Arch::of_elf_machine(elf::machine(&bytes).with_context(judged)?);
    let arch = arch.with_context(|| format!("{} is for another processor", binary.display()))?;
    note(&format!("{}: static: no interpreter, no shared library", arch.target()));
    let mut checked_by = vec!["elf"];
    match trial::Start::find(arch) {
        Some(start) => checked_by.extend(trial::run(start, binary)?),
        None => note(&format!("{} was not run: `apt-get install qemu-user-static`", arch.target())),
    }
    let path = release.folder.join(format!("stentor-{}-linux-{}", release.version, arch.debian()));
    tool::copy(binary, &path)?;
    Ok(StaticBinary { arch, file: PackedFile { path, checked_by } })
}
