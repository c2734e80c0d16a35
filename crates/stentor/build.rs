//! Tells the program which commit it is made of, so that records can name it; `unknown` outside a repository.

use std::process::Command;

/// Where this package lies in its repository.
const PLACE: &str = "crates/stentor/";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit();
    println!("cargo:rustc-env=STENTOR_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Asks git for the commit, if the repository is ours: a copy may lie within somebody else's.
fn commit() -> Option<String> {
    git(&["rev-parse", "--show-prefix"]).filter(|place| place == PLACE)?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Every commit and every change of branch adds a line there.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if std::path::Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    Some(commit)
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
