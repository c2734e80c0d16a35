//! The gRPC face.

mod watches;

use std::io::{Read as _, Write as _};

use http_body_util::BodyExt as _;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};
use stentor_server::face::record::protobuf::Schema;
use stentor_wire::DocumentLimits;

use crate::harness::{Reading as _, Server, Tenant, server, server_with};

/// The outcome of a call: messages, and the trailers or, without messages, the headers.
struct Outcome {
    messages: Vec<Vec<u8>>,
    was_packed: bool,
    ending: HeaderMap,
}

impl Outcome {
    fn status(&self) -> &str {
        self.text("grpc-status")
    }

    fn text(&self, name: &str) -> &str {
        self.ending.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn record(&self, name: &str) -> Map<String, Value> {
        assert_eq!(self.status(), "0", "{}", self.text("grpc-message"));
        read(name, &self.messages[0])
    }
}

fn read(name: &str, message: &[u8]) -> Map<String, Value> {
    Schema::get().read(name, message, &DocumentLimits::default()).expect("a record")
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("short");
    [&[0][..], &length.to_be_bytes(), message].concat()
}

fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let message = &rest[..length];
        messages.push(if head[0] == 1 { unpacked(message) } else { message.to_vec() });
        bytes = &rest[length..];
    }
    messages
}

fn packed_frame(message: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(message).expect("written");
    let mut framed = frame(&packer.finish().expect("packed"));
    framed[0] = 1;
    framed
}

fn unpacked(message: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    flate2::read::GzDecoder::new(message).read_to_end(&mut all).expect("unpacked");
    all
}

/// Sends a body over HTTP/2 without TLS, with prior knowledge, like gRPC clients.
async fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Outcome {
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let mut request = client.post(format!("{}{path}", server.url)).header("te", "trailers").body(body);
    request = request.header("content-type", "application/grpc+proto");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    let headers = response.headers().clone();
    let body = reqwest::Body::from(response).collect().await.expect("a body");
    let ending = body.trailers().cloned().unwrap_or(headers);
    let bytes = body.to_bytes();
    Outcome { was_packed: bytes.first() == Some(&1), messages: frames(&bytes), ending }
}

async fn ask(server: &Server, key: &str, method: &str, record: Value) -> Outcome {
    let name = format!("{}Request", method.rsplit('/').next().unwrap_or_default());
    let message = Schema::get().write(&name, record.as_object().expect("an object")).expect("written");
    let key = format!("Bearer {key}");
    post(server, &format!("/stentor.v1.{method}"), &[("authorization", &key)], frame(&message)).await
}

async fn register(server: &Server, tenant: &Tenant) -> Map<String, Value> {
    let device = json!({"platform": "android", "token": "token-of-a-phone-1", "topics": ["news"]});
    ask(server, &tenant.key, "Devices/RegisterDevice", device).await.record("Registered")
}

#[tokio::test]
async fn a_device_is_registered_and_reached_and_the_ledger_is_read() {
    let server = server().await;
    let tenant = server.sender().await;
    assert_eq!(register(&server, &tenant).await["created"], true);
    let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}, "ttl_seconds": 60, "idempotency_key": "once"});
    let sent = ask(&server, &tenant.key, "Messages/SendMessage", message.clone()).await.record("Sent");
    let again = ask(&server, &tenant.key, "Messages/SendMessage", message).await.record("Sent");
    assert_eq!((&sent["accepted"]["id"], &again["replayed"]), (&again["accepted"]["id"], &json!(true)));
    let request = json!({"message": sent["accepted"]["id"]});
    let ledger = ask(&server, &tenant.key, "Messages/ShowMessageLedger", request).await.record("Ledger");
    assert_eq!(ledger["message"], sent["accepted"]["id"]);
    assert!(ledger["totals"].is_object());
}

#[tokio::test]
async fn a_message_sent_through_rest_is_recognised_when_it_is_repeated_here() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"target": "everyone", "data": {"k": "v"}});
    let first = server.send(&tenant, reqwest::Method::POST, "/v1/messages").header("idempotency-key", "same");
    let first = first.json(&body).read().await;
    let message = Schema::get().write("SendMessageRequest", body.as_object().expect("an object"));
    let key = format!("Bearer {}", tenant.key);
    let headers = [("authorization", key.as_str()), ("idempotency-key", "same")];
    let body = frame(&message.expect("written"));
    let again = post(&server, "/stentor.v1.Messages/SendMessage", &headers, body).await.record("Sent");
    assert_eq!(again["accepted"]["id"], first.body["id"]);
    assert_eq!(again["replayed"], true);
}

#[tokio::test]
async fn refusals_have_a_status_and_details_that_name_code_and_field() {
    let server = server().await;
    let tenant = server.sender().await;
    let wrong_key = ask(&server, "sk_wrong", "Topics/ListTopics", json!({})).await;
    assert_eq!(wrong_key.status(), "16");
    let bad = json!({"platform": "android", "token": ""});
    let bad = ask(&server, &tenant.key, "Devices/RegisterDevice", bad).await;
    assert_eq!(bad.status(), "3");
    let details = details(&bad);
    for word in ["google.rpc.ErrorInfo", "invalid_field", "google.rpc.BadRequest", "token"] {
        assert!(details.contains(word), "{word} in {details}");
    }
    let missing = json!({"device": "dev_0000000000001"});
    assert_eq!(ask(&server, &tenant.key, "Devices/ShowDevice", missing).await.status(), "5");
    let unnamed = ask(&server, &server.root, "Devices/ListDevices", json!({})).await;
    assert_eq!(unnamed.status(), "3");
    let nothing = ask(&server, &tenant.key, "Messages/ListMessages", json!({})).await;
    assert_eq!(nothing.status(), "0");
}

fn details(outcome: &Outcome) -> String {
    use base64::Engine as _;
    let bytes = base64::prelude::BASE64_STANDARD_NO_PAD.decode(outcome.text("grpc-status-details-bin"));
    String::from_utf8_lossy(&bytes.expect("base64")).into_owned()
}

#[tokio::test]
async fn what_is_no_call_is_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    let key = format!("Bearer {}", tenant.key);
    let path = "/stentor.v1.Topics/ListTopics";
    let authorized = ("authorization", key.as_str());
    for (headers, body, status) in [
        (&[authorized][..], vec![], "3"),
        (&[authorized], vec![0, 0xff, 0xff, 0xff, 0xff], "3"),
        (&[authorized], [frame(b""), frame(b"")].concat(), "3"),
        (&[authorized], frame(&[0xff; 11]), "3"),
        (&[authorized], frame(&[0x0b].repeat(100_000)), "3"),
        (&[authorized], frame(&[0x0b, 0x0c]), "3"),
        (&[authorized], frame(&[0x7a, 0xff, 0xff, 0xff, 0xff, 0x0f]), "3"),
        (&[authorized], vec![1, 0, 0, 0, 0], "3"),
        (&[authorized], vec![2, 0, 0, 0, 0], "3"),
        (&[authorized, ("grpc-encoding", "snappy")], frame(b""), "12"),
        (&[authorized, ("grpc-timeout", "soon")], frame(b""), "3"),
        (&[authorized, ("grpc-timeout", "0n")], frame(b""), "4"),
        (&[], vec![], "16"),
    ] {
        assert_eq!(post(&server, path, headers, body.clone()).await.status(), status, "{headers:?} {body:?}");
    }
    for unknown in ["/stentor.v1.Topics/Nothing", "/stentor.v1.Nothing/Nothing", "/of.others/Call", "/"] {
        assert_eq!(post(&server, unknown, &[authorized], frame(b"")).await.status(), "12", "{unknown}");
    }
    let snappy = post(&server, path, &[authorized, ("grpc-encoding", "snappy")], frame(b"")).await;
    assert_eq!(snappy.text("grpc-accept-encoding"), "identity,gzip");
}

#[tokio::test]
async fn a_question_of_reflection_that_cannot_be_read_ends_it_with_a_refusal() {
    let server = server().await;
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let services = frame(&[0x3a, 0]);
    let response = post(&server, path, &[], [services.clone(), services.clone()].concat()).await;
    assert_eq!((response.status(), response.messages.len()), ("0", 2));
    let lying = frame(&[0x1a, 0xff, 0x0f]);
    let response = post(&server, path, &[], [services.clone(), lying, services].concat()).await;
    assert_eq!((response.status(), response.messages.len()), ("3", 1));
    let long = post(&server, path, &[], vec![0, 0, 1, 0, 0]).await;
    assert_eq!((long.status(), long.messages.len()), ("8", 0));
}

#[tokio::test]
async fn a_flood_of_metadata_is_refused_and_the_next_call_is_served() {
    let server = server().await;
    let tenant = server.sender().await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let long = "x".repeat(1_000);
    for count in [30, 3_000] {
        let mut call = client.post(format!("{}/stentor.v1.Topics/ListTopics", server.url));
        call = call.header("content-type", "application/grpc").bearer_auth(&tenant.key).body(frame(b""));
        for number in 0..count {
            call = call.header(format!("x-{number}"), &long);
        }
        // A moderate flood gets an answer, a large one ends the connection.
        let status = call.send().await.map(|answer| answer.status().as_u16());
        assert!(status.as_ref().map_or(count > 30, |status| *status == 431), "{count}: {status:?}");
    }
    assert_eq!(ask(&server, &tenant.key, "Topics/ListTopics", json!({})).await.status(), "0");
}

#[tokio::test]
async fn another_content_type_is_refused_as_http_refuses_it() {
    let server = server().await;
    let tenant = server.sender().await;
    for path in [
        "/stentor.v1.Topics/ListTopics",
        "/stentor.v1.Devices/ImportDeviceStream",
        "/stentor.v1.Campaigns/WatchLedger",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ] {
        for kind in ["application/json", "application/grpc+json", "application/grpcx", ""] {
            let request = server.send(&tenant, reqwest::Method::POST, path).header("content-type", kind);
            let read = request.body(frame(b"")).read().await;
            assert_eq!((read.status, read.headers.get("grpc-status")), (415, None), "{path} {kind}");
        }
    }
}

#[tokio::test]
async fn what_is_larger_than_allowed_is_refused_packed_or_not() {
    let server = server_with(|config| {
        config.api.body_max_bytes = 1_000;
        config.api.large_body_max_bytes = 2_000;
    })
    .await;
    let tenant = server.sender().await;
    let key = format!("Bearer {}", tenant.key);
    let authorized = ("authorization", key.as_str());
    let metadata = [authorized, ("grpc-encoding", "gzip")];
    let unknown_field = |bytes: usize| {
        let mut message = vec![0xfa, 0x3f];
        message.extend([(bytes % 128) as u8 | 0x80, (bytes / 128) as u8]);
        message.extend(vec![b'x'; bytes]);
        message
    };
    let path = "/stentor.v1.Topics/ListTopics";
    for (bytes, status) in [(1_990, "0"), (2_100, "8"), (9_000, "8")] {
        let plain = post(&server, path, &[authorized], frame(&unknown_field(bytes))).await;
        assert_eq!(plain.status(), status, "{bytes}");
        let packed = post(&server, path, &metadata, packed_frame(&unknown_field(bytes))).await;
        assert_eq!(packed.status(), status, "{bytes}");
    }
    let import = "/stentor.v1.Devices/ImportDeviceStream";
    let good = frame(&unknown_field(900));
    for large in [frame(&unknown_field(1_100)), packed_frame(&unknown_field(9_000))] {
        let refused = post(&server, import, &metadata, [good.clone(), large].concat()).await;
        assert_eq!(refused.status(), "3", "a message without a piece comes first");
    }
    for large in
        [frame(&unknown_field(1_100)), packed_frame(&unknown_field(9_000)), vec![0, 0xff, 0xff, 0xff, 0xff]]
    {
        assert_eq!(post(&server, import, &metadata, large).await.status(), "8");
    }
    let cut = post(&server, import, &metadata, frame(&unknown_field(900))[..100].to_vec()).await;
    assert_eq!(cut.status(), "3");
}

#[tokio::test]
async fn long_replies_are_packed_for_those_who_read_gzip() {
    let server = server().await;
    let tenant = server.sender().await;
    for number in 0..30 {
        server.device(&tenant, &format!("token-of-a-phone-{number}")).await;
    }
    let key = format!("Bearer {}", tenant.key);
    let metadata = [("authorization", key.as_str()), ("grpc-accept-encoding", "identity, gzip")];
    let listed = post(&server, "/stentor.v1.Devices/ListDevices", &metadata, frame(b"")).await;
    assert_eq!(listed.record("DeviceList")["devices"].as_array().map(Vec::len), Some(30));
    assert!(listed.was_packed);
    let plain = post(&server, "/stentor.v1.Devices/ListDevices", &metadata[..1], frame(b"")).await;
    assert!(!plain.was_packed && plain.messages == listed.messages);
}
