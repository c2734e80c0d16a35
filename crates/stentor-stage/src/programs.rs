//! The two programs: the product, which plays servers and emulators, and the laboratory beside it.

use crate::failure::{CommandFailure, Exit};
use anyhow::Context;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program that this process runs.
static THIS: OnceLock<Program> = OnceLock::new();

/// One of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `stentor`.
    Product,
    /// `stentor-lab`.
    Laboratory,
}

impl Program {
    /// Declares which program this process runs. Without a declaration it is the product.
    pub fn declare(self) {
        // A second declaration in one process changes nothing.
        let _ = THIS.set(self);
    }

    /// Returns the path of this program: of the running file, of its neighbour, or of one on PATH.
    pub fn find(self) -> anyhow::Result<PathBuf> {
        let running = std::env::current_exe().context("this program cannot find itself")?;
        if self == THIS.get().copied().unwrap_or(Self::Product) {
            return Ok(running);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.find_beside(&running, &path).ok_or_else(|| self.missing(&running).into())
    }

    fn find_beside(self, running: &Path, path: &OsStr) -> Option<PathBuf> {
        let folders = running.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(path));
        folders.map(|folder| folder.join(self.name())).find(|program| program.is_file())
    }

    fn missing(self, running: &Path) -> CommandFailure {
        let (name, package) = (self.name(), self.package());
        let folder = running.parent().unwrap_or(running).display();
        let sentence = format!(
            "`{name}` is neither in {folder} nor on PATH: build it with `cargo build --release -p {package}`, or copy it there"
        );
        CommandFailure::new(Exit::NotTestable, sentence)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Product => "stentor",
            Self::Laboratory => "stentor-lab",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Product => "stentor",
            Self::Laboratory => "stentor-lab-cli",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_found_beside_the_running_file_before_the_folders_of_path() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [own, first, second] = folders.each_ref().map(tempfile::TempDir::path);
        let (running, path) = (own.join("stentor"), std::env::join_paths([first, second]).unwrap());
        let find = || Program::Laboratory.find_beside(&running, &path);
        assert_eq!(find(), None);
        for folder in [second, first, own] {
            let program = folder.join("stentor-lab");
            std::fs::write(&program, "").unwrap();
            assert_eq!(find(), Some(program));
        }
    }

    #[test]
    fn a_missing_neighbour_names_the_folder_and_the_command_that_builds_it() {
        let sentence = Program::Laboratory.missing(Path::new("/opt/bin/stentor")).to_string();
        assert!(sentence.contains("/opt/bin ") && sentence.contains("-p stentor-lab-cli"), "{sentence}");
    }
}
