//! Receipts for rows that make no sense: they are set aside, those of other chunks are written, and the device is not given the message again.

use rusqlite::Connection;
use stentor_core::device::ProviderKind;
use stentor_core::id::{ChunkId, DeviceId, MessageId};
use stentor_core::ports::store::{Receipt, ReceiptKind, Store};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, at};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

use crate::postgres_server::server;

/// The damages of a message's rows; `{message}` stands for its number and `{bytes}` for a byte that no column accepts.
const DAMAGES: [&str; 5] = [
    "UPDATE ledgers SET accepted = 0 WHERE campaign = {message}",
    "UPDATE ledgers SET audience = -1 WHERE campaign = {message}",
    "DELETE FROM ledgers WHERE campaign = {message}",
    "UPDATE chunks SET records = {bytes} WHERE message = {message}",
    "UPDATE chunks SET attempt = -1 WHERE message = {message}",
];

struct Sent {
    message: MessageId,
    chunk: ChunkId,
    device: DeviceId,
}

async fn sent(scene: &Scene<'_>) -> Sent {
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let (message, tickets) = scene.send_wide(Draft::to(Target::Devices(vec![device]))).await;
    scene.deliver(&tickets, at(1)).await;
    Sent { message, chunk: tickets[0].chunk, device }
}

/// Damages a message of one app in each way, and confirms it together with a sound one of another.
async fn confirm_beside_damage(store: &dyn Store, damage: impl Fn(&str, MessageId)) {
    for (turn, sql) in (1..).step_by(2).zip(DAMAGES) {
        let (broken, sound) = (Scene::in_app(store, turn).await, Scene::in_app(store, turn + 1).await);
        let (bad, good) = (sent(&broken).await, sent(&sound).await);
        damage(sql, bad.message);
        let receipt =
            |of: &Sent| Receipt { chunk: of.chunk, device: of.device, kind: ReceiptKind::Delivered };
        let replies = store.receive(vec![receipt(&bad), receipt(&good)], at(2)).await;
        let replies = replies.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(replies[1], "{sql}: the other app's is written");
        let ledger = store.ledger(sound.app, good.message.into()).await.expect("a ledger");
        assert_eq!(ledger.providers[0].delivered, 1, "{sql}");
        let waiting = store.pending(&[(broken.app, bad.device)], 9, at(3)).await.expect("listed");
        assert!(waiting[0].is_empty(), "{sql}: it would be given again and again");
    }
    assert!(store.figures().await.expect("counted").damaged_rows > 0, "what was set aside is counted");
}

#[tokio::test]
async fn receipts_for_damaged_rows_are_set_aside_and_all_others_written_in_sqlite() {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("stentor.db");
    let store = SqliteStore::open(&path, SqliteSettings::store()).expect("opened");
    confirm_beside_damage(&store, |sql, message| {
        let sql = sql.replace("{message}", &message.raw().to_string()).replace("{bytes}", "x'ff'");
        let connection = Connection::open(&path).expect("opened");
        assert_eq!(connection.execute(&sql, []).expect("damaged"), 1, "{sql}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_for_damaged_rows_are_set_aside_and_all_others_written_in_postgresql() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    confirm_beside_damage(&store, |sql, message| {
        let bytes = "decode('ff', 'hex')";
        database.command(&sql.replace("{message}", &message.raw().to_string()).replace("{bytes}", bytes));
    })
    .await;
}
