//! A pooler between the store and its database: the real PgBouncer, in each of its modes.

use std::fs::Permissions;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stentor_core::campaign::CampaignState;
use stentor_core::ports::store::StoreError;
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, at};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore, inspect};

use crate::postgres_server::{PostgresServer, TestDatabase, as_user, free_port, server};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running pooler, which ends with the value.
struct Pooler {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Starts one; `None` where none is installed.
    ///
    /// # Panics
    ///
    /// When `STENTOR_TEST_REQUIRE` names `pgbouncer` and there is none.
    fn start(server: &PostgresServer, mode: &str, pool_max: usize) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|one| one == "pgbouncer"), "no PgBouncer is installed");
            let _ = writeln!(std::io::stderr(), "skipped: no PgBouncer at {PROGRAM}");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("others may read");
        let (port, file) = (free_port(), folder.path().join("pgbouncer.ini"));
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
             default_pool_size = {pool_max}\nserver_lifetime = 3600\n",
            server.port()
        );
        std::fs::write(&file, settings).expect("written");
        let child = as_user(Path::new(PROGRAM))
            .arg("--quiet")
            .arg(&file)
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the pooler does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { child, port, _folder: folder })
    }

    fn address(&self, database: &TestDatabase) -> PostgresAddress {
        database.url_at(self.port).parse().expect("an address")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It is started by a program that becomes it: its number is the pooler's.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn behind_a_pooler_that_shares_sessions_no_store_opens_and_it_says_why() {
    let Some(server) = server() else { return };
    let database = server.database();
    for pool_max in [2, 20] {
        let Some(pooler) = Pooler::start(server, "transaction", pool_max) else { return };
        let opened = PostgresStore::open(&pooler.address(&database), &PostgresSettings::default());
        let Err(StoreError::Conflict(why)) = opened.map(drop) else { panic!("it opened") };
        assert!(why.contains("pool_mode"), "{why}");
        assert!(inspect(&pooler.address(&database)).expect("looked at").is_session_shared);
    }
    assert_eq!(database.count("pg_prepared_xacts"), 0);
}

#[tokio::test]
async fn behind_a_pooler_that_keeps_sessions_messages_are_accepted_and_sent() {
    let Some(server) = server() else { return };
    let database = server.database();
    let Some(pooler) = Pooler::start(server, "session", 20) else { return };
    let store =
        PostgresStore::open(&pooler.address(&database), &PostgresSettings::default()).expect("opened");
    let scene = Scene::new(&store).await;
    scene.fcm(5).await;
    for round in 0..5 {
        let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        scene.deliver(&tickets, at(round)).await;
        assert_eq!(scene.state(message).await, CampaignState::Finished);
    }
    assert!(!inspect(&pooler.address(&database)).expect("looked at").is_session_shared);
}

#[tokio::test]
async fn a_store_whose_pooler_has_no_connection_free_says_so_instead_of_waiting_for_ever() {
    let Some(server) = server() else { return };
    let database = server.database();
    let Some(pooler) = Pooler::start(server, "session", 2) else { return };
    let settings =
        PostgresSettings { patience_ms: 500, start_patience_ms: 1_500, ..PostgresSettings::default() };
    let open = |address: PostgresAddress| PostgresStore::open(&address, &PostgresSettings::default());
    let first = open(pooler.address(&database)).expect("the first has both connections");
    let scene = Scene::new(&first).await;
    scene.fcm(1).await;
    let begun = Instant::now();
    let opened = PostgresStore::open(&pooler.address(&database), &settings);
    let Err(StoreError::Unavailable(why)) = opened.map(drop) else { panic!("it opened") };
    assert!(why.contains("pooler"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}
