//! Visibility from outside: dead tokens, deliveries, the reason why a campaign stands still, metrics, pages for people.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, redirect};
use serde_json::{Value, json};
use stentor_server::face::rest::{error_codes, openapi_json};

use crate::harness::{Reading, Server, Tenant, server};

/// Devices of an audience large enough for its lane to be parked when none is reached.
const MANY: usize = 30;

/// Polls until a value is found.
async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(Instant::now() < patience, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns an address without a listener.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// Creates an app with an APNs credential for this endpoint.
async fn sender_to(server: &Server, address: &str) -> Tenant {
    let tenant = server.tenant().await;
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let credential = json!({"key_p8": key, "key_id": "KEY0123456", "team_id": "TEAM012345",
        "bundle_id": "com.example.app", "endpoint": format!("http://{address}")});
    let path = format!("/v1/apps/{}/credentials/apns", tenant.id);
    let put = server.send(&tenant, Method::PUT, &path).json(&credential).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    tenant
}

/// Sends to many unreachable devices; returns the campaign.
async fn send_to_nobody(server: &Server, tenant: &Tenant) -> String {
    let device = |number: usize| json!({"platform": "apple", "token": format!("{number:064x}")});
    let devices: Vec<_> = (1..=MANY).map(device).collect();
    server.post(tenant, "/v1/devices/bulk", json!({"devices": devices})).await;
    let message = json!({"target": "everyone", "notification": {"title": "Hello"}});
    let sent = server.post(tenant, "/v1/messages", message).await;
    sent["campaign"].as_str().expect("a campaign").to_owned()
}

#[tokio::test]
async fn devices_are_listed_by_the_word_for_their_state() {
    let server = server().await;
    let tenant = server.sender().await;
    let active = server.device(&tenant, "lives").await;
    let bare = json!({"target": {"token": {"platform": "android", "provider": "null", "token": "bare"}}, "data": {"k": "v"}});
    let sent = server.post(&tenant, "/v1/messages", bare).await;
    server.ended(&tenant, sent["campaign"].as_str().expect("an id")).await;
    let listed = async |state: &str| {
        let list = server.get(&tenant, &format!("/v1/devices?state={state}")).await;
        let devices = list["devices"].as_array().expect("a list").clone();
        assert!(devices.iter().all(|device| device["state"] == state), "{devices:?}");
        devices.into_iter().map(|device| device["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("active").await, [active]);
    assert_eq!((listed("retired").await.len(), listed("unlisted").await.len()), (0, 1));
    let refused = server.send(&tenant, Method::GET, "/v1/devices?state=dead").read().await;
    assert!(refused.refusal().0 < 500 && refused.body.to_string().contains("retired"), "{refused:?}");
}

#[tokio::test]
async fn the_deliveries_of_a_message_are_listed_by_state_and_by_the_page() {
    let server = server().await;
    let tenant = server.sender().await;
    let mut devices = BTreeSet::new();
    for number in 0..5 {
        devices.insert(server.device(&tenant, &format!("token-{number}")).await);
    }
    let sent = server.post(&tenant, "/v1/messages", json!({"target": "everyone", "data": {"k": "v"}})).await;
    server.ended(&tenant, sent["campaign"].as_str().expect("an id")).await;
    let path = format!("/v1/messages/{}/deliveries", sent["id"].as_str().expect("an id"));
    let (mut found, mut next) = (BTreeSet::new(), None);
    for page in 0.. {
        let after = next.as_deref().map(|next: &str| format!("&after={next}")).unwrap_or_default();
        let list = server.get(&tenant, &format!("{path}?state=accepted&limit=2{after}")).await;
        let deliveries = list["deliveries"].as_array().expect("a list");
        assert!(deliveries.len() <= 2 && page < 4, "{list}");
        for one in deliveries {
            assert_eq!(
                (&one["state"], &one["reason"], &one["attempt"]),
                (&json!("accepted"), &json!("none"), &json!(1))
            );
            assert!(found.insert(one["device"].as_str().expect("an id").to_owned()), "listed twice: {one}");
        }
        next = list["next"].as_str().map(str::to_owned);
        if next.is_none() {
            break;
        }
    }
    assert_eq!(found, devices);
    assert_eq!(server.get(&tenant, &format!("{path}?state=rejected")).await, json!({"deliveries": []}));
    let all = server.get(&tenant, &format!("{path}?state=accepted&limit=5")).await;
    assert_eq!((all["deliveries"].as_array().map(Vec::len), &all["next"]), (Some(5), &json!(null)));
    assert_eq!(server.get(&tenant, &path).await["deliveries"].as_array().map(Vec::len), Some(5));
    for wrong in ["state=lost", "after=chk_1", "limit=0"] {
        let refused = server.send(&tenant, Method::GET, &format!("{path}?{wrong}")).read().await;
        assert!((400..500).contains(&refused.refusal().0), "{wrong}: {refused:?}");
    }
    let other = server.tenant().await;
    assert_eq!(server.send(&other, Method::GET, &path).read().await.refusal().0, 404);
}

#[tokio::test]
async fn a_list_of_campaigns_says_to_whom_and_what_and_how_far_each_is() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "one").await;
    let title = "é".repeat(200);
    for target in [json!("everyone"), json!({"topic": "news"})] {
        let device = json!({"platform": "android", "provider": "null", "token": "two", "topics": ["news"]});
        server.post(&tenant, "/v1/devices", device).await;
        let message = json!({"target": target, "notification": {"title": title}});
        let sent = server.post(&tenant, "/v1/messages", message).await;
        server.ended(&tenant, sent["campaign"].as_str().expect("an id")).await;
    }
    let list = server.get(&tenant, "/v1/campaigns").await;
    let [news, everyone] = [&list["campaigns"][0], &list["campaigns"][1]];
    assert_eq!((&news["target"], &everyone["target"]), (&json!("topic news"), &json!("everyone")));
    assert_eq!((&news["audience"], &everyone["audience"]), (&json!(1), &json!(2)));
    assert_eq!((&news["state"], &news["totals"]["accepted"]), (&json!("finished"), &json!(1)));
    let shown = news["title"].as_str().expect("a title");
    assert!(shown.starts_with("ééé") && shown.chars().count() == 81, "{shown}");
}

#[tokio::test]
async fn a_campaign_says_why_it_stands_still() {
    let server = server().await;
    let address = nobody();
    let tenant = sender_to(&server, &address).await;
    let later = json!({"target": "everyone", "data": {"k": "v"}, "send_at": "2026-12-31T00:00:00Z"});
    let campaign = send_to_nobody(&server, &tenant).await;
    let path = format!("/v1/campaigns/{campaign}");
    let waits = until("a parked lane", async || {
        let ledger = server.get(&tenant, &path).await;
        ledger["waits"].as_array().filter(|waits| !waits.is_empty()).cloned()
    });
    let waits = waits.await;
    assert_eq!((&waits[0]["reason"], &waits[0]["provider"]), (&json!("unavailable"), &json!("apns")));
    let detail = waits[0]["detail"].as_str().expect("a detail");
    assert!(detail.contains(&address) && detail.contains("refused"), "{detail}");
    let credentials = server.get(&tenant, &format!("/v1/apps/{}/credentials", tenant.id)).await;
    let credential = &credentials["credentials"][0];
    assert!(credential["detail"].as_str().is_some_and(|detail| detail.contains(&address)), "{credential}");
    server.post(&tenant, &format!("{path}/pause"), json!({})).await;
    let paused = server.get(&tenant, &path).await;
    assert_eq!(paused["waits"][0]["reason"], "paused", "{paused}");
    server.post(&tenant, &format!("{path}/cancel"), json!({})).await;
    assert_eq!(server.get(&tenant, &path).await.get("waits"), None);
    let sent = server.send(&tenant, Method::POST, "/v1/messages").json(&later).read().await;
    if sent.status == 202 {
        let waits =
            server.get(&tenant, &format!("/v1/campaigns/{}", sent.text("campaign"))).await["waits"].clone();
        assert_eq!(waits[0]["reason"], "scheduled", "{waits}");
    }
}

#[tokio::test]
async fn a_credential_is_tried_without_sending_and_tells_host_and_cause() {
    let server = server().await;
    let address = nobody();
    let tenant = sender_to(&server, &address).await;
    let path = format!("/v1/apps/{}/credentials", tenant.id);
    let tried = server.post(&tenant, &format!("{path}/apns/check"), json!({})).await;
    assert_eq!((&tried["works"], &tried["host"]), (&json!(false), &json!(address)), "{tried}");
    assert!(tried["cause"].as_str().is_some_and(|cause| cause.contains(&address)), "{tried}");
    let put = server.send(&tenant, Method::PUT, &format!("{path}/null")).json(&json!({})).read().await;
    assert_eq!(put.status, 204);
    let tried = server.post(&tenant, &format!("{path}/null/check"), json!({})).await;
    assert_eq!(tried, json!({"provider": "null", "works": true}));
    let none = server.send(&tenant, Method::POST, &format!("{path}/fcm/check")).read().await;
    assert_eq!(none.refusal().0, 404);
}

#[tokio::test]
async fn a_deleted_app_is_gone_from_the_status_and_its_failures_stay_counted() {
    let server = server().await;
    let tenant = sender_to(&server, &nobody()).await;
    send_to_nobody(&server, &tenant).await;
    let apns = async || {
        let status = server.root(Method::GET, "/v1/status").read().await.body;
        let providers = status["providers"].as_array().expect("a list").clone();
        providers.into_iter().find(|one| one["provider"] == "apns").expect("apns")
    };
    until("a parked lane", async || (!apns().await["parked"].as_array()?.is_empty()).then_some(())).await;
    let failures = async || {
        let text = server.open(Method::GET, "/metrics").read().await.body.as_str().expect("text").to_owned();
        let line = text
            .lines()
            .find(|line| line.starts_with("stentor_provider_connect_failures_total{provider=\"apns\"}"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).expect("a count")
    };
    let before = failures().await;
    assert!(before > 0);
    let path = format!("/v1/apps/{}", tenant.id);
    assert_eq!(server.root(Method::DELETE, &path).read().await.status, 204);
    until("a status without the app", async || {
        (!apns().await.to_string().contains(&tenant.id)).then_some(())
    })
    .await;
    assert!(failures().await >= before, "a counter never falls");
}

#[tokio::test]
async fn metrics_come_in_the_format_that_is_asked_for_and_are_well_formed() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "one").await;
    assert_eq!(server.send(&tenant, Method::GET, "/v1/devices/dev_00000000000zz").read().await.status, 404);
    let metrics_for = async |accept: Option<&str>| {
        let request = server.open(Method::GET, "/metrics");
        let read =
            accept.into_iter().fold(request, |request, accept| request.header("accept", accept)).read().await;
        (read.headers["content-type"].clone(), read.body.as_str().expect("text").to_owned())
    };
    let (kind, text) = metrics_for(None).await;
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    well_formed(&text);
    for line in [
        "stentor_requests_total{operation=\"devices.register\",outcome=\"ok\"} 1",
        "stentor_requests_total{operation=\"devices.show\",outcome=\"not_found\"} 1",
        "stentor_request_duration_seconds_count{operation=\"devices.register\"} 1",
        "# TYPE stentor_requests_total counter",
        "# TYPE process_cpu_seconds_total counter",
        "# TYPE stentor_build_info gauge",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
    }
    let (kind, open) =
        metrics_for(Some("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5")).await;
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    assert!(open.ends_with("# EOF\n") && open.matches("# EOF").count() == 1, "{open}");
    assert!(open.contains("# TYPE stentor_requests counter\n"), "{open}");
}

/// Checks the rules of `promtool check metrics`, as far as they apply: families are contiguous and described once, counters are named as
/// such, and buckets add up.
fn well_formed(text: &str) {
    let (mut kinds, mut helps, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut buckets: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(!help.is_empty() && helps.insert(name), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(helps.contains(name) && kinds.insert(name, kind).is_none(), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
                "{line}"
            );
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a sample");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(samples.insert(series), "told twice: {series}");
        let name = series.split('{').next().expect("a name");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let family = family.filter(|family| kinds.get(family) == Some(&"histogram")).unwrap_or(name);
        assert!(kinds.contains_key(family), "of no family: {line}");
        if name.ends_with("_bucket") {
            let labels = series[name.len()..].trim_matches(['{', '}']).split(',');
            let others: Vec<_> = labels.filter(|label| !label.starts_with("le=")).collect();
            buckets.entry(format!("{name} {}", others.join(","))).or_default().push(value);
        }
    }
    assert!(buckets.values().all(|counts| counts.is_sorted()), "{buckets:?}");
    assert!(!buckets.is_empty());
}

#[tokio::test]
async fn a_browser_is_led_to_the_reference_and_a_program_is_not() {
    let server = server().await;
    let client = Client::builder().no_proxy().redirect(redirect::Policy::none()).build().expect("a client");
    let at_root = client.get(format!("{}/", server.url));
    let page =
        at_root.try_clone().expect("no body").header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let led = page.send().await.expect("an answer");
    assert_eq!((led.status().as_u16(), led.headers()["location"].as_bytes()), (307, &b"/docs"[..]));
    assert_eq!(server.open(Method::GET, "/").read().await.refusal().0, 404);
}

#[tokio::test]
async fn every_code_has_an_anchor_to_which_the_type_of_its_refusal_leads() {
    let server = server().await;
    let page = server.open(Method::GET, "/docs/errors").header("accept", "text/html").read().await;
    assert!(page.headers["content-type"].starts_with("text/html"), "{:?}", page.headers);
    let page = page.body.as_str().expect("a page").to_owned();
    for entry in error_codes() {
        assert!(page.contains(&format!("id=\"{}\"", entry.code)), "{}", entry.code);
    }
    let refused = server.open(Method::GET, "/v1/devices").read().await;
    let kind = refused.text("type");
    let (path, anchor) = kind.split_once('#').expect("an anchor");
    assert!(path == "/docs/errors" && page.contains(&format!("id=\"{anchor}\"")), "{kind}");
    let text = server.open(Method::GET, "/docs/errors").read().await;
    assert!(text.headers["content-type"].starts_with("text/markdown"), "{:?}", text.headers);
}

#[tokio::test]
async fn the_reference_begins_with_messages_and_its_examples_can_be_sent_as_they_stand() {
    let document: Value = serde_json::from_str(&openapi_json()).expect("JSON");
    assert_eq!(document["tags"][0]["name"], "messages");
    assert_eq!(document["servers"][0]["url"], "/");
    let server = server().await;
    let tenant = server.sender().await;
    let group = server.send(&tenant, Method::PUT, "/v1/groups/team").read().await;
    assert_eq!(group.status, 200, "{group:?}");
    let mut sent = 0;
    // In an order in which each finds the objects that it needs.
    for path in [
        "/v1/apps",
        "/v1/apps/{app}/keys",
        "/v1/devices",
        "/v1/devices/bulk",
        "/v1/groups/{group}/members",
        "/v1/messages",
        "/v1/messages/bulk",
        "/v1/schedules",
    ] {
        let example =
            &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"];
        assert!(example.is_object(), "{path} has no example");
        let filled = path.replace("{app}", &tenant.id).replace("{group}", "team");
        let read =
            server.root(Method::POST, &filled).header("x-stentor-app", &tenant.id).json(example).read().await;
        assert!((200..300).contains(&read.status), "{path}: {read:?}");
        assert!(!read.body.to_string().contains("\"error\""), "{path}: {read:?}");
        sent += 1;
    }
    assert_eq!(sent, 8);
}
