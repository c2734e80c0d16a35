//! `cargo xtask codegen`: the references under docs/ that the binary itself writes, and the clients made from one of them.

mod clients;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// A generated file and the command that writes it.
struct Reference {
    path: &'static str,
    arguments: &'static [&'static str],
}

const REFERENCES: &[Reference] = &[
    Reference { path: "docs/openapi.json", arguments: &["openapi"] },
    Reference { path: "docs/stentor.wsdl", arguments: &["contract", "wsdl"] },
    Reference { path: "docs/stentor.wadl", arguments: &["contract", "wadl"] },
    Reference { path: "docs/stentor-rest.wsdl2", arguments: &["contract", "wsdl2"] },
    Reference { path: "docs/config.default.toml", arguments: &["config", "default"] },
    Reference {
        path: "crates/stentor-server/src/contract/description/numbers.toml",
        arguments: &["contract", "numbers"],
    },
    Reference { path: "docs/faces/socket.md", arguments: &["contract", "socket"] },
    Reference { path: "docs/faces/xmlrpc-methods.md", arguments: &["contract", "xmlrpc"] },
    Reference { path: "docs/stentor.proto", arguments: &["contract", "proto"] },
    Reference { path: "docs/errors.md", arguments: &["errors", "--markdown"] },
    Reference { path: "docs/commands.md", arguments: &["commands", "--markdown"] },
];

/// Writes all references, or with `check` compares them; returns whether all is well.
pub(crate) fn run(workspace: &Workspace, is_check: bool, binary: Option<PathBuf>) -> anyhow::Result<bool> {
    if is_check {
        return Ok(check(workspace, binary)?.is_empty());
    }
    let texts = texts(workspace, binary)?;
    for text in &texts {
        write(&workspace.root.join(text.path), &text.generated).context(text.path)?;
        println!("wrote {}", text.path);
    }
    Ok(true)
}

/// Prints and returns a sentence about each reference that is not what would be written.
pub(crate) fn check(workspace: &Workspace, binary: Option<PathBuf>) -> anyhow::Result<Vec<String>> {
    let texts = texts(workspace, binary)?;
    let problems: Vec<String> = texts.iter().filter_map(|text| text.problem(&workspace.root)).collect();
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(problems)
}

/// A file as it would be written.
struct GeneratedText {
    path: &'static str,
    generated: String,
    /// What the file is not, when it is not this.
    what: String,
}

impl GeneratedText {
    /// Returns where the file differs and what brings it back.
    fn problem(&self, root: &Path) -> Option<String> {
        let written = std::fs::read_to_string(root.join(self.path)).unwrap_or_default();
        let line = first_difference(&written, &self.generated)?;
        Some(format!("{}:{line}: is not {}: run `cargo xtask codegen` and commit", self.path, self.what))
    }
}

/// Generates the references, and the clients from one of them.
fn texts(workspace: &Workspace, binary: Option<PathBuf>) -> anyhow::Result<Vec<GeneratedText>> {
    let binary = binary.map_or_else(|| build(workspace), Ok)?;
    let mut texts = Vec::new();
    for Reference { path, arguments } in REFERENCES {
        let what = format!("what `stentor {}` prints", arguments.join(" "));
        texts.push(GeneratedText { path, generated: generate(&binary, arguments)?, what });
    }
    for (path, generated) in clients::texts(&generate(&binary, &["openapi"])?)? {
        texts.push(GeneratedText { path, generated, what: "made from the OpenAPI description".to_owned() });
    }
    Ok(texts)
}

/// Returns where `cargo test` or `cargo build` leave the binary.
pub(crate) fn debug_binary(workspace: &Workspace) -> PathBuf {
    let name = format!("stentor{}", std::env::consts::EXE_SUFFIX);
    workspace.metadata.target_directory.join("debug").join(name).into_std_path_buf()
}

fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let arguments = ["build", "--quiet", "--package", "stentor"];
    let status = Command::new("cargo").args(arguments).current_dir(&workspace.root).status()?;
    ensure!(status.success(), "stentor does not build");
    Ok(debug_binary(workspace))
}

fn generate(binary: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let command = format!("stentor {}", arguments.join(" "));
    let output = Command::new(binary).args(arguments).output();
    let output = output.with_context(|| format!("{} cannot be started", binary.display()))?;
    ensure!(
        output.status.success(),
        "`{command}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{command}` printed something that is not UTF-8"))
}

/// Returns the first line, counted from one, in which two texts differ.
fn first_difference(left: &str, right: &str) -> Option<usize> {
    if left == right {
        return None;
    }
    let same = left.lines().zip(right.lines()).take_while(|(left, right)| left == right).count();
    Some(same + 1)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, text)?)
}

#[cfg(test)]
mod tests;
