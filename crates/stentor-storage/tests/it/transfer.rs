//! A store is copied completely from one engine to another, and continues there.

use std::path::Path;
use stentor_storage::conformance::PlainChanges;

use stentor_core::device::ProviderKind;
use stentor_core::group::Member;
use stentor_core::name::{Locale, TimeZoneName};
use stentor_core::ports::store::{Channel, DeviceFilter, Store, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{
    Draft, Scene, accept_all, at, first, group, person, registration, tag, topic,
};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};
use stentor_storage::store_copy::{CopyStep, StoreCopy, UnkeepableRows, copy_store};
use stentor_storage::store_place::StorePlace;

use crate::postgres_server::server;

const APP: u64 = 1;
/// Several pages of rows, and a last one that is not full.
const DEVICES_COUNT: usize = 9_001;

/// Copies on a thread of its own: the driver waits in a way that the threads of a runtime refuse.
fn copy(
    from: StorePlace,
    to: StorePlace,
    report: impl FnMut(CopyStep) + Send,
) -> Result<StoreCopy, StoreError> {
    std::thread::scope(|scope| {
        let copied = scope.spawn(|| copy_store(&from, &to, UnkeepableRows::Refuse, report)).join();
        copied.unwrap_or_else(|_| Err(StoreError::Unavailable("it was broken off".to_owned())))
    })
}

fn file(path: &Path) -> StorePlace {
    StorePlace::Sqlite(path.to_owned())
}

fn database(address: &PostgresAddress) -> StorePlace {
    StorePlace::Postgres(Box::new(address.clone()))
}

/// Leaves something of everything in a store: one chunk of a campaign is settled, another is on its way, the rest waits.
async fn fill(store: &dyn Store) {
    let scene = Scene::in_app(store, APP).await;
    let devices = scene.fcm(DEVICES_COUNT).await;
    let mut given = registration(ProviderKind::Apns, "of-ann");
    given.facts.user = Some(person("ann"));
    given.facts.tags = vec![tag("a"), tag("b")];
    given.topics = vec![topic("news")];
    given.facts.locale = Some(Locale::new("de-DE").expect("a locale"));
    given.facts.time_zone = Some(TimeZoneName::new("Europe/Berlin").expect("a zone"));
    let of_ann = scene.register(given).await;
    store.subscribe(scene.app, &topic("news"), &devices[..100]).await.expect("subscribed");
    store.subscribe(scene.app, &topic("gone"), &devices[..50]).await.expect("subscribed");
    store.remove_topic(scene.app, &topic("gone")).await.expect("removed");
    store.create_group(scene.app, &group("friends"), at(0)).await.expect("made");
    let members = [Member::User(person("ann")), Member::Device(of_ann)];
    store.add_members(scene.app, &group("friends"), &members, at(0)).await.expect("joined");
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.settled(accept_all(&scene.lease(tickets[0].chunk, at(1)).await, at(2))).await;
    scene.lease(tickets[1].chunk, at(3)).await;
    let last_state = Draft::to(Target::Topic(topic("news"))).due(at(500)).for_gateway(r#"{"retain":true}"#);
    scene.accept(scene.new_message(last_state)).await.expect("kept");
}

/// Sends the remaining deliveries, and checks the data.
async fn go_on(store: &dyn Store) {
    let scene = Scene::again(store, APP);
    store.recover(scene.next(), at(10)).await.expect("recovered");
    let device = store.devices(scene.app, &DeviceFilter::default(), first(1)).await.expect("listed");
    assert_eq!(store.topics_of(scene.app, device[0].id).await.expect("listed"), [topic("news")]);
    let of_ann = DeviceFilter { user: Some(person("ann")), ..DeviceFilter::default() };
    let found = store.devices(scene.app, &of_ann, first(10)).await.expect("listed");
    let facts = &found[0].facts;
    assert_eq!((found.len(), facts.tags.len(), facts.locale.is_some()), (1, 2, true));
    let held = store
        .holders(scene.app, ProviderKind::Apns, std::slice::from_ref(&found[0].token))
        .await
        .expect("found");
    assert_eq!(held[0].as_ref().map(|device| device.id), Some(found[0].id), "the token is found");
    let campaigns = store.campaigns(scene.app, first(10)).await.expect("listed").readable;
    assert_eq!(campaigns.len(), 2);
    let last_state = store.retained(scene.app, &topic("news"), at(500)).await.expect("found");
    assert_eq!(last_state.map(Into::into), Some(campaigns[0].id), "the last state of the topic");
    // New devices get numbers of their own.
    let new = scene.register(registration(ProviderKind::Fcm, "new")).await;
    assert!(new > found[0].id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_to_a_database_and_back_and_goes_on_there() {
    let Some(server) = server() else { return };
    let (folder, target) = (tempfile::tempdir().expect("a folder"), server.database());
    let [source, back] = ["source.db", "back.db"].map(|name| folder.path().join(name));
    let open = |path: &Path| SqliteStore::open(path, SqliteSettings::store()).expect("opened");
    fill(&open(&source)).await;
    let there = copy(file(&source), database(&target.address()), |_| ()).expect("copied");
    assert!(!there.resumed);
    assert!(
        there.tables.iter().any(|(name, sum)| *name == "devices" && sum.rows == DEVICES_COUNT as u64 + 1)
    );
    let again = copy(database(&target.address()), file(&back), |_| ()).expect("copied back");
    assert_eq!(there.tables, again.tables, "what came back is what went");
    go_on(&open(&back)).await;
    let address = target.address();
    go_on(&PostgresStore::open(&address, &PostgresSettings::default()).expect("opened")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_broken_off_goes_on_and_no_server_uses_it_before() {
    let Some(server) = server() else { return };
    let (folder, target) = (tempfile::tempdir().expect("a folder"), server.database());
    let source = folder.path().join("source.db");
    fill(&SqliteStore::open(&source, SqliteSettings::store()).expect("opened")).await;
    let address = target.address();
    let broken = copy(file(&source), database(&address), |step| {
        assert!(!matches!(step, CopyStep::Copied { rows: 5_000.., .. }), "broken off here");
    });
    assert!(broken.is_err());
    let refused = PostgresStore::open(&address, &PostgresSettings::default());
    assert!(matches!(refused, Err(StoreError::Conflict(why)) if why.contains("was not finished")));
    let mut first = None;
    let copied = copy(file(&source), database(&address), |step| {
        first.get_or_insert(step);
    });
    assert!(copied.expect("copied").resumed);
    assert!(matches!(first, Some(CopyStep::Copied { rows: 5_000.., .. })), "{first:?}");
    go_on(&PostgresStore::open(&address, &PostgresSettings::default()).expect("opened")).await;
    let refused = copy(file(&source), database(&address), |_| ());
    assert!(matches!(refused, Err(StoreError::Conflict(why)) if why.contains("holds a store already")));
}

/// A file with a name in it that earlier versions let in and no engine keeps any more.
async fn file_with_a_nul(folder: &Path) -> StorePlace {
    let path = folder.join("stentor.db");
    let store = SqliteStore::open(&path, SqliteSettings::store()).expect("opened");
    let scene = Scene::in_app(&store, APP).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let channel = Channel { name: "whole".to_owned(), app: scene.app, device };
    store.put_channel("mqtt/dev_1", &channel).await.expect("kept");
    drop(store);
    let connection = rusqlite::Connection::open(&path).expect("opened");
    let sql = "INSERT INTO channels SELECT * FROM channels";
    let columns: Vec<String> = connection
        .prepare("SELECT name FROM pragma_table_info('channels')")
        .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
        .expect("listed");
    let selected =
        columns.iter().map(|name| if name == "name" { "'a' || char(0) || 'b'" } else { name.as_str() });
    let sql = sql.replace('*', &selected.collect::<Vec<_>>().join(", "));
    assert_eq!(connection.execute(&sql, []).expect("put"), 1);
    file(&path)
}

#[tokio::test]
async fn a_row_that_no_engine_keeps_is_named_and_may_be_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = file_with_a_nul(folder.path()).await;
    let database_of_test = server().map(|server| server.database());
    let other = Some(file(&folder.path().join("other.db")));
    let targets = [other, database_of_test.as_ref().map(|there| database(&there.address()))];
    for target in targets.into_iter().flatten() {
        let copied = |unkeepable| {
            std::thread::scope(|scope| {
                scope.spawn(|| copy_store(&source, &target, unkeepable, |_| {})).join().expect("no panic")
            })
        };
        let Err(StoreError::Conflict(why)) = copied(UnkeepableRows::Refuse) else { panic!("it was copied") };
        assert!(
            why.contains("channels") && why.contains(r"a\u0000b") && why.contains("--set-aside"),
            "{why}"
        );
        let copied = copied(UnkeepableRows::LeaveOut).expect("it goes on");
        assert_eq!((copied.left_out_count, copied.left_out.len(), copied.resumed), (1, 1, true));
        let left_out = &copied.left_out[0];
        assert!(left_out.table == "channels" && left_out.key.contains(r"a\u0000b"), "{left_out:?}");
        let channels = copied.tables.iter().find(|(name, _)| *name == "channels").expect("copied");
        assert_eq!(channels.1.rows, 1, "the others are there");
    }
}
