//! Refusals as bytes, and logs without secrets.

use std::io::Write;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use crate::harness::{Reading, Server, Tenant, server, server_with};

#[tokio::test]
async fn refusals_stay_as_they_are() {
    let server = server().await;
    let tenant = server.sender().await;
    let golden = include_str!("../golden/problems.ndjson");
    let ask = |method, path: &str| server.send(&tenant, method, path).header("X-Request-Id", "golden");
    let body = json!({"target": "everyone", "data": {"k": "v"}, "priorty": "high"});
    let answers = [
        ask(Method::POST, "/v1/messages").json(&body).read().await,
        ask(Method::POST, "/v1/messages").body("{").header("content-type", "application/json").read().await,
        ask(Method::GET, "/v1/devices/dev_0000000000009").read().await,
        ask(Method::GET, "/v1/status").read().await,
        ask(Method::PUT, "/v1/messages").read().await,
        ask(Method::POST, "/v1/messages").body("x").read().await,
        server.open(Method::GET, "/v1/devices").header("X-Request-Id", "golden").read().await,
        server.open(Method::GET, "/nowhere").header("X-Request-Id", "golden").read().await,
    ];
    let written: String = answers.iter().map(|read| format!("{}\n", read.body)).collect();
    assert_eq!(written, golden, "the golden file is tests/golden/problems.ndjson");
}

#[tokio::test]
async fn a_request_id_is_taken_over_when_it_is_harmless_and_made_otherwise() {
    let server = server().await;
    let given = server.open(Method::GET, "/healthz").header("X-Request-Id", "my-id.1").read().await;
    assert_eq!(given.headers["x-request-id"], "my-id.1");
    for odd in ["with space", "<script>", &"x".repeat(65)] {
        let made = server.open(Method::GET, "/healthz").header("X-Request-Id", odd).read().await;
        assert!(made.headers["x-request-id"].starts_with("req_"), "{odd}");
    }
}

/// Collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics here").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Requests missing things, under names chosen by the caller, and existing ones.
async fn ask_oddly(server: &Server, tenant: &Tenant) {
    let method = Method::from_bytes(b"HUSH-METHOD").expect("a method");
    server.send(tenant, method, "/v1/messages").read().await;
    let mut socket =
        tokio::net::TcpStream::connect(server.socket.expect("a raw socket")).await.expect("connected");
    let requests = [
        json!({"stentor": 1, "key": tenant.key}),
        json!({"id": 1, "operation": "hush-operation\nERROR forged", "record": {}}),
        json!({"id": 2, "operation": "devices.list", "record": {}}),
    ];
    for one in requests {
        let frame = stentor_wire::frame::write(one.to_string().as_bytes()).expect("a frame");
        socket.write_all(&frame).await.expect("written");
        let length = socket.read_u32().await.expect("an answer");
        socket.read_exact(&mut vec![0; length as usize]).await.expect("an answer");
    }
}

#[tokio::test]
async fn neither_keys_nor_tokens_nor_bodies_are_logged() {
    let log = Log::default();
    let writer = log.clone();
    let libraries = ["hyper", "hyper_util", "h2", "reqwest", "rustls"].map(|library| (library, Level::INFO));
    let levels = Targets::new().with_default(Level::TRACE).with_targets(libraries);
    let lines = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(levels).with(lines);
    // For all threads: a subscriber of one thread would miss callsites that other threads have registered first.
    tracing::subscriber::set_global_default(subscriber).expect("no other test sets one");
    let server =
        server_with(|config| config.api.socket_listen = Some("127.0.0.1:0".parse().expect("an address")))
            .await;
    let tenant = server.sender().await;
    ask_oddly(&server, &tenant).await;
    crate::tenants::put_fcm(&server, &tenant).await;
    let token = "hush-token-hush-token";
    let device = json!({"platform": "android", "token": token, "provider": "null"});
    server.post(&tenant, "/v1/devices", device).await;
    let body = json!({"target": {"token": {"platform": "android", "provider": "null", "token": token}}, "data": {"k": "hush-body"}});
    let sent = server.post(&tenant, "/v1/messages", body.clone()).await;
    server.ended(&tenant, sent["campaign"].as_str().expect("an id")).await;
    let mut wrong = body;
    wrong["extra"] = json!("hush-body");
    server.send(&tenant, Method::POST, "/v1/messages").json(&wrong).read().await;
    let lines = format!("{{\"platform\":\"android\",\"token\":\"{token}\"}}\nhush-body\n");
    let import = server
        .send(&tenant, Method::POST, "/v1/devices/import")
        .header("content-type", "application/x-ndjson");
    import.body(lines).read().await;
    let root = server.root.clone();
    server.stop().await;
    let text = String::from_utf8_lossy(&log.0.lock().expect("nobody panics here")).into_owned();
    assert!(text.contains("/v1/messages") && text.contains("draining"), "the log was captured: {text}");
    for expected in [r#"method="unknown""#, r#"operation="unknown""#, r#"operation="devices.list""#] {
        assert!(text.contains(expected), "{expected} is not in the log: {text}");
    }
    for secret in [
        token,
        "hush-body",
        "HUSH-METHOD",
        "hush-operation",
        tenant.key.as_str(),
        root.as_str(),
        "PRIVATE KEY",
    ] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}
