//! The test programs of the workspace, as cargo built them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use cargo_metadata::{Artifact, Message, PackageId, TargetKind};

use crate::workspace::Workspace;

/// Builds every program and every test program: tests of one package may start the program of another.
pub(crate) const BUILD: [&str; 3] = ["build", "--workspace", "--all-targets"];
/// Lets clippy compile the workspace, so that one pass lints and builds. `cargo clippy` would check all packages in a pass of its own.
pub(crate) const LINTED: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

/// An executable that has tests of one target.
#[derive(Debug, Clone)]
pub(crate) struct TestProgram {
    /// The package.
    pub(crate) package: String,
    /// The arguments by which cargo runs these tests alone: `-p stentor --test it`.
    pub(crate) selection: String,
    /// The folder of the package, in which its tests run.
    home: PathBuf,
    /// The file to start.
    pub(crate) executable: PathBuf,
}

impl TestProgram {
    /// Prepares to start it as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.home).env("CARGO_MANIFEST_DIR", &self.home);
        command
    }

    /// Returns the paths of its tests.
    pub(crate) fn tests(&self) -> anyhow::Result<Vec<String>> {
        let output = self.command().args(["--list", "--format", "terse"]).output();
        let output = output.with_context(|| self.executable.display().to_string())?;
        ensure!(output.status.success(), "{} lists no tests: {}", self.selection, output.status);
        let listed = String::from_utf8_lossy(&output.stdout);
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Returns the line by which cargo names it.
    pub(crate) fn headline(&self, workspace: &Workspace) -> String {
        format!("     Running {} ({})", self.selection, workspace.relative(&self.executable))
    }
}

/// Lists the test programs from cargo, which builds missing ones.
pub(crate) fn find(workspace: &Workspace) -> anyhow::Result<Vec<TestProgram>> {
    let mut command = Command::new("cargo");
    command.args(BUILD).envs(LINTED).args(["--quiet", "--message-format", "json-render-diagnostics"]);
    let output = command.current_dir(&workspace.root).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "not everything compiles");
    let mut programs = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message? {
            programs.extend(program(workspace, artifact));
        }
    }
    // Cargo names them in the order in which they were built.
    programs.sort_by(|one, other| one.selection.cmp(&other.selection));
    Ok(programs)
}

fn program(workspace: &Workspace, artifact: Artifact) -> Option<TestProgram> {
    let executable = artifact.executable.filter(|_| artifact.profile.test)?.into_std_path_buf();
    let package = package_name(workspace, &artifact.package_id)?;
    let target = &artifact.target;
    let selection = match target.kind.first()? {
        TargetKind::Test => format!("-p {package} --test {}", target.name),
        TargetKind::Bin => format!("-p {package} --bin {}", target.name),
        TargetKind::Example => format!("-p {package} --example {}", target.name),
        _ => format!("-p {package} --lib"),
    };
    let home = artifact.manifest_path.parent()?.as_std_path().to_owned();
    Some(TestProgram { package, selection, home, executable })
}

fn package_name(workspace: &Workspace, id: &PackageId) -> Option<String> {
    let mut packages = workspace.metadata.packages.iter();
    packages.find(|package| package.id == *id).map(|package| package.name.to_string())
}
