//! What lies in the data directory: for its owner alone.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use stentor_server::app::App;
use stentor_server::config::Engine;
use tokio::sync::mpsc;

use crate::harness::config;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// Lists every file of a directory with its mode.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), mode(&entry.path()))).collect()
}

fn wider(folder: &Path) -> Vec<(String, u32)> {
    modes(folder).into_iter().filter(|(_, mode)| *mode != 0o600).collect()
}

/// Lets a server work in a directory that is not there yet.
async fn worked(data: PathBuf) {
    let app = App::build(config(&data, Engine::Sqlite)).await.expect("the server starts");
    assert_eq!((mode(&data), wider(&data)), (0o700, Vec::new()), "while it runs");
    let names: Vec<_> = modes(&data).into_iter().map(|(name, _)| name).collect();
    for name in [
        "stentor.db",
        "stentor.db-wal",
        "stentor.db-shm",
        "quotas",
        "stentor.lock",
        "root.key",
        "listen.addr",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not among {names:?}");
    }
    let (_reload, reloads) = mpsc::channel(1);
    app.run(async {}, reloads).await.expect("it runs");
}

#[tokio::test]
async fn a_server_keeps_its_directory_and_every_file_for_its_owner_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    worked(data.clone()).await;
    assert_eq!((mode(&data), wider(&data)), (0o700, Vec::new()), "after it ended");
}

#[tokio::test]
async fn what_an_earlier_version_left_open_to_others_is_narrowed_at_start() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    worked(data.clone()).await;
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("widened");
    for (name, _) in modes(&data) {
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(0o644)).expect("widened");
    }
    worked(data.clone()).await;
}
