//! What the repository has for those who install the server: the units of systemd are in order.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn units() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "service")).collect()
}

/// Writes a unit with a program that every machine has: a missing one is what is found wrong first.
fn with_a_program_of_this_machine(unit: &Path, folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(unit).unwrap();
    let copy = folder.join(unit.file_name().unwrap());
    std::fs::write(&copy, text.replace("/usr/local/bin/stentor", "/bin/true")).unwrap();
    copy
}

#[test]
fn the_units_of_systemd_are_in_order() {
    let units = units();
    assert!(!units.is_empty());
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    }
    let folder = TempDir::new().unwrap();
    for unit in units {
        let copy = with_a_program_of_this_machine(&unit, folder.path());
        let found = Command::new("systemd-analyze").arg("verify").arg(&copy).output().unwrap();
        let told = String::from_utf8_lossy(&found.stderr).into_owned();
        // It also reads the units of this machine that ours is started after; only ours is judged.
        let name = copy.file_name().unwrap().to_string_lossy().into_owned();
        let ours: Vec<&str> = told.lines().filter(|line| line.contains(&name)).collect();
        assert!(found.status.success() && ours.is_empty(), "{}: {told}", unit.display());
    }
}
