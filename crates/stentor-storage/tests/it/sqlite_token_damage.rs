//! Leaves of token hashes, which all apps share, damaged in one way after the other: registrations continue, and the hashes are rebuilt
//! from the devices.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::ports::store::{MessageStore, PipelineStore};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{app, at, registration};
use stentor_storage::conformance::value_damage::{ValueDamage, apply, possible};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

/// More than one leaf holds.
const DEVICES: usize = 1_000;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteSettings::store()).expect("opened")
}

fn registrations() -> Vec<Registration> {
    (0..DEVICES).map(|number| registration(ProviderKind::Fcm, &format!("token-{number}"))).collect()
}

/// Registers them and gives their devices.
async fn register(store: &SqliteStore, some: &[Registration]) -> Vec<u64> {
    let registered = store.register(app(1).id, some, at(0)).await.expect("registered");
    registered.into_iter().map(|one| one.device.raw()).collect()
}

/// Moves all leaves into the large table, as they are once there are many.
fn move_on(path: &Path) {
    let sql = "INSERT INTO token_leaves SELECT * FROM token_leaves_fresh;
        DELETE FROM token_leaves_fresh; UPDATE token_leaves_fresh_count SET count = 0;";
    Connection::open(path).expect("opened").execute_batch(sql).expect("moved");
}

/// Damages a copy, before it is opened or while it is open, registers, and lets the store find the hashes again.
async fn serve(made: &Path, damage: &ValueDamage, is_open: bool) {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("stentor.db");
    std::fs::copy(made, &path).expect("copied");
    let before = is_open.then(|| open(&path));
    assert!(apply(&path, made, damage) > 0, "{damage}");
    let store = before.unwrap_or_else(|| open(&path));
    let fresh = [registration(ProviderKind::Fcm, "fresh")];
    register(&store, &fresh).await;
    let some = &registrations()[..DEVICES / 10];
    register(&store, some).await;
    while store.continue_work(at(1)).await.expect("worked") {}
    let all = [registrations(), fresh.to_vec()].concat();
    let devices: BTreeSet<_> = register(&store, &all).await.into_iter().collect();
    assert_eq!(devices.len(), DEVICES + 1, "{damage}");
    let counts = store.count_audience(app(1).id, &Target::Everyone).await.expect("counted");
    let listed: u64 = counts.iter().map(|(_, count)| count).sum();
    assert_eq!(listed, all.len() as u64, "{damage}, open: {is_open}: none is registered twice");
}

#[tokio::test]
async fn a_damaged_leaf_of_token_hashes_is_made_again_while_registrations_go_on() {
    for table in ["token_leaves_fresh", "token_leaves"] {
        let folder = TempDir::new().expect("a temporary directory");
        let path = folder.path().join("stentor.db");
        let store = open(&path);
        store.create_app(&app(1)).await.expect("kept");
        register(&store, &registrations()).await;
        drop(store);
        if table == "token_leaves" {
            move_on(&path);
        }
        let damages = possible(&path)
            .into_iter()
            .filter(|damage| damage.table == table && (damage.column != "first" || damage.value != "'x'"));
        for damage in damages {
            for is_open in [false, true] {
                serve(&path, &damage, is_open).await;
            }
        }
    }
}
