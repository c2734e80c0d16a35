//! Servers of two versions over one database, as during a rolling upgrade of an installation.
//!
//! `STENTOR_TEST_OLDER_PROGRAM` names the older program: `lab/upgrade/run` builds it from an older commit. Without it the test proves
//! nothing.

use std::io::Write as _;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};
use stentor_emulators::{ObserverConfig, SinkConfig, SinkEmulator};
use stentor_stage::client::ApiClient;
use stentor_stage::keys::Keys;

use crate::node_duties::{import, rows};
use crate::nodes::{Nodes, client, ended, until};
use crate::server::Server;

/// Devices of a campaign, and the quota of the credential per minute: the campaign lasts while every server is replaced.
const DEVICES: u64 = 900;
const QUOTA_PER_MINUTE: u64 = 1_800;
const SETTINGS: &str = "[pipeline]\nchunk_max_devices = 10\nquota_ramp_ms = 0\n";

/// Returns the older program; `None` if none is named.
fn older_program() -> Option<PathBuf> {
    let named = std::env::var_os("STENTOR_TEST_OLDER_PROGRAM").map(PathBuf::from);
    if named.is_none() {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "older"), "no older program: run lab/upgrade/run");
        let _ = writeln!(std::io::stderr(), "skipped: no older program (lab/upgrade/run)");
    }
    named
}

/// Ends a server like an upgrade does.
fn end(mut server: Server) {
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success(), "{}", server.process.log());
}

/// Sends to everyone; returns the campaign.
async fn send(app: &ApiClient) -> Value {
    let everyone = json!({"target": "everyone", "notification": {"body": "hello"}});
    app.post("/v1/messages", &everyone).await.unwrap()["campaign"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_replaced_one_by_one_while_a_campaign_runs() {
    let (Some(older), Some(mut nodes)) = (older_program(), Nodes::new()) else { return };
    let observer = Some(ObserverConfig::default());
    let sink = SinkEmulator::start(SinkConfig { observer, ..SinkConfig::default() }).await.unwrap();
    let endpoint = format!("https://{}", sink.addr());
    let mut credential = Keys::make().unwrap().apns_credential(&endpoint, sink.ca_pem().unwrap());
    credential["quota"] = json!(QUOTA_PER_MINUTE);
    let [one, two] = ["one", "two"].map(|name| nodes.start_program(&older, name, SETTINGS));
    let key = one.root_key();
    let root = client(&one, &key);
    let app =
        root.post("/v1/apps", &json!({"name": "shop"})).await.unwrap()["id"].as_str().unwrap().to_owned();
    root.put(&format!("/v1/apps/{app}/credentials/apns"), &credential).await.unwrap();
    let at = |server: &Server| client(server, &key).for_app(app.clone());
    import(&at(&one), DEVICES).await;
    let first = send(&at(&one)).await;
    until("the first pushes", || sink.requests() > 0).await;
    // The first server of the new version migrates the schema while the old ones run.
    let three = nodes.start("three", SETTINGS);
    let versions = rows(&nodes.database, "SELECT version FROM schema_version");
    let device = json!({"platform": "ios", "provider": "apns", "token": "f".repeat(64)});
    at(&two).post("/v1/devices", &device).await.unwrap();
    let second = send(&at(&two)).await;
    end(one);
    let one = nodes.start("one", SETTINGS);
    at(&one).get("/v1/messages").await.unwrap();
    end(two);
    let two = nodes.start("two", SETTINGS);
    let third = send(&at(&two)).await;
    for (campaign, devices) in [(first, DEVICES), (second, DEVICES + 1), (third, DEVICES + 1)] {
        let ledger = ended(&at(&three), &campaign).await;
        let facts = [&ledger["totals"]["accepted"], &ledger["balanced"], &ledger["duplicate_bound"]];
        assert_eq!(facts, [&json!(devices), &json!(true), &json!(0)], "{ledger}");
    }
    let accepted = sink.totals().unwrap().accepted;
    assert_eq!(accepted, 3 * DEVICES + 2, "each device once for each campaign, with schema {versions:?}");
    for server in [&one, &two, &three] {
        assert!(!server.process.log().contains("ERROR"), "{}", server.process.log());
    }
}
