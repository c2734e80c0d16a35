//! Passes the commit of the sources to the program, so that records can name it. The suffix `-dirty` marks sources that differ from the
//! commit; the commit is `unknown` outside a repository.

use std::process::Command;

/// Path of this package in its repository.
const PLACE: &str = "crates/stentor-lab-cli/";
/// Sources of the program, relative to the top of the repository, without tests.
const MADE_OF: [&str; 4] = ["Cargo.toml", "Cargo.lock", "crates", ":(exclude)crates/*/tests"];
/// Folders and files of a package of which a program is made.
const PARTS: [&str; 5] = ["src", "studies", "schema", "build.rs", "Cargo.toml"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit();
    println!("cargo:rustc-env=STENTOR_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Queries git for the commit, if the repository is ours: a copy of the sources may lie within a foreign repository.
fn commit() -> Option<String> {
    git(&["rev-parse", "--show-prefix"]).filter(|place| place == PLACE)?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Every commit and every change of branch adds a line there.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if std::path::Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    look_again_when_changed();
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let changed = git(&[&["-C", &top, "status", "--porcelain", "--"], &MADE_OF[..]].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// Reruns this script when a source of the program changes.
fn look_again_when_changed() {
    let packages = std::fs::read_dir("..").into_iter().flatten().flatten();
    let parts = packages.flat_map(|package| PARTS.map(|part| package.path().join(part)));
    let of_all = ["../../Cargo.toml", "../../Cargo.lock"].map(Into::into);
    for path in parts.chain(of_all).filter(|path: &std::path::PathBuf| path.exists()) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
