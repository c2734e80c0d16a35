//! APNs: framing, every reason, headers and payloads.

use crate::frames::{DATA, HEADERS, Raw};
use crate::rig::{self, Client, hex};
use serde_json::{Value, json};

/// Every reason that Apple documents, with its status.
const REASONS: &[(u16, &str)] = &[
    (400, "BadChannelId"),
    (400, "BadCollapseId"),
    (400, "BadDeviceToken"),
    (400, "BadExpirationDate"),
    (400, "BadMessageId"),
    (400, "BadPriority"),
    (400, "BadRequestParams"),
    (400, "BadRequestPayload"),
    (400, "BadTopic"),
    (400, "CannotCreateChannelConfig"),
    (400, "ChannelNotRegistered"),
    (400, "DeviceTokenNotForTopic"),
    (400, "DuplicateHeaders"),
    (400, "FeatureNotEnabled"),
    (400, "IdleTimeout"),
    (400, "InvalidPushType"),
    (400, "MissingChannelId"),
    (400, "MissingDeviceToken"),
    (400, "MissingPushType"),
    (400, "MissingTopic"),
    (400, "PayloadEmpty"),
    (400, "TopicDisallowed"),
    (403, "BadCertificate"),
    (403, "BadCertificateEnvironment"),
    (403, "ExpiredProviderToken"),
    (403, "Forbidden"),
    (403, "InvalidProviderToken"),
    (403, "MissingProviderToken"),
    (403, "TopicMismatch"),
    (404, "BadPath"),
    (405, "MethodNotAllowed"),
    (410, "ExpiredToken"),
    (410, "Unregistered"),
    (413, "PayloadTooLarge"),
    (429, "TooManyProviderTokenUpdates"),
    (429, "TooManyRequests"),
    (500, "InternalServerError"),
    (503, "ServiceUnavailable"),
    (503, "Shutdown"),
];

#[tokio::test]
async fn an_accepted_push_is_one_headers_frame_that_ends_the_stream() {
    let apns = rig::apns(json!({})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    let frames = raw.read_stream(1).await;
    assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [HEADERS]);
    assert_eq!(apns.counts(&hex(1)).accepted, 1);
}

#[tokio::test]
async fn an_error_body_is_one_data_frame_that_ends_the_stream() {
    let apns = rig::apns(json!({"scripts": [{"prefix": "", "then": {"error": {"code": "Shutdown"}}}]})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    raw.push(1, &hex(1)).await;
    let frames = raw.read_stream(1).await;
    assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [HEADERS, DATA]);
    assert_eq!(frames[1].payload, br#"{"reason":"Shutdown"}"#);
    assert_eq!(apns.counts(&hex(1)).rejected, 1);
}

#[tokio::test]
async fn every_reason_comes_with_its_status() {
    let answers: Vec<Value> =
        REASONS.iter().map(|(_, reason)| json!({"answer": {"error": {"code": reason}}})).collect();
    let apns = rig::apns(json!({"scripts": [{"prefix": "", "answers": answers}]})).await;
    let mut client = Client::connect(apns.addr()).await;
    for (status, reason) in REASONS {
        let reply = client.push(&hex(1)).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (*status, *reason));
        assert_eq!(reply.json().get("timestamp").is_some(), *status == 410, "{reason}");
    }
    assert_eq!(client.push(&hex(1)).await.unwrap().status, 200, "the script has ended");
}

#[tokio::test]
async fn a_scripted_timestamp_and_retry_after_are_sent() {
    let apns = rig::apns(json!({"scripts": [{"token": hex(1), "answers": [
        {"answer": {"error": {"code": "Unregistered", "timestamp_ms": 1234}}},
        {"answer": {"error": {"code": "TooManyRequests", "retry_after_s": 7}}},
    ]}]}))
    .await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().json()["timestamp"], 1234);
    assert_eq!(client.push(&hex(1)).await.unwrap().headers["retry-after"], "7");
}

#[tokio::test]
async fn bad_headers_are_refused_with_their_reason() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    let long = "x".repeat(65);
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[], "MissingTopic"),
        (&[("apns-topic", "no spaces")], "BadTopic"),
        (&[("apns-topic", "a"), ("apns-push-type", "shout")], "InvalidPushType"),
        (&[("apns-topic", "a"), ("apns-priority", "7")], "BadPriority"),
        (&[("apns-topic", "a"), ("apns-push-type", "background"), ("apns-priority", "10")], "BadPriority"),
        (&[("apns-topic", "a"), ("apns-expiration", "soon")], "BadExpirationDate"),
        (&[("apns-topic", "a"), ("apns-collapse-id", &long)], "BadCollapseId"),
        (&[("apns-topic", "a"), ("apns-id", "17")], "BadMessageId"),
        (&[("apns-topic", "a"), ("apns-topic", "b")], "DuplicateHeaders"),
    ];
    for (headers, reason) in table {
        let mut request = client.request(&format!("/3/device/{}", hex(1)));
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let reply = client.send(request.body(()).unwrap(), rig::ALERT).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (400, *reason));
    }
    assert_eq!(apns.counts(&hex(1)).rejected as usize, table.len());
}

#[tokio::test]
async fn bad_paths_tokens_and_methods_are_refused() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    let long = "a".repeat(4_098);
    for (path, status, reason) in [
        ("/", 404, "BadPath"),
        ("/4/device/aa", 404, "BadPath"),
        ("/3/device/", 400, "MissingDeviceToken"),
        ("/3/device/abcd", 400, "BadDeviceToken"),
        (&format!("/3/device/{}g", &hex(1)[1..]), 400, "BadDeviceToken"),
        (&format!("/3/device/{long}"), 400, "BadDeviceToken"),
    ] {
        let request = client.request(path).header("apns-topic", "a").body(()).unwrap();
        let reply = client.send(request, rig::ALERT).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (status, reason), "{path}");
    }
    let mut get = client.push_request(&hex(1));
    *get.method_mut() = http::Method::GET;
    assert_eq!(client.send(get, &[]).await.unwrap().reason(), "MethodNotAllowed");
}

#[tokio::test]
async fn payloads_have_limits_and_must_be_objects() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    let sized = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8)).into_bytes();
    for (push_type, body, status, reason) in [
        ("alert", sized(4096), 200, ""),
        ("alert", sized(4097), 413, "PayloadTooLarge"),
        ("voip", sized(5120), 200, ""),
        ("voip", sized(5121), 413, "PayloadTooLarge"),
        ("alert", sized(100_000), 413, "PayloadTooLarge"),
        ("alert", Vec::new(), 400, "PayloadEmpty"),
        ("alert", b"{\"aps\":".to_vec(), 400, "BadMessage"),
        ("alert", b"[]".to_vec(), 400, "BadMessage"),
        ("alert", b"{\"a\":\"\xff\"}".to_vec(), 400, "BadMessage"),
    ] {
        let request = client.request(&format!("/3/device/{}", hex(1))).header("apns-topic", "a");
        let request = request.header("apns-push-type", push_type).body(()).unwrap();
        let reply = client.send(request, &body).await.unwrap();
        let found = if reply.body.is_empty() { String::new() } else { reply.reason() };
        assert_eq!((reply.status.as_u16(), found.as_str()), (status, reason));
    }
}

#[tokio::test]
async fn the_apns_id_is_echoed_letter_by_letter_or_made() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    let id = "eabeae54-14a8-11e5-B60B-1697f925ec7b";
    let mut request = client.push_request(&hex(1));
    request.headers_mut().insert("apns-id", id.parse().unwrap());
    assert_eq!(client.send(request, rig::ALERT).await.unwrap().headers["apns-id"], id);
    let first = client.push(&hex(1)).await.unwrap().headers["apns-id"].clone();
    let second = client.push(&hex(1)).await.unwrap().headers["apns-id"].clone();
    assert_eq!(first.len(), 36);
    assert_ne!(first, second);
}

#[tokio::test]
async fn an_upper_case_token_is_the_same_device() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    client.push(&hex(0xabcd).to_uppercase()).await.unwrap();
    assert_eq!(apns.counts(&hex(0xabcd)).accepted, 1);
}

#[tokio::test]
async fn a_topic_that_is_not_configured_is_disallowed() {
    let config = stentor_emulators::ApnsConfig {
        vendor: stentor_emulators::ApnsOptions {
            require_token: false,
            topics: vec!["com.example.other".to_owned()],
            ..Default::default()
        },
        ..Default::default()
    };
    let apns = rig::apns_with(config).await;
    let mut client = Client::connect(apns.addr()).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().reason(), "TopicDisallowed");
}
