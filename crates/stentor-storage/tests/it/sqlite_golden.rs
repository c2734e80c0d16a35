//! Written files stay readable: these tests fail if a version writes different bytes.

use rusqlite::Connection;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::outcome::Reason;
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};
use tempfile::TempDir;

/// Returns the statements that would make the schema of a file.
fn schema(connection: &Connection) -> String {
    let sql =
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(sql).expect("prepared");
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("asked");
    rows.map(|row| row.expect("read") + ";\n").collect()
}

fn compare(name: &str, written: &str) {
    let path = format!("{}/tests/it/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == written, "{name} is not what is written now:\n{written}");
}

#[test]
fn the_stores_schema_is_that_of_its_newest_version() {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("stentor.db");
    drop(SqliteStore::open(&path, SqliteSettings::store()).expect("made"));
    compare("store.sql", &schema(&Connection::open(path).expect("opened")));
}

#[test]
fn the_queues_schema_is_version_1() {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("queue.db");
    drop(SqliteQueue::open(&path, SqliteSettings::queue()).expect("made"));
    compare("queue.sql", &schema(&Connection::open(path).expect("opened")));
}

#[tokio::test]
async fn a_chunk_and_its_message_are_kept_as_in_version_1() {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("stentor.db");
    let store = SqliteStore::open(&path, SqliteSettings::store()).expect("made");
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(3).await;
    let (_, tickets) = scene.send(Draft::to(Target::Devices(devices)).collapsing("news")).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.records[2] = Record::new(DeliveryState::Rejected, Reason::Unregistered, true);
    scene.settled(given).await;
    drop(store);
    let connection = Connection::open(path).expect("opened");
    let mut lines = String::new();
    for (name, sql) in ROWS {
        let columns = connection.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a row");
        lines.push_str(&format!("{name}: {columns}\n"));
    }
    compare("rows.txt", &lines);
}

const ROWS: &[(&str, &str)] = &[
    (
        "device",
        "SELECT concat_ws('|', key, token_since, registered_at, platform, listed, owner, token) FROM devices",
    ),
    (
        "token leaf",
        "SELECT concat_ws('|', first, length(leaf), hex(substr(leaf, 1, 42))) FROM token_leaves_fresh",
    ),
    ("message", "SELECT concat_ws('|', id, app, created_at, due_at, spec) FROM messages"),
    (
        "campaign",
        "SELECT concat_ws('|', id, app, state, class, due_at, expires_at, collapse_key, as_of, started_at, ended_at) FROM campaigns",
    ),
    (
        "chunk",
        "SELECT concat_ws('|', id, message, fleet, state, attempt, ambiguous, epoch, count, first, last, level, hex(devices), hex(records)) FROM chunks",
    ),
    (
        "ledger",
        "SELECT concat_ws('|', campaign, provider, audience, audience_complete, accepted, rejected, attempts, ambiguous, stop_reason) FROM ledgers",
    ),
    ("reasons", "SELECT group_concat(concat_ws('|', state, reason, count)) FROM reasons"),
];
