//! Programs of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A program to run, and the Debian package that has it.
pub(super) struct Tool {
    command: Command,
    name: String,
    package: &'static str,
}

impl Tool {
    pub(super) fn new(program: &str, package: &'static str) -> Self {
        let mut command = Command::new(program);
        command.stdin(std::process::Stdio::null());
        Self { command, name: program.to_owned(), package }
    }

    pub(super) fn args<I: AsRef<std::ffi::OsStr>>(
        &mut self,
        arguments: impl IntoIterator<Item = I>,
    ) -> &mut Self {
        self.command.args(arguments);
        self
    }

    pub(super) fn env(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn without_env(&mut self, name: &str) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    pub(super) fn folder(&mut self, folder: &Path) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it with its output on the terminal.
    pub(super) fn show(&mut self) -> anyhow::Result<()> {
        // The standard output is for the report.
        self.command.stdout(std::io::stderr());
        let status = self.command.status().with_context(|| self.missing())?;
        ensure!(status.success(), "{} failed ({status})", self.name);
        Ok(())
    }

    /// Runs it and returns its standard output.
    pub(super) fn output(&mut self) -> anyhow::Result<String> {
        let output = self.command.output().with_context(|| self.missing())?;
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{} failed ({}):\n{text}\n{errors}", self.name, output.status);
        Ok(text.into_owned())
    }

    fn missing(&self) -> String {
        format!("{} cannot be started: `apt-get install {}`", self.name, self.package)
    }
}

/// Returns true if a program is on the path.
pub(super) fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Prints a line about the work beside the report.
#[expect(clippy::print_stderr, reason = "the standard output is for the report")]
pub(super) fn note(line: &str) {
    eprintln!("package: {line}");
}

pub(super) fn sha256(path: &Path) -> anyhow::Result<String> {
    let text = Tool::new("sha256sum", "coreutils").args([path]).output()?;
    text.split_whitespace().next().map(str::to_owned).context("sha256sum printed nothing")
}

/// Replaces a folder by an empty one.
pub(super) fn empty(folder: PathBuf) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Copies a file, and makes its folder.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
    std::fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}
