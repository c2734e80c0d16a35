//! The unit for systemd in `examples/`: systemd reports no problem, and its command is one of ours.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::clients::ran;
use crate::device_clients::is_there;
use crate::process::stentor;

/// Path of the program in the unit.
const PROGRAM: &str = "/usr/local/bin/stentor";

#[test]
fn systemd_finds_nothing_wrong_with_the_unit_of_a_device() {
    if !is_there("systemd-analyze") {
        return;
    }
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("stentor-device.service");
    // The program must exist: this one does.
    std::fs::write(&file, unit().replace(PROGRAM, env!("CARGO_BIN_EXE_stentor"))).unwrap();
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("stentor-device"), "{errors}");
    let security = ["security", "--offline=true", "--threshold=25"];
    ran(Command::new("systemd-analyze").args(security).arg(&file));
}

#[test]
fn the_command_of_the_unit_wants_a_key_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let unit = unit();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let arguments: Vec<&str> = line.strip_prefix(PROGRAM).unwrap().split_whitespace().collect();
    let output = stentor(&arguments).env("STENTOR_DEVICE_DIR", directory.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("not registered yet"), "{errors}");
}

fn unit() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("examples/stentor-device.service")).unwrap()
}
