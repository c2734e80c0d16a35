//! The control port and the device side behind it.

use crate::rig::{self, ALERT, Client, hex, post, to_token};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use stentor_emulators::{ApnsConfig, ApnsOptions, FcmConfig, RunningFcm};

const SEND: &str = "/v1/projects/p/messages:send";

async fn get(address: SocketAddr, path: &str) -> Value {
    reqwest::get(format!("http://{address}{path}")).await.unwrap().json().await.unwrap()
}

async fn put_policy(address: SocketAddr, policy: &Value) -> u16 {
    let request = reqwest::Client::new().put(format!("http://{address}/policy")).json(policy);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn counts_are_shown_in_sum_and_per_token() {
    let fcm = rig::fcm(json!({})).await;
    let control = fcm.control_addr().unwrap();
    post(fcm.addr(), SEND, &to_token("abc")).await;
    post(fcm.addr(), SEND, &to_token("abc")).await;
    assert_eq!(get(control, "/healthz").await["status"], "ok");
    let counts = get(control, "/counts").await;
    assert_eq!((&counts["accepted"], &counts["tokens"]), (&json!(2), &json!(1)));
    assert_eq!(counts["tokens_accepted_twice"], 1);
    let one = json!({"attempts": 2, "accepted": 2, "rejected": 0, "validate_only": 0});
    assert_eq!(get(control, "/tokens/abc").await, one);
}

#[tokio::test]
async fn a_policy_is_put_and_a_wrong_one_refused() {
    let fcm = rig::fcm(json!({})).await;
    let control = fcm.control_addr().unwrap();
    let policy =
        json!({"bursts": {"every": 1, "length": 1, "error": {"code": "UNAVAILABLE", "retry_after_s": 3}}});
    assert_eq!(put_policy(control, &policy).await, 200);
    assert_eq!(post(fcm.addr(), SEND, &to_token("abc")).await.0, 503);
    assert_eq!(get(control, "/policy").await["bursts"], policy["bursts"]);
    for wrong in [
        json!({"mix": {"accept": 1, "errors": [{"error": {"code": "Unregistered"}, "weight": 1}]}}),
        json!({"unknown": 1}),
        json!({"latency": {"kind": "uniform", "min_ms": 2.0, "max_ms": 1.0}}),
        json!({"scripts": [{}]}),
        json!({"resets": {"every": 0, "code": "cancel"}}),
    ] {
        assert_eq!(put_policy(control, &wrong).await, 400, "{wrong}");
    }
    assert_eq!(post(fcm.addr(), SEND, &to_token("abc")).await.0, 503, "the old policy is still in force");
}

#[tokio::test]
async fn faults_are_switched_on_and_off() {
    let apns = rig::apns(json!({})).await;
    let control = apns.control_addr().unwrap();
    assert_eq!(post(control, "/fault", &json!({"fault": "stall", "on": true})).await.0, 200);
    let mut client = Client::connect(apns.addr()).await;
    let stalled = client.start_push(&hex(1)).await.unwrap();
    while apns.counts(&hex(1)).attempts == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(post(control, "/fault", &json!({"fault": "stall", "on": false})).await.0, 200);
    assert_eq!(rig::finish(stalled).await.unwrap().status, 200);
    assert_eq!(post(control, "/fault", &json!({"fault": "goaway"})).await.0, 200);
    client.connection.await.unwrap().unwrap();
    assert_eq!(post(control, "/fault", &json!({"fault": "flood"})).await.0, 400);
}

#[tokio::test]
async fn a_device_registers_listens_and_expires() {
    let apns = rig::apns(json!({})).await;
    let control = apns.control_addr().unwrap();
    let (_, registered) = post(control, "/device/register", &json!({"topic": "com.example.app"})).await;
    let token = registered["token"].as_str().unwrap().to_owned();
    assert_eq!(token.len(), 64);
    let mut client = Client::connect(apns.addr()).await;
    client.push(&token).await.unwrap();
    client.push(&token).await.unwrap();

    let url = format!("http://{control}/device/{token}/messages");
    let mut lines = reqwest::get(url).await.unwrap().bytes_stream();
    let record: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(record["payload"], serde_json::from_slice::<Value>(ALERT).unwrap());
    let mut request = client.push_request(&token);
    request.headers_mut().insert("apns-collapse-id", "live".parse().unwrap());
    client.send(request, ALERT).await.unwrap();
    let live: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
    assert_eq!(live["collapse_key"], "live", "of the two before only the newest was kept");

    let mut foreign = client.push_request(&token);
    foreign.headers_mut().insert("apns-topic", "com.example.other".parse().unwrap());
    assert_eq!(client.send(foreign, ALERT).await.unwrap().reason(), "DeviceTokenNotForTopic");
    let expired = post(control, &format!("/device/{token}/expire"), &json!({"since_ms": 5})).await;
    assert_eq!(expired.0, 200);
    let reply = client.push(&token).await.unwrap();
    assert_eq!((reply.status.as_u16(), &reply.json()["timestamp"]), (410, &json!(5)));
    assert_eq!(post(control, "/device/unknown/expire", &json!({})).await.0, 404);
}

#[tokio::test]
async fn strict_emulators_know_only_their_own_tokens() {
    let config = stentor_emulators::ApnsConfig {
        vendor: stentor_emulators::ApnsOptions {
            require_token: false,
            ..stentor_emulators::ApnsOptions::default()
        },
        strict_tokens: true,
        ..Default::default()
    };
    let apns = rig::apns_with(config).await;
    let token = apns.devices().register(Default::default());
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().reason(), "BadDeviceToken");
    assert_eq!(client.push(&token).await.unwrap().status, 200);

    let mut config = stentor_emulators::FcmConfig { strict_tokens: true, ..Default::default() };
    config.vendor.auth.required = false;
    let fcm = rig::fcm_with(config).await;
    let token = fcm.devices().register(Default::default());
    let (status, body) = post(fcm.addr(), SEND, &to_token("abc")).await;
    assert_eq!((status, &body["error"]["details"][0]["errorCode"]), (404, &json!("UNREGISTERED")));
    assert_eq!(post(fcm.addr(), SEND, &to_token(&token)).await.0, 200);
    fcm.devices().expire(&token, None);
    assert_eq!(post(fcm.addr(), SEND, &to_token(&token)).await.0, 404);
}

async fn keeping(capacity: usize) -> RunningFcm {
    let mut config = FcmConfig::default();
    config.vendor.auth.required = false;
    config.vendor.keep_messages = capacity;
    rig::fcm_with(config).await
}

async fn send(fcm: &RunningFcm, message: Value) {
    assert_eq!(post(fcm.addr(), SEND, &json!({"message": message})).await.0, 200);
}

fn tokens(page: &Value) -> Vec<&str> {
    page["messages"].as_array().unwrap().iter().map(|message| message["token"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_latest_accepted_messages_are_shown_in_their_order() {
    let fcm = keeping(3).await;
    let control = fcm.control_addr().unwrap();
    let refusing = json!({"scripts": [{"token": "gone", "then": {"error": {"code": "UNREGISTERED"}}}]});
    assert_eq!(put_policy(control, &refusing).await, 200);
    assert_eq!(post(fcm.addr(), SEND, &to_token("gone")).await.0, 404);
    send(&fcm, json!({"token": "a", "data": {"k": "v"}})).await;
    send(&fcm, json!({"topic": "news"})).await;
    send(&fcm, json!({"condition": "'news' in topics"})).await;
    send(&fcm, json!({"token": "b"})).await;
    let page = get(control, "/messages").await;
    assert_eq!((tokens(&page), &page["dropped"]), (vec!["/topics/news", "'news' in topics", "b"], &json!(1)));
    let behind = get(control, "/messages?after=3").await;
    assert_eq!((&behind["messages"][0]["number"], &behind["dropped"]), (&json!(4), &json!(0)));
    let first = keeping(1).await;
    send(&first, json!({"token": "a", "data": {"k": "v"}})).await;
    let page = get(first.control_addr().unwrap(), "/messages").await;
    assert_eq!(page["messages"][0]["payload"], json!({"token": "a", "data": {"k": "v"}}));
}

#[tokio::test]
async fn a_page_of_messages_waits_for_the_next_one() {
    let fcm = keeping(10).await;
    let control = fcm.control_addr().unwrap();
    let (page, ()) = tokio::join!(get(control, "/messages?wait_ms=30000"), send(&fcm, json!({"token": "a"})));
    assert_eq!(tokens(&page), ["a"]);
    assert_eq!(get(control, "/messages?after=1&wait_ms=1").await["messages"], json!([]));
}

#[tokio::test]
async fn a_page_of_messages_is_refused_without_a_log_or_with_another_query() {
    let fcm = keeping(1).await;
    let unkept = rig::fcm(json!({})).await;
    let status = async |fcm: &RunningFcm, path: &str| {
        let url = format!("http://{}{path}", fcm.control_addr().unwrap());
        reqwest::get(url).await.unwrap().status().as_u16()
    };
    assert_eq!(status(&unkept, "/messages").await, 404);
    for query in ["after=-1", "after", "other=1", "wait_ms=x"] {
        assert_eq!(status(&fcm, &format!("/messages?{query}")).await, 400, "{query}");
    }
}

#[tokio::test]
async fn messages_of_apns_are_kept_with_their_headers() {
    let vendor = ApnsOptions { require_token: false, keep_messages: 10, ..ApnsOptions::default() };
    let apns = rig::apns_with(ApnsConfig { vendor, ..ApnsConfig::default() }).await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(0xab).to_uppercase()).await.unwrap().status, 200);
    let page = get(apns.control_addr().unwrap(), "/messages").await;
    assert_eq!(tokens(&page), [hex(0xab)]);
    let request = client.push_request(&hex(1));
    assert_eq!(page["messages"][0]["topic"], request.headers()["apns-topic"].to_str().unwrap());
    assert_eq!(page["messages"][0]["payload"], serde_json::from_slice::<Value>(ALERT).unwrap());
}

#[tokio::test]
async fn a_reset_forgets_messages_and_counts_and_returns_to_the_first_policy() {
    let mut config =
        FcmConfig { policy: rig::read(json!({"mix": {"accept": 1, "errors": []}})), ..FcmConfig::default() };
    config.vendor.auth.required = false;
    config.vendor.keep_messages = 10;
    let fcm = rig::fcm_with(config).await;
    let control = fcm.control_addr().unwrap();
    send(&fcm, json!({"token": "a"})).await;
    let failing = json!({"bursts": {"every": 1, "length": 1, "error": {"code": "INTERNAL"}}});
    assert_eq!(put_policy(control, &failing).await, 200);
    assert_eq!(post(control, "/reset", &json!({})).await.0, 200);
    assert_eq!(get(control, "/messages").await["messages"], json!([]));
    assert_eq!(get(control, "/policy").await["mix"], json!({"accept": 1, "errors": []}));
    let counts = get(control, "/counts").await;
    assert_eq!((&counts["attempts"], &counts["tokens"]), (&json!(0), &json!(0)));
    let (page, ()) = tokio::join!(get(control, "/messages?wait_ms=30000"), send(&fcm, json!({"token": "b"})));
    assert_eq!((&page["messages"][0]["number"], &page["dropped"]), (&json!(2), &json!(0)));
    assert_eq!(fcm.counts("b").accepted, 1);
}
