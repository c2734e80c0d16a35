//! Several servers over one PostgreSQL database: messages accepted by one are sent by another, and the death of one loses nothing.

mod conditions;
mod devices;

use crate::process::{PROGRAM, run_json};
use crate::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use stentor_stage::client::{ApiClient, Key};
use stentor_stage::nats::PrivateNats;
use stentor_stage::postgres::PrivatePostgres;
use stentor_stage::server::share_secrets;
use tempfile::TempDir;

/// Timeout of each step on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Longest time for which another server may still accept something revoked.
const REVOKED_WITHIN: Duration = Duration::from_secs(1);

/// Servers in directories of their own, over one database.
pub(crate) struct Nodes {
    pub(crate) directory: TempDir,
    pub(crate) database: PrivatePostgres,
    first: Option<String>,
}

impl Nodes {
    /// Creates the database; `None` if PostgreSQL is not installed.
    pub(crate) fn new() -> Option<Self> {
        if !Path::new("/usr/lib/postgresql").exists() {
            let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|word| word == "postgres"), "PostgreSQL is not installed");
            return None;
        }
        let database = PrivatePostgres::start().unwrap();
        Some(Self { directory: TempDir::new().unwrap(), database, first: None })
    }

    /// Starts a server with a name; those after the first get its secrets.
    pub(crate) fn start(&mut self, name: &str, settings: &str) -> Server {
        self.start_program(Path::new(PROGRAM), name, settings)
    }

    /// Starts a server of another version.
    pub(crate) fn start_program(&mut self, program: &Path, name: &str, settings: &str) -> Server {
        let own = self.directory.path().join(name);
        std::fs::create_dir_all(&own).unwrap();
        if let Some(first) = self.first.as_ref().filter(|first| *first != name) {
            let first = self.directory.path().join(first);
            share_secrets(&first.join("data"), &own.join("data")).unwrap();
        }
        self.first.get_or_insert_with(|| name.to_owned());
        let environment = self.database.environment();
        let mut environment: Vec<(&str, &str)> =
            environment.iter().map(|(variable, value)| (*variable, value.to_str().unwrap())).collect();
        environment.push(("STENTOR__OUTBOUND__ALLOWED_NETWORKS", "loopback"));
        Server::start_program(program, &environment, &own, settings)
    }
}

pub(crate) fn client(server: &Server, key: &str) -> ApiClient {
    ApiClient::new(server.process.url(), Some(Key(key.to_owned())), None).unwrap()
}

/// Creates an app with a credential and devices; returns its id.
pub(crate) async fn make_app(root: &ApiClient, devices: u32) -> String {
    let app =
        root.post("/v1/apps", &json!({"name": "shop"})).await.unwrap()["id"].as_str().unwrap().to_owned();
    root.put(&format!("/v1/apps/{app}/credentials/null"), &json!({})).await.unwrap();
    let own = root.clone().for_app(app.clone());
    for number in 0..devices {
        let device = json!({"platform": "android", "provider": "null", "token": format!("token-{number}")});
        own.post("/v1/devices", &device).await.unwrap();
    }
    app
}

/// Repeats a request until it is refused: each request sent later than the limit after a removal must be.
async fn refused_in_time(what: &str, mut is_taken: impl AsyncFnMut() -> bool) {
    let removed = Instant::now();
    loop {
        // The duration of a response depends on the machine and does not count.
        let elapsed = removed.elapsed();
        if !is_taken().await {
            return;
        }
        assert!(elapsed < REVOKED_WITHIN, "{what} after {elapsed:?}");
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a campaign is over; returns its ledger.
pub(crate) async fn ended(client: &ApiClient, campaign: &Value) -> Value {
    let (path, begun) = (format!("/v1/campaigns/{}", campaign.as_str().unwrap()), Instant::now());
    loop {
        let ledger = client.get(&path).await.unwrap();
        if ledger["state"] == "finished" {
            return ledger;
        }
        assert!(begun.elapsed() < LIMIT, "{ledger}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_a_server_with_the_api_alone_accepts_is_sent_by_one_without() {
    let Some(mut nodes) = Nodes::new() else { return };
    let api = nodes.start("api", "roles = [\"api\"]\n");
    let worker = nodes.start("worker", "roles = [\"scheduler\", \"producer\", \"consumer\"]\n");
    let root = client(&api, &api.root_key());
    let app = make_app(&root, 5).await;
    let app = root.for_app(app);
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let accepted = app.post("/v1/messages", &everyone).await.unwrap();
    let ledger = ended(&app, &accepted["campaign"]).await;
    assert_eq!((&ledger["totals"]["accepted"], &ledger["balanced"]), (&json!(5), &json!(true)), "{ledger}");
    let bare = client(&worker, &api.root_key());
    assert!(bare.probe("/readyz").await.unwrap().0.is_success());
    assert_eq!(bare.probe("/v1/apps").await.unwrap().0.as_u16(), 404, "it serves no API");
}

#[tokio::test]
async fn a_key_that_is_removed_on_one_server_is_refused_on_another_within_a_second() {
    let Some(mut nodes) = Nodes::new() else { return };
    let (one, other) = (nodes.start("one", ""), nodes.start("other", ""));
    let root = client(&one, &one.root_key());
    let app = make_app(&root, 0).await;
    let keys = format!("/v1/apps/{app}/keys");
    let made = root.post(&keys, &json!({"name": "ci", "scopes": ["admin"]})).await.unwrap();
    let with_key = client(&other, made["secret"].as_str().unwrap());
    let path = format!("/v1/apps/{app}/keys");
    with_key.get(&path).await.expect("a new key is known everywhere at once");
    root.delete(&format!("{keys}/{}", made["id"].as_str().unwrap())).await.unwrap();
    refused_in_time("the key is still taken", async || with_key.get(&path).await.is_ok()).await;
}

#[tokio::test]
async fn a_credential_that_is_removed_on_one_server_is_refused_on_another_within_a_second() {
    let Some(mut nodes) = Nodes::new() else { return };
    let (one, other) = (nodes.start("one", ""), nodes.start("other", ""));
    let root = client(&one, &one.root_key());
    let app = make_app(&root, 1).await;
    let elsewhere = client(&other, &one.root_key()).for_app(app.clone());
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let made = Instant::now();
    while elsewhere.post("/v1/messages", &everyone).await.is_err() {
        assert!(made.elapsed() < LIMIT, "a new credential is not known elsewhere");
    }
    root.delete(&format!("/v1/apps/{app}/credentials/null")).await.unwrap();
    let send = async || elsewhere.post("/v1/messages", &everyone).await.is_ok();
    refused_in_time("it is still sent with", send).await;
}

#[tokio::test]
async fn what_a_killed_server_has_accepted_the_other_sends() {
    let Some(mut nodes) = Nodes::new() else { return };
    let mut one = nodes.start("one", "roles = [\"api\"]\n");
    let root = client(&one, &one.root_key());
    let app = make_app(&root, 3).await;
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let accepted = root.for_app(app.clone()).post("/v1/messages", &everyone).await.unwrap();
    let key = one.root_key();
    one.process.kill();
    let other = nodes.start("other", "");
    let app = client(&other, &key).for_app(app);
    assert_eq!(ended(&app, &accepted["campaign"]).await["totals"]["accepted"], 3);
}

#[tokio::test]
async fn a_server_that_was_stopped_too_long_learns_that_it_counts_as_dead_and_goes_on() {
    let Some(mut nodes) = Nodes::new() else { return };
    let settings = "[node]\nsilence_max_ms = 1000\n";
    let (one, other) = (nodes.start("one", settings), nodes.start("other", settings));
    let root = client(&other, &one.root_key());
    let app = make_app(&root, 3).await;
    one.process.signal(Signal::STOP);
    until("the death of the first server", || other.process.log().contains("gave no sign of life")).await;
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let app = root.for_app(app);
    let accepted = app.post("/v1/messages", &everyone).await.unwrap();
    assert_eq!(ended(&app, &accepted["campaign"]).await["totals"]["accepted"], 3);
    one.process.signal(Signal::CONT);
    until("its return", || one.process.log().contains("gave no sign of life for too long")).await;
    let on_one = client(&one, &one.root_key()).for_app(app.app().unwrap().to_owned());
    let accepted = on_one.post("/v1/messages", &everyone).await.unwrap();
    assert_eq!(ended(&on_one, &accepted["campaign"]).await["totals"]["accepted"], 3);
}

#[test]
fn a_server_without_the_secrets_of_the_others_is_refused_with_what_to_do() {
    let Some(mut nodes) = Nodes::new() else { return };
    let _first = nodes.start("first", "");
    let stranger = nodes.directory.path().join("stranger");
    std::fs::create_dir_all(stranger.join("data")).unwrap();
    let first = nodes.directory.path().join("first/data/seal.key");
    std::fs::copy(first, stranger.join("data/seal.key")).unwrap();
    let config = stranger.join("stentor.toml");
    let url = nodes.database.environment()[1].1.to_str().unwrap().to_owned();
    std::fs::write(&config, format!("[store]\nengine = \"postgres\"\nurl = \"{url}\"\n")).unwrap();
    let (data, config) = (stranger.join("data"), config.to_str().unwrap().to_owned());
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--config", &config];
    let (code, report) = run_json(&arguments);
    assert_eq!(code, 1, "{report}");
    assert!(report["error"].as_str().unwrap().contains("key.pepper"), "{report}");
}

#[tokio::test]
async fn a_server_takes_what_all_must_have_alike_from_the_folder_that_it_is_given() {
    let Some(mut nodes) = Nodes::new() else { return };
    let first = nodes.start("first", "");
    let shared = nodes.directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    for name in ["key.pepper", "root.key", "seal.key", "service.key"] {
        std::fs::copy(nodes.directory.path().join("first/data").join(name), shared.join(name)).unwrap();
    }
    // It gets nothing else.
    nodes.first = None;
    let second = nodes.start("second", &format!("[secrets]\nshared_dir = \"{}\"\n", shared.display()));
    let app = make_app(&client(&first, &first.root_key()), 1).await;
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let app = client(&second, &first.root_key()).for_app(app);
    let accepted = app.post("/v1/messages", &everyone).await.unwrap();
    assert_eq!(ended(&app, &accepted["campaign"]).await["totals"]["accepted"], 1);
}

#[tokio::test]
async fn what_one_server_accepts_others_begin_expand_and_send_without_a_look() {
    let Some(mut nodes) = Nodes::new() else { return };
    // All intervals are an hour: each action must be triggered by a notification.
    let settings = |role: &str| {
        let looks = "scheduler_max_sleep_ms = 3_600_000\nproducers_interval_ms = 3_600_000\nrepublish_interval_ms = 3_600_000";
        format!("roles = [\"{role}\"]\n[node]\nlook_interval_ms = 3_600_000\n[pipeline]\n{looks}\n")
    };
    let api = nodes.start("api", &settings("api"));
    let _others = ["scheduler", "producer", "consumer"].map(|role| nodes.start(role, &settings(role)));
    let root = client(&api, &api.root_key());
    let app = make_app(&root, 5).await;
    let app = root.for_app(app);
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let accepted = app.post("/v1/messages", &everyone).await.unwrap();
    assert_eq!(ended(&app, &accepted["campaign"]).await["totals"]["accepted"], 5);
}

/// Injects faults of these kinds and checks that nothing was lost, stuck or repeated without a mark.
fn check_faults(arguments: &[&str], kinds: &[&str]) {
    let faults = kinds.len().to_string();
    let mut all =
        vec!["lab", "cluster", "--nodes", "3", "--faults", &faults, "--devices", "600", "--seed", "3"];
    all.extend(["--gateway-devices", "20"]);
    all.extend(arguments);
    kinds.iter().for_each(|kind| all.extend(["--kind", kind]));
    let (code, report) = run_json(&all);
    assert_eq!(code, 0, "{report}");
    let facts = [&report["lost"], &report["stuck"], &report["unmarked_duplicates"]];
    assert_eq!(facts, [0, 0, 0], "{report}");
    assert_eq!(report["ledger_balanced"], true, "{report}");
    assert!(report["duplicates"].as_u64() <= report["duplicate_bound"].as_u64(), "{report}");
    let counts = [
        &report["beside"]["messages"],
        &report["controlled"]["paused"],
        &report["gateway_devices"]["confirmed"],
        &report["gateway_devices"]["upstream_read"],
    ];
    assert!(counts.iter().all(|count| count.as_u64() > Some(0)), "{report}");
    // Faults that require root are skipped, and the others are repeated more often.
    let skipped = report["skipped"].as_object().unwrap().len();
    assert_eq!(report["faults"], json!(kinds.len()), "{report}");
    assert_eq!(report["faults_by_kind"].as_object().unwrap().len(), kinds.len() - skipped, "{report}");
}

#[test]
fn r2_a_full_disk_of_the_database_and_a_clock_that_is_wrong_lose_nothing() {
    if Nodes::new().is_some() {
        check_faults(&["--no-standby"], &["database-disk-full", "node-clock", "node-kill"]);
    }
}

#[test]
fn r3_servers_and_their_database_are_killed_and_a_standby_promoted_and_nothing_is_lost() {
    if Nodes::new().is_some() {
        let kinds = ["node-absence", "node-pause", "database-promotion"];
        check_faults(&["--roles", "mixed"], &kinds);
    }
}

#[test]
fn a_server_that_dies_while_its_clock_is_ahead_leaves_nothing_late() {
    if Nodes::new().is_some() {
        check_faults(&["--no-standby"], &["node-clock-death", "node-kill"]);
    }
}

#[test]
fn r20_a_stream_that_is_deleted_and_nats_servers_that_are_killed_and_robbed_of_it_lose_nothing() {
    let nats = PrivateNats::start();
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(nats.is_ok() || !required.split(',').any(|word| word == "nats"), "no nats-server is installed");
    if nats.is_ok() && Nodes::new().is_some() {
        check_faults(&["--queue", "nats", "--no-standby"], &["queue-deletion", "queue-kill", "queue-wipe"]);
    }
}

#[test]
fn r20_nats_servers_that_cannot_reach_each_other_or_a_server_lose_nothing() {
    let nats = PrivateNats::start();
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(nats.is_ok() || !required.split(',').any(|word| word == "nats"), "no nats-server is installed");
    if nats.is_ok() && Nodes::new().is_some() {
        let cuts = ["queue-follower-partition", "node-from-queue-leader", "node-kill"];
        check_faults(&["--queue", "nats", "--no-standby"], &cuts);
    }
}
