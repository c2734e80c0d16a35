//! `cargo xtask codegen`: the references under docs/ that the binary itself writes, descriptions for tools of other kinds, and the
//! clients made from one of them. Git keeps the references; the others are made again wherever they are needed.

mod clients;
mod commands;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// The description of the REST API, from which the clients are made.
const OPENAPI: Reference =
    Reference { path: "docs/openapi.json", arguments: &["openapi"], shape: without_indentation };
/// The folder of [`DESCRIPTIONS`], below the target folder.
const DESCRIPTIONS_FOLDER: &str = "descriptions";

/// A generated file, and the command that writes it.
struct Reference {
    path: &'static str,
    arguments: &'static [&'static str],
    /// Makes the file of the command's output.
    shape: fn(String) -> String,
}

impl Reference {
    /// Names a file that holds the output of a command.
    const fn printed(path: &'static str, arguments: &'static [&'static str]) -> Self {
        Self { path, arguments, shape: as_printed }
    }
}

/// The files that git keeps.
const REFERENCES: &[Reference] = &[
    OPENAPI,
    Reference::printed("docs/config.default.toml", &["config", "default"]),
    Reference::printed(
        "crates/stentor-server/src/contract/description/numbers.toml",
        &["contract", "numbers"],
    ),
    Reference::printed("docs/faces/socket.md", &["contract", "socket"]),
    Reference::printed("docs/errors.md", &["errors", "--markdown"]),
];

/// The files that are for tools alone, in a folder that git does not keep.
const DESCRIPTIONS: &[Reference] = &[
    Reference::printed("stentor.proto", &["contract", "proto"]),
    Reference::printed("stentor.wsdl", &["contract", "wsdl"]),
    Reference::printed("stentor.wadl", &["contract", "wadl"]),
    Reference::printed("stentor-rest.wsdl2", &["contract", "wsdl2"]),
    Reference::printed("xmlrpc-methods.md", &["contract", "xmlrpc"]),
];

fn as_printed(text: String) -> String {
    text
}

/// Takes away the spaces before each line of JSON: half of the OpenAPI description, and of no use to programs.
fn without_indentation(text: String) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// Writes all files, or with `check` compares those that git keeps; returns true if all is well.
pub(crate) fn run(workspace: &Workspace, is_check: bool, binary: Option<PathBuf>) -> anyhow::Result<bool> {
    if is_check {
        return Ok(check(workspace, binary)?.is_empty());
    }
    let binary = binary.map_or_else(|| build(workspace), Ok)?;
    for text in texts(&binary)? {
        write_named(&workspace.root.join(&text.path), &text.path, &text.generated)?;
    }
    let folder = workspace.metadata.target_directory.join(DESCRIPTIONS_FOLDER);
    write_descriptions(&binary, folder.as_std_path())?;
    write_clients(workspace)
}

/// Writes the generated half of each client from the OpenAPI description that git keeps, without a binary.
pub(crate) fn write_clients(workspace: &Workspace) -> anyhow::Result<bool> {
    let openapi = std::fs::read_to_string(workspace.root.join(OPENAPI.path)).context(OPENAPI.path)?;
    for (path, generated) in clients::texts(&openapi)? {
        write_named(&workspace.root.join(path), path, &generated)?;
    }
    Ok(true)
}

/// Writes the descriptions that git does not keep into a folder.
pub(crate) fn write_descriptions(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    for description in DESCRIPTIONS {
        let path = folder.join(description.path);
        write_named(&path, &path.display().to_string(), &generate(binary, description)?)?;
    }
    Ok(())
}

/// Prints and returns a sentence about each reference that is out of date.
pub(crate) fn check(workspace: &Workspace, binary: Option<PathBuf>) -> anyhow::Result<Vec<String>> {
    let texts = texts(&binary.map_or_else(|| build(workspace), Ok)?)?;
    let problems: Vec<String> = texts.iter().filter_map(|text| text.problem(&workspace.root)).collect();
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(problems)
}

/// A generated file.
struct GeneratedText {
    path: String,
    generated: String,
    /// Description of the expected content, for messages.
    what: String,
}

impl GeneratedText {
    /// Returns the place where the file differs, with the command that restores it.
    fn problem(&self, root: &Path) -> Option<String> {
        let written = std::fs::read_to_string(root.join(&self.path)).unwrap_or_default();
        let line = first_difference(&written, &self.generated)?;
        Some(format!("{}:{line}: is not {}: run `cargo xtask codegen` and commit", self.path, self.what))
    }
}

/// Generates the references.
fn texts(binary: &Path) -> anyhow::Result<Vec<GeneratedText>> {
    let text = |reference: &Reference| {
        let what = format!("the output of `stentor {}`", reference.arguments.join(" "));
        Ok(GeneratedText { path: reference.path.to_owned(), generated: generate(binary, reference)?, what })
    };
    let references = REFERENCES.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(references.into_iter().chain(commands::texts(binary)?).collect())
}

/// Returns true if codegen writes a file that git keeps.
pub(crate) fn writes(path: &str) -> bool {
    REFERENCES.iter().any(|reference| reference.path == path) || path.starts_with(commands::FOLDER)
}

/// Lists the generated files of the clients, from the root.
pub(crate) fn client_paths() -> impl Iterator<Item = &'static str> {
    clients::FILES.iter().map(|file| file.path)
}

/// Returns the path of the binary that `cargo test` and `cargo build` build.
pub(crate) fn debug_binary(workspace: &Workspace) -> PathBuf {
    let name = format!("stentor{}", std::env::consts::EXE_SUFFIX);
    workspace.metadata.target_directory.join("debug").join(name).into_std_path_buf()
}

fn build(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let arguments = ["build", "--quiet", "--package", "stentor", "--package", "stentor-lab-cli"];
    let status = Command::new("cargo").args(arguments).current_dir(&workspace.root).status()?;
    ensure!(status.success(), "stentor does not build");
    Ok(debug_binary(workspace))
}

fn generate(binary: &Path, reference: &Reference) -> anyhow::Result<String> {
    Ok((reference.shape)(output_of(binary, reference.arguments)?))
}

/// Returns the standard output of a command.
fn output_of(binary: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let command = format!("{} {}", binary.display(), arguments.join(" "));
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

/// Writes a file unless it is unchanged, and prints its name.
fn write_named(path: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    write(path, text).with_context(|| name.to_owned())?;
    println!("wrote {name}");
    Ok(())
}

/// Writes a file as a whole, so that a program that reads it at the same time sees the one before or the new one.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|written| written == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let half = path.with_added_extension(format!("{}.part", std::process::id()));
    std::fs::write(&half, text)?;
    Ok(std::fs::rename(half, path)?)
}

#[cfg(test)]
mod tests;
