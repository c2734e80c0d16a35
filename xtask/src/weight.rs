//! `cargo xtask weight`: the lines, packages and bytes of a clone without history, and the slowest crates of a build.

mod checkout;
mod lines;
mod timings;

use anyhow::Context;
use serde_json::{Value, json};

use self::checkout::CloneBytes;
use self::lines::RustLines;
use self::timings::CrateTime;
use crate::workspace::Workspace;

/// Length of the list of slow crates.
const SLOWEST: usize = 10;

/// The figures of one checkout.
struct ProjectWeight {
    rust: RustLines,
    generated_lines: usize,
    packages: usize,
    clone: CloneBytes,
    /// Empty if no build has left a report.
    slowest: Vec<CrateTime>,
}

/// Prints the figures, as JSON or as a table.
#[expect(clippy::print_stderr, reason = "a hint beside JSON on the standard output")]
pub(crate) fn run(workspace: &Workspace, is_json: bool) -> anyhow::Result<bool> {
    let weight = measure(workspace)?;
    if weight.slowest.is_empty() {
        eprintln!("no report of build times: `cargo build --timings` writes one");
    }
    let text = if is_json { format!("{}\n", weight.json()) } else { weight.table() };
    print!("{text}");
    Ok(true)
}

fn measure(workspace: &Workspace) -> anyhow::Result<ProjectWeight> {
    let lock = std::fs::read_to_string(workspace.root.join("Cargo.lock")).context("Cargo.lock")?;
    let mut slowest = timings::newest(workspace.metadata.target_directory.as_std_path())?;
    slowest.truncate(SLOWEST);
    Ok(ProjectWeight {
        rust: lines::rust(workspace)?,
        generated_lines: lines::generated(workspace)?,
        packages: packages(&lock),
        clone: checkout::bytes(workspace)?,
        slowest,
    })
}

/// Counts the packages of a lock file.
fn packages(lock: &str) -> usize {
    lock.lines().filter(|line| *line == "[[package]]").count()
}

impl ProjectWeight {
    fn json(&self) -> Value {
        let slowest: Vec<Value> = self.slowest.iter().map(CrateTime::json).collect();
        json!({
            "product_lines": self.rust.product,
            "test_lines": self.rust.tests,
            "generated_lines": self.generated_lines,
            "packages": self.packages,
            "clone_bytes": self.clone.files,
            "git_bytes": self.clone.git,
            "slowest_crates": slowest,
        })
    }

    fn table(&self) -> String {
        let mut rows = vec![
            ("product lines of Rust".to_owned(), self.rust.product.to_string()),
            ("test lines of Rust".to_owned(), self.rust.tests.to_string()),
            ("generated lines in git".to_owned(), self.generated_lines.to_string()),
            ("packages in Cargo.lock".to_owned(), self.packages.to_string()),
            ("bytes of the files of a clone".to_owned(), self.clone.files.to_string()),
            ("bytes of git beside them, without history".to_owned(), self.clone.git.to_string()),
        ];
        let seconds =
            |slow: &CrateTime| (format!("seconds of {}", slow.name), format!("{:.1}", slow.seconds));
        rows.extend(self.slowest.iter().map(seconds));
        rows.iter().map(|(name, figure)| format!("{name:<40} {figure:>12}\n")).collect()
    }
}

#[cfg(test)]
mod tests;
