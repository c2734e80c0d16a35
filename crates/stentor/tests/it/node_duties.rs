//! Joint duties of several servers over one database: firing schedules, keeping a quota, pausing a push service, reaching a device.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use stentor_emulators::policy::{Script, ScriptedAnswer, ServiceError};
use stentor_emulators::{
    FcmConfig, FcmEmulator, Policy, RunningFcm, SinkConfig, SinkEmulator, SinkLogConfig,
};
use stentor_stage::client::ApiClient;
use stentor_stage::keys::Keys;
use stentor_stage::postgres::PrivatePostgres;

use crate::nodes::{LIMIT, Nodes, client, ended, make_app, until};
use crate::process::stentor;
use crate::server::Server;

/// Number of equal responses from which the state of a push service is concluded.
const JUDGED_COUNT: u32 = 24;
/// Missed ticks of a schedule that are caught up one after the other.
const TICKS: u64 = 400;
/// A server fires a few ticks at a time: this number is reached long before all are fired.
const FIRST_TICKS: u64 = 8;

/// Runs a query on the database; returns the first column of its rows.
pub(crate) fn rows(database: &PrivatePostgres, sql: &str) -> Vec<String> {
    let output =
        Command::new("psql").args([&database.url(), "-X", "-A", "-t", "-q", "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the id suffixes of the present servers, the longest present first.
fn places(database: &PrivatePostgres) -> Vec<String> {
    rows(database, "SELECT id_place FROM nodes ORDER BY instance")
}

/// Creates a schedule that has missed this number of ticks, a minute apart.
async fn miss_ticks(app: &ApiClient, database: &PrivatePostgres) {
    let message = json!({"target": "everyone", "notification": {"body": "tick"}, "exact": true});
    let schedule = json!({"cron": "* * * * *", "time_zone": "UTC", "catch_up": "all", "message": message});
    app.post("/v1/schedules", &schedule).await.unwrap();
    let back =
        format!("UPDATE schedules SET next_due = next_due - {} WHERE next_due IS NOT NULL", TICKS * 60_000);
    rows(database, &back);
}

#[tokio::test]
async fn each_tick_of_a_schedule_fires_once_though_the_server_that_fires_is_stopped_and_wakes() {
    let Some(mut nodes) = Nodes::new() else { return };
    let settings = "[node]\nsilence_max_ms = 1000\n";
    let (one, other) = (nodes.start("one", settings), nodes.start("other", settings));
    let [first, second] = <[String; 2]>::try_from(places(&nodes.database)).unwrap();
    let app = make_app(&client(&one, &one.root_key()), 1).await;
    let app = client(&other, &one.root_key()).for_app(app);
    miss_ticks(&app, &nodes.database).await;
    let fired = || {
        rows(
            &nodes.database,
            "SELECT message & 255 FROM occurrences WHERE message IS NOT NULL ORDER BY instant",
        )
    };
    until("the first ticks", || fired().len() as u64 >= FIRST_TICKS).await;
    one.process.signal(Signal::STOP);
    until("the rest of the ticks", || fired().len() as u64 >= TICKS).await;
    one.process.signal(Signal::CONT);
    until("the return of the first server", || {
        one.process.log().contains("gave no sign of life for too long")
    })
    .await;
    let mut by = fired();
    by.dedup();
    assert_eq!(
        by,
        [first, second.clone()],
        "the second one goes on where the first one was, which fires no more"
    );
    let twice = "SELECT instant FROM messages WHERE schedule IS NOT NULL GROUP BY 1 HAVING count(*) > 1";
    assert_eq!(rows(&nodes.database, twice), Vec::<String>::new());
    // It is back, and its membership is the more recent one.
    until("both servers", || places(&nodes.database).len() == 2).await;
    assert_eq!(places(&nodes.database)[0], second);
    let gaps = "SELECT 1 FROM (SELECT instant - lag(instant) OVER (ORDER BY instant) AS gap FROM occurrences) AS gaps WHERE gap <> 60000";
    assert_eq!(rows(&nodes.database, gaps), Vec::<String>::new(), "no tick is left out");
}

/// Stores the credential with which an app sends through an emulator.
pub(crate) async fn put_fcm(root: &ApiClient, app: &str, credential: &Value) {
    root.put(&format!("/v1/apps/{app}/credentials/fcm"), credential).await.unwrap();
}

/// Starts an emulator that responds with this error for tokens with this prefix.
pub(crate) async fn failing_emulator(prefix: &str, error: ServiceError) -> RunningFcm {
    let script =
        Script { prefix: Some(prefix.into()), then: ScriptedAnswer::Error(error), ..Script::default() };
    let policy = Policy { scripts: vec![script], ..Policy::default() };
    FcmEmulator::start(FcmConfig { policy, ..FcmConfig::default() }).await.unwrap()
}

/// Creates an app with devices at FCM; returns its id and the devices' ids.
pub(crate) async fn fcm_app(
    root: &ApiClient,
    credential: &Value,
    name: &str,
    devices: u32,
) -> (String, Vec<Value>) {
    let made = root.post("/v1/apps", &json!({"name": name})).await.unwrap();
    let app = made["id"].as_str().unwrap().to_owned();
    put_fcm(root, &app, credential).await;
    let mut ids = Vec::new();
    for number in 0..devices {
        let device = json!({"platform": "android", "provider": "fcm", "token": format!("{name}-{number}")});
        ids.push(root.clone().for_app(app.clone()).post("/v1/devices", &device).await.unwrap()["id"].clone());
    }
    (app, ids)
}

/// Returns a request for a message to some devices.
pub(crate) fn message_to(devices: &[Value]) -> Value {
    json!({"target": {"devices": devices}, "notification": {"body": "hello"}})
}

/// Sends this number of messages; returns their campaigns.
pub(crate) async fn send(app: &ApiClient, message: &Value, count: usize) -> Vec<Value> {
    let mut campaigns = Vec::new();
    for _ in 0..count {
        campaigns.push(app.post("/v1/messages", message).await.unwrap()["campaign"].clone());
    }
    campaigns
}

/// Returns true if a lane of FCM is parked at a server.
async fn rests(root: &ApiClient) -> bool {
    let status = root.get("/v1/status").await.unwrap();
    let of = |one: &Value| one["provider"] == "fcm" && !one["parked"].as_array().unwrap().is_empty();
    status["providers"].as_array().unwrap().iter().any(of)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_service_that_asks_one_server_to_wait_is_left_alone_by_all() {
    let Some(mut nodes) = Nodes::new() else { return };
    let wait = ServiceError::new("QUOTA_EXCEEDED").retry_after_s(3_600);
    let emulator = failing_emulator("busy", wait).await;
    let endpoint = format!("https://{}", emulator.addr());
    let credential = Keys::make().unwrap().fcm_credential(&endpoint, emulator.ca_pem().unwrap());
    let (one, other) = (nodes.start("one", ""), nodes.start("other", ""));
    let key = one.root_key();
    let roots = [client(&one, &key), client(&other, &key)];
    let (busy, devices) = fcm_app(&roots[0], &credential, "busy", JUDGED_COUNT).await;
    let (to_all, to_one) = (message_to(&devices), message_to(&devices[..1]));
    let (free, devices) = fcm_app(&roots[0], &credential, "free", 1).await;
    let to_free = message_to(&devices);
    send(&roots[0].clone().for_app(busy.clone()), &to_all, 1).await;
    for root in &roots {
        let begun = Instant::now();
        while !rests(root).await {
            assert!(begun.elapsed() < LIMIT, "{}{}", one.process.log(), other.process.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let attempts =
        || (0..JUDGED_COUNT).map(|number| emulator.counts(&format!("busy-{number}")).attempts).sum::<u32>();
    let before = attempts();
    assert!((1..=JUDGED_COUNT).contains(&before), "one server has asked, once for each device: {before}");
    let mut waiting = Vec::new();
    for root in &roots {
        waiting.extend(send(&root.clone().for_app(busy.clone()), &to_one, 10).await);
    }
    // Both servers continue with later messages of another app.
    for root in &roots {
        let free = root.clone().for_app(free.clone());
        for campaign in send(&free, &to_free, 10).await {
            ended(&free, &campaign).await;
        }
    }
    assert_eq!(attempts(), before, "nobody has asked again");
    emulator.set_policy(Policy::default()).unwrap();
    put_fcm(&roots[1], &busy, &credential).await;
    let app = roots[0].clone().for_app(busy);
    for campaign in &waiting {
        assert_eq!(ended(&app, campaign).await["totals"]["accepted"], 1);
    }
}

/// The quota of the credential, per minute and per second.
const QUOTA_PER_MINUTE: u64 = 6_000;
const QUOTA_PER_SECOND: u64 = QUOTA_PER_MINUTE / 60;
/// Devices in a chunk, which is sent whole.
const CHUNK: u64 = 10;
/// A part of a minute that is long compared with the tokens that may be drawn and not yet spent (`SAVED_SECONDS`).
const WINDOW_SECONDS: u64 = 6;
const SAVED_SECONDS: u64 = 4;

/// Registers devices at APNs.
pub(crate) async fn import(app: &ApiClient, devices: u64) {
    let device = |number| {
        let token = format!("{number:064x}");
        json!({"platform": "ios", "provider": "apns", "token": token}).to_string() + "\n"
    };
    let lines: String = (0..devices).map(device).collect();
    let query = [("format", "ndjson".to_owned())];
    app.stream("/v1/devices/import", &query, "application/x-ndjson", lines.into()).await.unwrap();
}

/// Returns the largest number of responses within a window, for times in microseconds.
fn most_within(times: &[u64], window_seconds: u64) -> u64 {
    let window = window_seconds * 1_000_000;
    let within = |at: usize| times[at..].partition_point(|time| *time < times[at] + window);
    (0..times.len()).map(within).max().unwrap_or_default() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_that_send_with_one_credential_keep_its_quota_in_every_window() {
    let Some(mut nodes) = Nodes::new() else { return };
    let path = nodes.directory.path().join("answers.log");
    let log = Some(SinkLogConfig { path: path.clone(), token_prefix: String::new() });
    let sink = SinkEmulator::start(SinkConfig { log, ..SinkConfig::default() }).await.unwrap();
    let endpoint = format!("https://{}", sink.addr());
    let mut credential = Keys::make().unwrap().apns_credential(&endpoint, sink.ca_pem().unwrap());
    credential["quota"] = json!(QUOTA_PER_MINUTE);
    let settings = format!("[pipeline]\nchunk_max_devices = {CHUNK}\nquota_ramp_ms = 0\n");
    let [one, two, three] = ["one", "two", "three"].map(|name| nodes.start(name, &settings));
    let root = client(&one, &one.root_key());
    let app =
        root.post("/v1/apps", &json!({"name": "shop"})).await.unwrap()["id"].as_str().unwrap().to_owned();
    root.put(&format!("/v1/apps/{app}/credentials/apns"), &credential).await.unwrap();
    let app = root.for_app(app);
    let devices = QUOTA_PER_SECOND * 20;
    import(&app, devices).await;
    let begun = Instant::now();
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let campaign = app.post("/v1/messages", &everyone).await.unwrap()["campaign"].clone();
    let ledger = ended(&app, &campaign).await;
    assert_eq!(
        (&ledger["totals"]["accepted"], &ledger["duplicate_bound"]),
        (&json!(devices), &json!(0)),
        "{ledger}"
    );
    let seconds = begun.elapsed().as_secs();
    let text = std::fs::read_to_string(path).unwrap();
    let time = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let mut times: Vec<u64> = text.lines().map(time).collect();
    times.sort_unstable();
    assert_eq!(times.len() as u64, devices);
    let most = most_within(&times, WINDOW_SECONDS);
    // The shared bucket fills more slowly to that extent, so that a whole minute, including all of that, does not exceed the quota.
    let allowed = QUOTA_PER_MINUTE * (WINDOW_SECONDS + SAVED_SECONDS) / (60 + SAVED_SECONDS) + CHUNK;
    assert!(most <= allowed, "{most} in {WINDOW_SECONDS} s, {allowed} are allowed");
    let key = one.root_key();
    assert_shared(&nodes.database, seconds, [&one, &two, &three].map(|server| client(server, &key))).await;
}

/// Checks that several servers have sent, and that the row of the quota was written at most once per second and server.
async fn assert_shared(database: &PrivatePostgres, seconds: u64, roots: [ApiClient; 3]) {
    let written = rows(database, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'quota_levels'");
    let written: u64 = written[0].parse().unwrap();
    assert!(written <= 3 * (seconds + 5), "{written} times in {seconds} s");
    let mut attempts = Vec::new();
    for root in roots {
        let status = root.get("/v1/status").await.unwrap();
        let mut providers = status["providers"].as_array().unwrap().iter();
        attempts.push(providers.find(|one| one["provider"] == "apns").unwrap()["attempts"].as_u64().unwrap());
    }
    assert!(attempts.iter().filter(|attempts| **attempts > 0).count() >= 2, "one sent alone: {attempts:?}");
}

/// A device of the gateway that ends after one message, or with the test.
struct Device(Child);

impl Device {
    fn start(nodes: &Nodes, server: &Server, key: &str) -> Self {
        let folder = nodes.directory.path().join("device");
        let folder = folder.to_str().unwrap();
        let base = ["device", "run", "--server", server.process.url(), "--folder", folder];
        Self(stentor(&[&base[..], &["--key", key, "--count", "1", "--no-desktop"]].concat()).spawn().unwrap())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the number of devices connected to a server.
async fn sessions(server: &ApiClient) -> f64 {
    let metrics = server.text("/metrics").await.unwrap();
    let lines = metrics.lines().filter(|line| line.starts_with("stentor_gateway_sessions{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[tokio::test]
async fn a_device_at_one_server_gets_what_another_accepts_and_its_receipt_is_in_the_ledger() {
    let Some(mut nodes) = Nodes::new() else { return };
    let sends = nodes.start("sends", "roles = [\"api\", \"scheduler\", \"producer\", \"consumer\"]\n");
    let connects = nodes.start("connects", "roles = [\"gateway\"]\n");
    let made = sends.ok(&["app", "create", "kiosk"]);
    let join = sends.ok(&["app", "key", "create", "--name", "devices", "--scope", "join"]);
    let mut device = Device::start(&nodes, &connects, join["secret"].as_str().unwrap());
    let at_gateway = client(&connects, &sends.root_key());
    let begun = Instant::now();
    while sessions(&at_gateway).await < 1.0 {
        assert!(begun.elapsed() < LIMIT, "{}", connects.process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let app = client(&sends, &sends.root_key()).for_app(made["id"].as_str().unwrap().to_owned());
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    let campaign = app.post("/v1/messages", &everyone).await.unwrap()["campaign"].clone();
    until("the end of the device", || device.0.try_wait().unwrap().is_some()).await;
    assert!(device.0.wait().unwrap().success());
    let begun = Instant::now();
    loop {
        let ledger = ended(&app, &campaign).await;
        if ledger["totals"]["delivered"] == 1 {
            assert_eq!(
                (&ledger["totals"]["accepted"], &ledger["balanced"]),
                (&json!(1), &json!(true)),
                "{ledger}"
            );
            break;
        }
        assert!(begun.elapsed() < LIMIT, "{ledger}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
