//! Reports of a server about the others over one database: their versions and roles, and their parked lanes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stentor_emulators::Policy;
use stentor_emulators::policy::ServiceError;
use stentor_stage::client::ApiClient;
use stentor_stage::keys::Keys;

use crate::node_duties::{failing_emulator, fcm_app, message_to, put_fcm, rows, send};
use crate::nodes::{LIMIT, Nodes, client, ended};
use crate::process::run;

/// The quota of the credential; the bucket shared by servers fills at 60 / 64 of it.
const QUOTA_PER_MINUTE: u64 = 6_400;
const SHARED_PER_MINUTE: u64 = 6_000;

/// Repeats a query until the response is as expected; returns the response.
async fn until_shown(client: &ApiClient, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let shown = client.get(path).await.unwrap();
        if is_expected(&shown) {
            return shown;
        }
        assert!(begun.elapsed() < LIMIT, "{shown}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_nothing_shows_what_the_others_are_and_which_credential_rests_there() {
    let Some(mut nodes) = Nodes::new() else { return };
    let emulator = failing_emulator("refused", ServiceError::new("PERMISSION_DENIED")).await;
    let endpoint = format!("https://{}", emulator.addr());
    let mut credential = Keys::make().unwrap().fcm_credential(&endpoint, emulator.ca_pem().unwrap());
    credential["quota"] = json!(QUOTA_PER_MINUTE);
    let more = "[node]\nsilence_max_ms = 1000\n[pipeline]\nquota_ramp_ms = 0\n";
    let settings = |roles: &str| format!("roles = [{roles}]\n{more}");
    let idle = nodes.start("asked", &settings("\"api\", \"scheduler\""));
    let _sends = nodes.start("sends", &settings("\"producer\", \"consumer\""));
    let root = client(&idle, &idle.root_key());

    let listed = root.get("/v1/nodes").await.unwrap();
    let of = |field: &str| {
        listed["nodes"].as_array().unwrap().iter().map(|node| node[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("roles"), [json!(["api", "scheduler"]), json!(["producer", "consumer"])]);
    assert_eq!(
        (of("answers"), of("fires")),
        (vec![json!(true), json!(false)], vec![json!(true), json!(false)])
    );
    assert_eq!(of("version"), [json!(env!("CARGO_PKG_VERSION")), json!(env!("CARGO_PKG_VERSION"))]);
    assert_eq!(of("instance")[0], root.get("/v1/status").await.unwrap()["instance"]);
    assert!(of("host").iter().all(|host| !host.as_str().unwrap().is_empty()), "{listed}");

    let (app, devices) = fcm_app(&root, &credential, "refused", 1).await;
    let path = format!("/v1/apps/{app}/credentials");
    send(&root.clone().for_app(app.clone()), &message_to(&devices), 1).await;
    let shown = until_shown(&root, &path, |shown| shown["credentials"][0]["state"] == "parked").await;
    assert_eq!(shown["credentials"][0]["reason"], "credential_refused", "{shown}");
    let quota = &shown["credentials"][0]["quota"];
    assert_eq!(
        (&quota["per_minute_now"], &quota["throttled_seconds"]),
        (&json!(SHARED_PER_MINUTE), &json!(0.0))
    );
    let data = nodes.directory.path().join("asked/data");
    let place = ["--server", idle.process.url(), "--data-dir", data.to_str().unwrap()];
    let table = run(&[&["node", "list"][..], &place].concat());
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(text.contains("producer, consumer") && text.contains("credential_refused"), "{text}");
    let listed = idle.ok(&["node", "list"]);
    let lane = &listed["nodes"][1]["parked"][0];
    assert_eq!((&lane["app"], &lane["provider"]), (&json!(app), &json!("fcm")), "{listed}");
    assert_eq!(listed["nodes"][0]["parked"], json!([]));

    // A new credential is tried again, and accepted now: if it were refused once more, it would soon be parked again.
    emulator.set_policy(Policy::default()).unwrap();
    let (other, devices) = fcm_app(&root, &credential, "taken", 1).await;
    put_fcm(&root, &app, &credential).await;
    until_shown(&root, &path, |shown| shown["credentials"][0]["state"] == "ok").await;
    let other = root.clone().for_app(other);
    for campaign in send(&other, &message_to(&devices), 1).await {
        ended(&other, &campaign).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_reported_of_itself_does_not_hide_what_it_knows_by_now() {
    let Some(mut nodes) = Nodes::new() else { return };
    let emulator = failing_emulator("refused", ServiceError::new("PERMISSION_DENIED")).await;
    let endpoint = format!("https://{}", emulator.addr());
    let credential = Keys::make().unwrap().fcm_credential(&endpoint, emulator.ca_pem().unwrap());
    // A minute between two reports.
    let alone = nodes.start("alone", "[node]\nsilence_max_ms = 300_000\n");
    let root = client(&alone, &alone.root_key());
    let (app, devices) = fcm_app(&root, &credential, "refused", 1).await;
    let path = format!("/v1/apps/{app}/credentials");
    send(&root.clone().for_app(app.clone()), &message_to(&devices), 1).await;
    until_shown(&root, &path, |shown| shown["credentials"][0]["state"] == "parked").await;
    // Simulates a report that it may have made a moment ago.
    let reported = "INSERT INTO parked_lanes
        SELECT instance, credentials.app, credentials.provider, 7, NULL, 'before' FROM nodes, credentials";
    rows(&nodes.database, reported);
    emulator.set_policy(Policy::default()).unwrap();
    put_fcm(&root, &app, &credential).await;
    assert_eq!(root.get(&path).await.unwrap()["credentials"][0]["state"], "ok");
}
