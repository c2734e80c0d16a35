//! The files of the SQLite engine: their permissions, their contents, and the handling of invalid ones.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stentor_core::app::{ApiKey, Scope, Scopes};
use stentor_core::audit::{Actor, AuditAction, AuditNote};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::group::Member;
use stentor_core::id::{AppId, CampaignId, ChunkId, KeyId};
use stentor_core::name::{GroupName, Label};
use stentor_core::outcome::Reason;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::{
    AppStore, AttemptFilter, AuditStore, BrokenWork, Change, DeviceStore, GroupStore, HealthStore, KeyFilter,
    MessageStore, NewAuditEntry, PipelineStore, QueuedFilter, ScheduleStore, StoreError, UserStore,
};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{
    Draft, Scene, accept_all, app, at, group, lease_at, person, registration, topic,
};
use stentor_storage::schema::{SchemaChange, SchemaGoal};
use stentor_storage::sqlite::{Depth, SqliteQueue, SqliteSettings, SqliteStore, inspect};
use stentor_storage::store_place::{StorePlace, migrate};
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
    let lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
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
    let newest = version(&folder.path("stentor.db"));
    assert!(newest >= 21, "{newest}");
    drop(folder.store().expect("opened again"));
    assert_eq!(version(&folder.path("stentor.db")), newest);
}

#[tokio::test]
async fn the_last_state_of_a_topic_is_found_where_an_earlier_version_accepted_it() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let scene = Scene::new(&store).await;
    let door = topic("door");
    scene
        .register(Registration { topics: vec![door.clone()], ..registration(ProviderKind::Gateway, "t") })
        .await;
    let to_door = || Draft::to(Target::Topic(door.clone()));
    let (last, _) = scene.send(to_door().for_gateway(r#"{"retain":true}"#)).await;
    scene.send(to_door().for_gateway(r#"{"a":{"retain":true}}"#)).await;
    drop(store);
    let place = StorePlace::Sqlite(folder.path("stentor.db"));
    let newest = usize::try_from(version(&folder.path("stentor.db"))).expect("a version");
    for from in (20..=newest).rev() {
        assert_eq!(migrate(&place, SchemaGoal::OneBack), Ok(SchemaChange { from, to: from - 1 }));
    }
    let store = folder.store().expect("brought forward again");
    assert_eq!(store.retained(app(1).id, &door, at(1)).await, Ok(Some(last)));
}

#[tokio::test]
async fn what_was_stopped_or_grouped_in_version_1_still_is() {
    let folder = Folder::new();
    drop(folder.store().expect("made, with its rights"));
    std::fs::remove_file(folder.path("stentor.db")).expect("removed");
    let connection = Connection::open(folder.path("stentor.db")).expect("opened");
    let first = include_str!("../../src/sqlite/migrations/0001_store.sql");
    let rows = "INSERT INTO apps VALUES (1, 'a', 0);
        INSERT INTO fleets VALUES (1, 1, 1, 1);
        INSERT INTO campaigns VALUES (9, 1, 4, 1, 0, 0, 60, NULL, 1, 0, 5, 14, 'too large');
        INSERT INTO ledgers VALUES (9, 1, 2, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0);
        INSERT INTO groups VALUES (1, 1, 'team', 0, 1);
        INSERT INTO users VALUES (1, 1, 'ann', 0);
        INSERT INTO group_users VALUES (1, 'ann', 1);
        INSERT INTO user_devices VALUES (1, 1 << 40 | 5);
        INSERT INTO devices (key, token_since, registered_at, platform, listed, user, token)
            VALUES (1 << 40 | 5, 0, 0, 1, 1, 1, 't5');";
    connection.execute_batch(&format!("{first} {rows} PRAGMA user_version = 1")).expect("written");
    drop(connection);
    let store = folder.store().expect("brought to the present schema");
    let app = AppId::from_raw(1);
    let ledger = store.ledger(app, CampaignId::from_raw(9)).await.expect("there");
    let stop = ledger.providers[0].stop.as_ref().expect("stopped at its provider");
    assert_eq!((stop.detail.as_str(), ledger.campaign.state), ("too large", CampaignState::Stopped));
    let group = Target::Group(GroupName::new("team").expect("a name"));
    let count = store.count_audience(app, &group).await.expect("counted");
    assert_eq!(count, [(ledger.providers[0].provider, 1)]);
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
fn a_file_system_without_a_write_ahead_log_is_refused() {
    let folder = Folder::new();
    // It shares no memory between processes, just as a network file system.
    let settings = SqliteSettings { vfs: Some("unix-none".to_owned()), ..SqliteSettings::store() };
    let refused = SqliteStore::open(folder.path("stentor.db"), settings).expect_err("not durable enough");
    assert!(
        matches!(&refused, StoreError::Unavailable(why) if why.contains("journal_mode=delete")),
        "{refused}"
    );
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
        let leased = store.lease(&[tickets[0].chunk], lease_at(at(1))).await;
        assert!(matches!(leased, Err(StoreError::Damaged(_))), "{sql}: {leased:?}");
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
async fn a_campaign_whose_message_cannot_be_read_is_stopped_and_holds_up_no_other() {
    for damage in ["UPDATE messages SET spec = '{}' WHERE id = ", "DELETE FROM messages WHERE id = "] {
        let folder = Folder::new();
        let store = folder.store().expect("made");
        let scene = Scene::new(&store).await;
        let device = scene.fcm(1).await[0];
        let (damaged, _) = scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
        let (sound, _) = scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
        drop(store);
        folder.meddle(&format!("{damage}{}", damaged.raw()));
        let store = folder.store().expect("opened");
        let tickets = store.start_due(10, 4, at(100)).await.expect("the other one began").tickets;
        let scene = Scene::again(&store, 1);
        scene.deliver(&tickets, at(101)).await;
        assert_eq!(scene.state(sound).await, CampaignState::Finished, "{damage}");
        let stopped = scene.ledger(damaged).await.campaign;
        let reason = stopped.stop.map(|stop| stop.reason);
        assert_eq!((stopped.state, reason), (CampaignState::Stopped, Some(Reason::Damaged)), "{damage}");
        assert_eq!(store.next_due().await, Ok(None), "{damage}");
    }
}

#[tokio::test]
async fn a_chunk_that_cannot_be_read_is_refused_alone_and_put_in_quarantine() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(12).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    drop(store);
    folder.meddle(&format!("UPDATE chunks SET devices = x'ff' WHERE id = {}", tickets[1].chunk.raw()));
    let store = folder.store().expect("opened");
    let scene = Scene::again(&store, 1);
    let all: Vec<_> = tickets.iter().map(|ticket| ticket.chunk).collect();
    let lease = lease_at(at(1));
    assert!(matches!(store.lease(&all, lease).await, Err(StoreError::Damaged(_))), "the group fails as one");
    assert!(matches!(store.lease(&all[1..2], lease).await, Err(StoreError::Damaged(_))));
    assert_eq!(store.quarantine(BrokenWork::Chunk { chunk: all[1], epoch: None }, at(2)).await, Ok(true));
    for sound in [all[0], all[2]] {
        let leased = scene.lease(sound, at(3)).await;
        scene.settled(accept_all(&leased, at(3))).await;
    }
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.total().accepted, ledger.total().failed), (8, 4));
    assert_eq!(ledger.campaign.state, CampaignState::Finished);
    let history = store
        .attempts(scene.app, devices[5], AttemptFilter::Message(message))
        .await
        .expect("no damage to who asks");
    assert!(history.is_empty(), "who was in it cannot be told");
    assert_eq!(store.figures().await.expect("counted").quarantined_chunks, 1);
}

#[tokio::test]
async fn a_chunk_whose_books_are_damaged_is_put_in_quarantine_without_them() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let scene = Scene::new(&store).await;
    scene.fcm(2).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    drop(store);
    folder.meddle("UPDATE ledgers SET queued = 1");
    let store = folder.store().expect("opened");
    let chunk = tickets[0].chunk;
    let lease = lease_at(at(1));
    assert!(matches!(store.lease(&[chunk], lease).await, Err(StoreError::Damaged(_))));
    assert_eq!(store.quarantine(BrokenWork::Chunk { chunk, epoch: None }, at(2)).await, Ok(true));
    let replies = store.lease(&[chunk], lease).await.expect("no damage any more");
    assert!(matches!(replies[0], stentor_core::ports::store::LeaseReply::Void), "{replies:?}");
    assert!(store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed").is_empty());
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
    let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 100)).await.expect("listed");
    scene.deliver(&queued, at(1)).await;
    assert_eq!(scene.tally(message).await.accepted, 20_000);
    let newest = AttemptFilter::Page(stentor_core::ports::store::Page { after: 0, limit: 5 });
    let device = stentor_core::id::DeviceId::from_raw(777);
    assert_eq!(store.attempts(scene.app, device, newest).await.expect("told").len(), 1);
    drop(store);
    let connection = Connection::open(folder.path("stentor.db")).expect("opened");
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("counted");
    assert_eq!(count("SELECT count(*) FROM chunks"), 20);
    assert!(count("SELECT sum(length(devices) + length(records)) FROM chunks") < 20 * 1_010);
}

/// Turns every bit of the page in the middle of a closed file.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).expect("read");
    let page_bytes = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let start = bytes.len() / 2 / page_bytes * page_bytes;
    bytes[start..start + page_bytes].iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn a_look_at_a_file_in_use_finds_it_whole_and_changes_nothing() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    let scene = Scene::new(&store).await;
    scene.fcm(2_000).await;
    let before = std::fs::read(folder.path("stentor.db-wal")).expect("read");
    for depth in [Depth::Quick, Depth::Deep] {
        let found = inspect(folder.path("stentor.db"), depth).expect("read");
        assert_eq!((found.is_wal, found.problems), (true, Vec::new()));
    }
    assert_eq!(std::fs::read(folder.path("stentor.db-wal")).expect("read"), before);
    scene.fcm(1).await;
}

#[tokio::test]
async fn a_look_at_a_file_that_nobody_uses_leaves_its_log_alone() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let store = folder.store().expect("made");
    Scene::new(&store).await.fcm(2_000).await;
    // As after a crash: the log exists and no process has it open.
    for name in ["stentor.db", "stentor.db-wal"] {
        std::fs::copy(folder.path(name), copy.path(name)).expect("copied");
    }
    let read = || ["stentor.db", "stentor.db-wal"].map(|name| std::fs::read(copy.path(name)).expect("read"));
    let before = read();
    assert!(!before[1].is_empty(), "there is something to lose");
    assert_eq!(inspect(copy.path("stentor.db"), Depth::Deep).expect("read").problems, Vec::<String>::new());
    assert!(read() == before, "nothing was written");
}

#[tokio::test]
async fn a_damaged_page_is_found_at_any_depth() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    Scene::new(&store).await.fcm(2_000).await;
    drop(store);
    damage(&folder.path("stentor.db"));
    for depth in [Depth::Quick, Depth::Deep] {
        let found = inspect(folder.path("stentor.db"), depth).expect("read");
        assert!(!found.problems.is_empty(), "{depth:?}");
    }
}

#[test]
fn a_look_at_no_file_or_nonsense_says_so_and_makes_none() {
    let folder = Folder::new();
    let path = folder.path("stentor.db");
    assert!(matches!(inspect(&path, Depth::Quick), Err(StoreError::Unavailable(_))));
    assert!(!path.exists());
    std::fs::write(&path, "by no means a database, though long enough ".repeat(99)).expect("written");
    assert!(!inspect(&path, Depth::Quick).expect("read").problems.is_empty());
}

#[tokio::test]
async fn a_change_whose_entry_cannot_be_written_is_not_made() {
    let folder = Folder::new();
    drop(folder.store().expect("made"));
    let connection = Connection::open(folder.path("stentor.db")).expect("opened");
    let sql = "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no entry'); END";
    connection.execute_batch(sql).expect("meddled");
    drop(connection);
    let store = folder.store().expect("opened");
    let note = AuditNote {
        at: at(0),
        actor: Actor::Root,
        app: Some(AppId::from_raw(1)),
        action: AuditAction::AppCreate,
        thing: "app".to_owned(),
        detail: String::new(),
        address: None,
        request_id: String::new(),
        refused: false,
    };
    assert!(
        store.change(Change::CreateApp(app(1)), Some(NewAuditEntry { note, max_count: 10 })).await.is_err()
    );
    assert_eq!(store.apps().await, Ok(Vec::new()));
}

/// Renames one row of each list to a name that no name may be.
const DAMAGES: [&str; 5] = [
    "UPDATE apps SET name = char(1) WHERE id = 2",
    "UPDATE api_keys SET name = char(1) WHERE id = 2",
    "UPDATE groups SET name = char(1) WHERE name = 'two'",
    "UPDATE users SET external_id = char(1) WHERE external_id = 'two'",
    "UPDATE group_users SET external_id = char(1) WHERE external_id = 'two'",
];

#[tokio::test]
async fn a_row_that_a_list_leaves_out_is_counted_once() {
    let folder = Folder::new();
    let store = folder.store().expect("made");
    for number in 1..=2 {
        store.create_app(&app(number)).await.expect("kept");
        store.create_key(&key(number)).await.expect("kept");
    }
    let (own, first) = (app(1).id, group("one"));
    for name in ["one", "two"] {
        store.create_group(own, &group(name), at(0)).await.expect("kept");
    }
    let members = ["one", "two"].map(|name| Member::User(person(name)));
    store.add_members(own, &first, &members, at(0)).await.expect("added");
    assert_eq!(store.figures().await.expect("counted").damaged_rows, 0);
    drop(store);
    DAMAGES.iter().for_each(|damage| folder.meddle(damage));
    let store = folder.store().expect("opened");
    for _ in 0..2 {
        assert_eq!(store.apps().await.expect("listed").len(), 1);
        assert_eq!(store.keys(KeyFilter::App(own)).await.expect("listed").len(), 1);
        assert_eq!(store.groups(own, None, 9).await.expect("listed").len(), 1);
        assert_eq!(store.users(own, None, 9).await.expect("listed").len(), 1);
        assert_eq!(store.members(own, &first, None, 9).await, Ok(members[..1].to_vec()));
    }
    assert_eq!(store.figures().await.expect("counted").damaged_rows, DAMAGES.len() as u64);
}

fn key(number: u64) -> ApiKey {
    ApiKey {
        id: KeyId::from_raw(number),
        app: Some(app(1).id),
        name: Label::new("a key").expect("fits"),
        scopes: Scopes::of(&[Scope::Admin]),
        hash: [number as u8; 32],
        created_at: at(0),
    }
}
