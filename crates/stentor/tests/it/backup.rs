//! Backups: made from a running server, checked, restored, and refused if they would do harm.

use crate::process::run_json;
use crate::server::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a command about a backup on the data of a directory.
fn store(command: &str, backup: &Path, directory: &Path) -> (i32, Value) {
    let data = directory.join("data");
    run_json(&["store", command, text(backup), "--data-dir", text(&data)])
}

/// Starts a server that has an app, a device and a message, and backs it up while it runs.
fn backed_up(directory: &TempDir) -> (Server, std::path::PathBuf) {
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    server.ok(&["device", "register", "--platform", "android", "--token", "token-1", "--topic", "news"]);
    let backup = directory.path().join("backup");
    let (code, report) = store("backup", &backup, directory.path());
    assert_eq!(code, 0, "{report}");
    let names: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["stentor.db", "key.pepper"]);
    (server, backup)
}

#[test]
fn a_backup_of_a_running_server_is_put_back_with_its_devices_and_keys() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Server::start(first.path());
    let app = server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let device = ["device", "register", "--platform", "android", "--token", "token-1"];
    let device = server.ok(&device)["id"].clone();
    let backup = first.path().join("backup");
    assert_eq!(store("backup", &backup, first.path()).0, 0);
    // Later changes are not in the backup.
    let later = ["device", "register", "--platform", "android", "--token", "token-2"];
    let later = server.ok(&later)["id"].clone();
    assert_eq!(run_json(&["store", "check", text(&backup), "--deep"]).0, 0);
    let (code, report) = store("restore", &backup, second.path());
    assert_eq!(code, 0, "{report}");
    assert!(report["sealing_problem"].as_str().unwrap().contains("key"), "{report}");
    std::fs::copy(first.path().join("data/seal.key"), second.path().join("data/seal.key")).unwrap();
    let restored = Server::start(second.path());
    let key = app["key"]["secret"].as_str().unwrap();
    let show = |id: &Value| restored.run(&["device", "show", id.as_str().unwrap(), "--key", key]).0;
    assert_eq!(show(&device), 0);
    assert_ne!(show(&later), 0);
    assert_eq!(restored.ok(&["app", "credential", "list"])["credentials"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_backed_up_is_its_owners_alone() {
    let directory = TempDir::new().unwrap();
    let (_server, backup) = backed_up(&directory);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o700);
    for file in std::fs::read_dir(&backup).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    assert!(!backup.join("seal.key").exists());
}

#[test]
fn a_backup_that_has_changed_or_broken_off_is_refused() {
    let directory = TempDir::new().unwrap();
    let (_server, backup) = backed_up(&directory);
    let database = backup.join("stentor.db");
    let whole = std::fs::read(&database).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&database, changed).unwrap();
    let fresh = TempDir::new().unwrap();
    let (code, report) = store("restore", &backup, fresh.path());
    assert_eq!(code, 1);
    assert!(
        report["error"].as_str().unwrap().contains("differs from the file that was backed up"),
        "{report}"
    );
    assert!(!fresh.path().join("data/stentor.db").exists());
    std::fs::write(&database, whole).unwrap();
    std::fs::remove_file(backup.join("backup.json")).unwrap();
    let (code, report) = run_json(&["store", "check", text(&backup)]);
    assert_eq!(code, 1);
    assert!(report["error"].as_str().unwrap().contains("broke off"), "{report}");
}

#[test]
fn nothing_is_put_over_a_database_or_under_a_running_server() {
    let directory = TempDir::new().unwrap();
    let (mut server, backup) = backed_up(&directory);
    let (code, report) = store("restore", &backup, directory.path());
    assert_eq!(code, 1);
    assert!(report["error"].as_str().unwrap().contains("in use"), "{report}");
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success());
    let (code, report) = store("restore", &backup, directory.path());
    assert_eq!(code, 1);
    assert!(report["error"].as_str().unwrap().contains("exists already"), "{report}");
    // A log without its database would be applied to the restored one.
    let data = directory.path().join("data");
    std::fs::remove_file(data.join("stentor.db")).unwrap();
    std::fs::write(data.join("stentor.db-wal"), b"left over").unwrap();
    assert_eq!(store("restore", &backup, directory.path()).0, 1);
    std::fs::remove_file(data.join("stentor.db-wal")).unwrap();
    assert_eq!(store("restore", &backup, directory.path()).0, 0);
    let server = Server::start(directory.path());
    assert_eq!(server.ok(&["app", "list"])["apps"].as_array().unwrap().len(), 1);
}

#[test]
fn a_folder_that_holds_something_takes_no_backup() {
    let directory = TempDir::new().unwrap();
    let (_server, backup) = backed_up(&directory);
    let (code, report) = store("backup", &backup, directory.path());
    assert_eq!(code, 1);
    assert!(report["error"].as_str().unwrap().contains("holds something"), "{report}");
}
