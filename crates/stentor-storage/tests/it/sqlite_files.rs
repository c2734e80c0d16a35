//! The files of the SQLite engine: who may open them, what may be in them, and what happens when it is nonsense.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stentor_core::chunk::{Class, Lane, Ticket};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::{DeviceStore, MessageStore, PipelineStore, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, at, lease_at};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};
use tempfile::TempDir;

struct Folder {
    directory: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn store(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(self.path("stentor.db"), SqliteSettings::store())
    }

    fn queue(&self) -> Result<SqliteQueue, StoreError> {
        SqliteQueue::open(self.path("queue.db"), SqliteSettings::queue())
    }

    /// Changes the closed store's file behind its back.
    fn meddle(&self, sql: &str) {
        let connection = Connection::open(self.path("stentor.db")).expect("opened");
        assert!(connection.execute(sql, []).expect("changed") > 0, "something was changed");
    }
}

fn ticket(chunk: u64) -> Ticket {
    let lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: Class::Bulk };
    Ticket { chunk: ChunkId::from_raw(chunk), lane, due_at: at(0) }
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).expect("opened");
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version")
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone() {
    let folder = Folder::new();
    let first = folder.store().expect("opened");
    let refused = folder.store().expect_err("in use");
    assert!(matches!(&refused, StoreError::Conflict(why) if why.contains("in use")), "{refused}");
    drop(first);
    folder.store().expect("free again");
    let _queue = folder.queue().expect("a file of its own");
    assert!(matches!(folder.queue(), Err(StoreError::Conflict(_))));
}

#[test]
fn an_empty_file_is_brought_to_the_present_schema_and_stays_there() {
    let folder = Folder::new();
    drop(folder.store().expect("made"));
    assert_eq!(version(&folder.path("stentor.db")), 1);
    drop(folder.store().expect("opened again"));
    assert_eq!(version(&folder.path("stentor.db")), 1);
}

#[test]
fn a_schema_of_a_newer_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    drop(folder.store().expect("made"));
    let connection = Connection::open(folder.path("stentor.db")).expect("opened");
    connection.pragma_update(None, "user_version", 99).expect("changed");
    drop(connection);
    let refused = folder.store().expect_err("too new");
    assert!(matches!(&refused, StoreError::Conflict(why) if why.contains("schema 99")), "{refused}");
    assert_eq!(version(&folder.path("stentor.db")), 99);
}

#[test]
fn a_file_that_is_no_database_is_damage() {
    let folder = Folder::new();
    std::fs::write(folder.path("stentor.db"), "by no means a database, though long enough ".repeat(99))
        .expect("written");
    assert!(matches!(folder.store(), Err(StoreError::Damaged(_))));
}

#[tokio::test]
async fn nobody_but_the_owner_may_read_the_files() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    Scene::new(&store).await;
    let queue = folder.queue().expect("made");
    queue.publish(&[ticket(1)]).await.expect("published");
    for name in
        ["stentor.db", "stentor.db-wal", "stentor.db-shm", "stentor.db.lock", "queue.db", "queue.db-wal"]
    {
        let mode = std::fs::metadata(folder.path(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_damaged_queue_is_moved_aside_and_starts_empty() {
    let folder = Folder::new();
    let queue = folder.queue().expect("made");
    queue.publish(&[ticket(1)]).await.expect("published");
    drop(queue);
    let mut bytes = std::fs::read(folder.path("queue.db")).expect("read");
    bytes.iter_mut().skip(100).for_each(|byte| *byte ^= 0x5a);
    std::fs::write(folder.path("queue.db"), &bytes).expect("written");
    let queue = folder.queue().expect("a new one");
    assert_eq!(queue.depths(at(0)).await.expect("told"), Vec::new());
    queue.publish(&[ticket(1)]).await.expect("it works");
    assert_eq!(std::fs::read(folder.path("queue.db.damaged")).expect("kept"), bytes);
}

#[tokio::test]
async fn rows_that_make_no_sense_are_damage_and_never_a_panic() {
    let nonsense = [
        "UPDATE chunks SET devices = x'ff'",
        "UPDATE chunks SET devices = x''",
        "UPDATE chunks SET state = 77",
        "UPDATE chunks SET epoch = -1",
        "UPDATE campaigns SET state = 250",
        "UPDATE messages SET spec = '{}'",
        "UPDATE ledgers SET queued = 0",
        "UPDATE ledgers SET queued = -5",
        "UPDATE fleets SET provider = 99",
    ];
    for sql in nonsense {
        let folder = Folder::new();
        let store = folder.store().expect("made");
        let scene = Scene::new(&store).await;
        let devices = scene.fcm(3).await;
        let (_, tickets) = scene.send(Draft::to(Target::Devices(devices))).await;
        drop(store);
        folder.meddle(sql);
        let store = folder.store().expect("opened");
        let asked = store.lease(&[tickets[0].chunk], lease_at(at(1))).await;
        assert!(matches!(asked, Err(StoreError::Damaged(_))), "{sql}: {asked:?}");
    }
}

#[tokio::test]
async fn a_token_that_no_version_would_keep_is_damage() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let device = Scene::new(&store).await.fcm(1).await[0];
    drop(store);
    folder.meddle("UPDATE devices SET token = ''");
    let store = folder.store().expect("opened");
    let shown = store.device(AppId::from_raw(1), device).await;
    assert!(matches!(shown, Err(StoreError::Damaged(_))), "{shown:?}");
}

#[tokio::test]
async fn many_deliveries_cost_few_rows() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let scene = Scene::new(&store).await;
    scene.fcm(20_000).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let how = stentor_core::ports::store::Expansion { chunk_max_devices: 1_000, max_chunks: 20, now: at(0) };
    for task in store.producers().await.expect("listed") {
        while !store.expand(task, how).await.expect("expanded").done {}
    }
    let queued = store.queued(ChunkId::from_raw(0), 100).await.expect("listed");
    scene.deliver(&queued, at(1)).await;
    assert_eq!(scene.tally(message).await.accepted, 20_000);
    assert!(
        store
            .history(
                scene.app,
                stentor_core::id::DeviceId::from_raw(777),
                stentor_core::ports::store::Page { after: 0, limit: 5 }
            )
            .await
            .expect("told")
            .len()
            == 1
    );
    drop(store);
    let connection = Connection::open(folder.path("stentor.db")).expect("opened");
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("counted");
    assert_eq!(count("SELECT count(*) FROM chunks"), 20);
    assert!(count("SELECT sum(length(devices) + length(records)) FROM chunks") < 20 * 1_010);
}
