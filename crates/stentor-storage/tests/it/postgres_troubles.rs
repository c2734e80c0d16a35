//! Troubles around the database of the store on PostgreSQL: two writers, broken connections, and refused values.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use stentor_core::device::ProviderKind;
use stentor_core::id::DeviceId;
use stentor_core::ports::store::{
    Channel, DeviceStore, Expansion, HealthStore, Idempotent, LeaseReply, MessageStore, Page, PipelineStore,
    ProducerTask, StoreError, WriteProof,
};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{Draft, Scene, app, at, chunks, lease_at, registration};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore};

use tokio::sync::Semaphore;

use crate::postgres_server::{PostgresServer, TestDatabase, server};

/// The number of campaigns started while devices are registered.
const STARTS_COUNT: u64 = 300;
/// The number of registrations that begin beside each start. It is small, because each start reads all devices.
const REGISTRATIONS_PER_START: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn no_device_below_the_bound_is_missing_when_another_store_registers_meanwhile() {
    let Some(server) = server() else { return };
    let database = server.database();
    let open = || PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let (one, other) = (open(), open());
    let scene = Scene::new(&one).await;
    scene.fcm(1).await;
    let (id, turns) = (scene.app, Arc::new(Semaphore::new(0)));
    let given = Arc::clone(&turns);
    let registering = tokio::spawn(async move {
        let mut count = 1;
        while let Ok(turn) = given.acquire().await {
            turn.forget();
            let given: Vec<_> =
                (0..3).map(|n| registration(ProviderKind::Fcm, &format!("other-{count}-{n}"))).collect();
            count += other.register(id, &given, at(0)).await.expect("registered").len() as u64;
        }
        count
    });
    let mut largest = 0;
    for start in 0..STARTS_COUNT {
        turns.add_permits(REGISTRATIONS_PER_START);
        let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
        let task = ProducerTask { message, app: id, provider: ProviderKind::Fcm };
        let how = Expansion { chunk_max_devices: 10_000, max_chunks: 100, now: at(0) };
        let tickets = one.expand(task, how).await.expect("expanded").tickets;
        let leased = one.lease(&chunks(&tickets), lease_at(at(1))).await.expect("leased");
        let audience = leased.into_iter().flat_map(|reply| match reply {
            LeaseReply::Leased(chunk) => chunk.devices,
            LeaseReply::Paused | LeaseReply::Void => panic!("a chunk that is not queued"),
        });
        let audience: Vec<u64> = audience.map(DeviceId::raw).collect();
        largest = audience.len() as u64;
        assert_eq!(
            audience,
            (1..=largest).collect::<Vec<_>>(),
            "start {start}: a number was seen before its time"
        );
    }
    turns.close();
    assert!(registering.await.expect("no panic") >= largest && largest > 1, "the two never met");
}

#[tokio::test]
async fn a_text_with_a_nul_is_refused_and_harms_nothing() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    let device = scene.fcm(1).await[0];
    let channel = |name: &str| Channel { name: name.to_owned(), app: scene.app, device };
    let refused = store.put_channel("program", &channel("a\0b")).await;
    assert!(matches!(refused, Err(StoreError::Conflict(why)) if why.contains("U+0000")));
    assert_eq!(store.figures().await.expect("read").damaged_rows, 0);
    store.put_channel("program", &channel("ab")).await.expect("kept");
}

/// The fate of the next commit.
const GOES_ON: u8 = 0;
const ANSWER_IS_LOST: u8 = 1;
const NEVER_ARRIVES: u8 = 2;

/// Stands between a store and the server's socket.
struct Middle {
    port: u16,
    next: Arc<AtomicU8>,
}

impl Middle {
    fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let next = Arc::new(AtomicU8::new(GOES_ON));
        let shared = Arc::clone(&next);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&socket) else { return };
                let next = Arc::clone(&shared);
                std::thread::spawn(move || pass_on(client, server, &next));
            }
        });
        Self { port, next }
    }
}

/// Forwards bytes in both directions until a commit meets its prepared fate.
fn pass_on(mut client: TcpStream, mut server: UnixStream, next: &AtomicU8) {
    let (mut back_from, mut back_to) = (server.try_clone().expect("two"), client.try_clone().expect("two"));
    std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let commits = buffer[..length].windows(7).any(|bytes| bytes == b"COMMIT\0");
        let what = if commits { next.swap(GOES_ON, Ordering::SeqCst) } else { GOES_ON };
        if what == ANSWER_IS_LOST {
            // The client receives nothing more, and the server has received everything.
            client.shutdown(std::net::Shutdown::Both).expect("shut");
        }
        if what == NEVER_ARRIVES || server.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (client.shutdown(std::net::Shutdown::Both), server.shutdown(std::net::Shutdown::Both));
}

/// Opens a store with one app through something that may lose commits and their answers.
async fn behind_a_middle(server: &PostgresServer, database: &TestDatabase) -> (Middle, PostgresStore) {
    let middle = Middle::start(server.socket());
    let address: PostgresAddress = database.url_at(middle.port).parse().expect("an address");
    let store = PostgresStore::open(&address, &PostgresSettings::default()).expect("opened");
    store.create_app(&app(1)).await.expect("kept");
    (middle, store)
}

#[tokio::test]
async fn of_a_commit_whose_answer_is_lost_it_is_asked_what_became_of_it() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (middle, store) = behind_a_middle(server, &database).await;
    let scene = Scene::again(&store, 1);
    scene.fcm(1).await;
    for (count, what) in [ANSWER_IS_LOST, NEVER_ARRIVES, ANSWER_IS_LOST].into_iter().enumerate() {
        middle.next.store(what, Ordering::SeqCst);
        let accepted = scene.accept(scene.new_message(Draft::to(Target::Everyone))).await;
        assert_eq!(accepted, Ok(Idempotent::Done(())), "it is kept, once, and said so");
        assert_eq!(middle.next.load(Ordering::SeqCst), GOES_ON, "the commit met it");
        let all = store.campaigns(scene.app, Page { after: 0, limit: 10 }).await.expect("listed").readable;
        assert_eq!(all.len(), count + 1);
    }
}

#[tokio::test]
async fn of_a_commit_whose_answer_is_lost_nothing_is_said_when_the_server_has_begun_another_life() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (middle, store) = behind_a_middle(server, &database).await;
    let scene = Scene::again(&store, 1);
    scene.fcm(1).await;
    scene.send(Draft::to(Target::Everyone)).await;
    // As after a crash or on a promoted standby, where a number that was committed may be another transaction's.
    database.command("UPDATE incarnation SET id = gen_random_uuid()");
    middle.next.store(ANSWER_IS_LOST, Ordering::SeqCst);
    let accepted = scene.accept(scene.new_message(Draft::to(Target::Everyone))).await;
    assert!(
        matches!(&accepted, Err(StoreError::Unavailable(why)) if why.contains("not known")),
        "{accepted:?}"
    );
    middle.next.store(NEVER_ARRIVES, Ordering::SeqCst);
    let accepted = scene.accept(scene.new_message(Draft::to(Target::Everyone))).await;
    assert_eq!(accepted, Ok(Idempotent::Done(())), "what was taken back is done again");
}

#[tokio::test]
async fn a_store_goes_on_when_the_server_ends_its_connections() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(2).await;
    database.command(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stentor'
        AND datname = current_database()",
    );
    let more = scene.fcm(1).await;
    assert_eq!(more[0].raw(), devices[1].raw() + 1);
    store.device(scene.app, more[0]).await.expect("read");
    store.keeps(WriteProof::Now).await.expect("written");
}
