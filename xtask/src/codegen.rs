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
pub(crate) fn run(workspace: &Workspace, check: bool, binary: Option<PathBuf>) -> anyhow::Result<bool> {
    let binary = match binary {
        Some(binary) => binary,
        None => build(workspace)?,
    };
    let mut current = true;
    for reference in REFERENCES {
        let path = workspace.root.join(reference.path);
        let generated = generate(&binary, reference.arguments)?;
        if check {
            current &= is_current(&path, reference, &generated);
        } else {
            write(&path, &generated).with_context(|| reference.path)?;
            println!("wrote {}", reference.path);
        }
    }
    Ok(run_clients(workspace, check, &generate(&binary, &["openapi"])?)? && current)
}

/// Writes the generated files of the clients, or with `check` compares them; returns whether all is well.
fn run_clients(workspace: &Workspace, check: bool, openapi: &str) -> anyhow::Result<bool> {
    let mut current = true;
    for (name, generated) in clients::texts(openapi)? {
        let path = workspace.root.join(name);
        if !check {
            write(&path, &generated).context(name)?;
            println!("wrote {name}");
            continue;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(line) = first_difference(&written, &generated) {
            println!(
                "{name}:{line}: does not follow the OpenAPI description: run `cargo xtask codegen` and commit"
            );
            current = false;
        }
    }
    Ok(current)
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

fn is_current(path: &Path, reference: &Reference, generated: &str) -> bool {
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let difference = first_difference(&written, generated);
    if let Some(line) = difference {
        let command = reference.arguments.join(" ");
        println!(
            "{}:{line}: is not what `stentor {command}` prints: run `cargo xtask codegen` and commit",
            reference.path
        );
    }
    difference.is_none()
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
