//! Bad input of every kind: a 4xx with a stable code and the field, nothing changed, never a panic.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use stentor_server::words;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Reading, Server, server, server_with};

/// A body, the code with which it is refused, and the named field.
type Case = (&'static str, &'static str, Option<&'static str>);

const MESSAGES: &[Case] = &[
    ("", "invalid_request", None),
    ("{", "invalid_request", None),
    ("nonsense", "invalid_request", None),
    ("[]", "invalid_request", None),
    ("null", "invalid_request", None),
    ("{} {}", "invalid_field", Some("target")),
    ("{\"target\":\"everyone\",\"data\":{\"k\":\"v\"}} x", "invalid_request", None),
    ("{\"target\":\"everyone\",\"data\":{\"k\":\"\u{0}\"}}", "invalid_request", None),
    ("{\"target\":\"everyone\",\"target\":\"everyone\"}", "invalid_field", Some("target")),
    (r#"{"data":{"k":"v"}}"#, "invalid_field", Some("target")),
    (r#"{"target":"everyone"}"#, "invalid_field", Some("notification")),
    (r#"{"target":"everybody","data":{"k":"v"}}"#, "invalid_field", Some("target")),
    (r#"{"target":{"device":"dev_1","user":"x"},"data":{"k":"v"}}"#, "invalid_field", Some("target.device")),
    (r#"{"target":{"device":"app_0000000000001"},"data":{"k":"v"}}"#, "invalid_field", Some("target.device")),
    (r#"{"target":{"devices":[]},"data":{"k":"v"}}"#, "invalid_field", Some("target.devices")),
    (r#"{"target":{"devices":[7]},"data":{"k":"v"}}"#, "invalid_field", Some("target.devices[0]")),
    (r#"{"target":{"condition":"'a' in"},"data":{"k":"v"}}"#, "invalid_field", Some("target.condition")),
    (r#"{"target":{"topic":"with space"},"data":{"k":"v"}}"#, "invalid_field", Some("target.topic")),
    (r#"{"target":{"user":"a\u0000b"},"data":{"k":"v"}}"#, "invalid_field", Some("target.user")),
    (
        r#"{"target":{"token":{"platform":"web","token":"x"}},"data":{"k":"v"}}"#,
        "invalid_field",
        Some("target.token.token"),
    ),
    (
        r#"{"target":{"token":{"platform":"apple","token":"a\nb"}},"data":{"k":"v"}}"#,
        "invalid_field",
        Some("target.token.token"),
    ),
    (
        r#"{"target":{"token":{"platform":"apple","tokken":"x"}},"data":{"k":"v"}}"#,
        "invalid_field",
        Some("target.token.tokken"),
    ),
    (r#"{"target":"everyone","data":{"k":1}}"#, "invalid_field", Some("data.k")),
    (r#"{"target":"everyone","data":["k"]}"#, "invalid_field", Some("data")),
    (r#"{"target":"everyone","notification":{"titel":"x"}}"#, "invalid_field", Some("notification.titel")),
    (r#"{"target":"everyone","notification":{"title":7}}"#, "invalid_field", Some("notification.title")),
    (r#"{"target":"everyone","data":{"k":"v"},"ttl_seconds":-1}"#, "invalid_field", Some("ttl_seconds")),
    (r#"{"target":"everyone","data":{"k":"v"},"ttl_seconds":2419201}"#, "invalid_field", Some("ttl_seconds")),
    (r#"{"target":"everyone","data":{"k":"v"},"ttl_seconds":1e400}"#, "invalid_request", None),
    (
        r#"{"target":"everyone","data":{"k":"v"},"ttl_seconds":99999999999999999999999}"#,
        "invalid_field",
        Some("ttl_seconds"),
    ),
    (r#"{"target":"everyone","data":{"k":"v"},"priority":"urgent"}"#, "invalid_field", Some("priority")),
    (r#"{"target":"everyone","data":{"k":"v"},"collapse_key":""}"#, "invalid_field", Some("collapse_key")),
    (r#"{"target":"everyone","data":{"k":"v"},"send_at":"soon"}"#, "invalid_field", Some("send_at")),
    (r#"{"target":"everyone","data":{"k":"v"},"dry_run":"yes"}"#, "invalid_field", Some("dry_run")),
    (r#"{"target":"everyone","data":{"k":"v"},"priorty":"high"}"#, "invalid_field", Some("priorty")),
];

const DEVICES: &[Case] = &[
    (r#"{"token":"t"}"#, "invalid_field", Some("platform")),
    (r#"{"platform":"android"}"#, "invalid_field", Some("token")),
    (r#"{"platform":"androis","token":"t"}"#, "invalid_field", Some("platform")),
    (r#"{"platform":"web","token":"t"}"#, "invalid_field", Some("token")),
    (r#"{"platform":"windows","token":"https://push.example/?token=t"}"#, "invalid_field", Some("token")),
    (r#"{"platform":"android","token":""}"#, "invalid_field", Some("token")),
    (r#"{"platform":"android","token":"with space"}"#, "invalid_field", Some("token")),
    (r#"{"platform":"android","token":"t","time_zone":"Mars/Olympus"}"#, "invalid_field", Some("time_zone")),
    (r#"{"platform":"android","token":"t","tags":["with space"]}"#, "invalid_field", Some("tags")),
    (r#"{"platform":"android","token":"t","topics":[""]}"#, "invalid_field", Some("topics")),
    (r#"{"platform":"android","token":"t","user":"\u0007"}"#, "invalid_field", Some("user")),
    (r#"{"platform":"android","token":"t","locale":"d e"}"#, "invalid_field", Some("locale")),
    (r#"{"platform":{"android":1},"token":"t"}"#, "invalid_field", Some("platform")),
    (r#"{"platform":{"android":null},"token":"t"}"#, "invalid_field", Some("platform")),
    (r#"{"platform":"symbian","token":"t"}"#, "invalid_field", Some("platform")),
    (r#"{"platform":"android","provider":"pigeons","token":"t"}"#, "invalid_field", Some("provider")),
];

#[tokio::test]
async fn every_bad_body_is_refused_by_code_and_field_and_changes_nothing() {
    let server = server().await;
    let tenant = server.sender().await;
    for (path, cases) in [("/v1/messages", MESSAGES), ("/v1/devices", DEVICES)] {
        for (body, code, field) in cases {
            let request = server.send(&tenant, Method::POST, path).header("content-type", "application/json");
            let read = request.body(*body).read().await;
            let (status, found, named) = read.refusal();
            assert!((400..500).contains(&status), "{body}: {read:?}");
            assert_eq!((found.as_str(), named.as_deref()), (*code, *field), "{body}: {read:?}");
        }
    }
    assert_eq!(server.get(&tenant, "/v1/messages").await["messages"], json!([]));
    assert_eq!(server.get(&tenant, "/v1/devices").await["devices"], json!([]));
}

#[tokio::test]
async fn a_misspelt_field_gets_a_suggestion() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"target": "everyone", "data": {"k": "v"}, "priorty": "high"});
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(read.text("hint"), "did you mean `priority`?");
}

#[tokio::test]
async fn a_refused_word_is_answered_with_the_words_that_would_be_right() {
    let server = server().await;
    let tenant = server.sender().await;
    let message = json!({"target": "everyone", "data": {"k": "v"}, "priority": "urgent"});
    let schedule = json!({"cron": "0 9 * * *", "time_zone": "UTC", "catch_up": "sometimes", "message": {"target": "everyone", "data": {"k": "v"}}});
    let key = json!({"name": "k", "scopes": ["write"]});
    let keys = format!("/v1/apps/{}/keys", tenant.id);
    let cases = [
        ("/v1/devices", json!({"platform": "huawei", "token": "t"}), "platform", words::PLATFORMS),
        (
            "/v1/devices",
            json!({"platform": "web", "provider": "vapid", "token": "t"}),
            "provider",
            words::PROVIDERS,
        ),
        ("/v1/messages", message, "priority", words::PRIORITIES),
        ("/v1/schedules", schedule, "catch_up", words::CATCH_UPS),
        (keys.as_str(), key, "scopes[0]", words::SCOPES),
    ];
    for (path, body, field, right) in cases {
        let read = server.with_key(&server.root, Method::POST, path).header("X-Stentor-App", &tenant.id);
        let read = read.json(&body).read().await;
        assert_eq!(read.refusal().2.as_deref(), Some(field), "{read:?}");
        assert!(read.text("hint").ends_with(&format!("known are {}", right.join(", "))), "{read:?}");
    }
    let filtered = server.send(&tenant, Method::GET, "/v1/devices?provider=pigeons").read().await;
    let known = format!("known are {}", words::PROVIDERS.join(", "));
    assert!(filtered.text("hint").ends_with(&known), "{filtered:?}");
}

#[tokio::test]
async fn broken_utf8_and_deep_nesting_are_refused() {
    let server = server_with(|config| config.api.body_max_bytes = 1_048_576).await;
    let tenant = server.sender().await;
    let deep = format!("{{\"target\":\"everyone\",\"android\":{}", "{\"a\":".repeat(100_000));
    let bodies: [Vec<u8>; 3] =
        [b"{\"target\":\"\xff\xfe\"}".to_vec(), deep.into_bytes(), "[".repeat(500_000).into_bytes()];
    for body in bodies {
        let request =
            server.send(&tenant, Method::POST, "/v1/messages").header("content-type", "application/json");
        assert_eq!(request.body(body).read().await.refusal().1, "invalid_request");
    }
}

#[tokio::test]
async fn an_override_nested_deeper_than_a_record_may_be_is_refused_by_name() {
    let server = server().await;
    let tenant = server.sender().await;
    let message = |levels: usize| {
        let deep = (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
        json!({ "target": "everyone", "apns": { "payload": deep } })
    };
    let schedule = |levels| json!({ "cron": "0 0 1 1 *", "time_zone": "UTC", "message": message(levels) });
    for levels in [33, 100, 120] {
        let read = server.send(&tenant, Method::POST, "/v1/messages").json(&message(levels)).read().await;
        assert_eq!(read.refusal(), (422, "invalid_field".into(), Some("apns.payload".into())));
        let read = server.send(&tenant, Method::POST, "/v1/schedules").json(&schedule(levels)).read().await;
        assert_eq!(read.refusal(), (422, "invalid_field".into(), Some("message.apns.payload".into())));
    }
    let made = server.post(&tenant, "/v1/schedules", schedule(32)).await;
    let id = made["id"].as_str().expect("an id");
    let read = server.get(&tenant, &format!("/v1/schedules/{id}")).await;
    assert_eq!(read["message"]["apns"], message(32)["apns"]);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let server = server_with(|config| config.api.body_max_bytes = 1_000).await;
    let tenant = server.sender().await;
    let body = json!({"target": "everyone", "data": {"k": "v".repeat(1_000)}});
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(read.refusal().1, "payload_too_large");
    let pieces = (0..3).map(|_| Ok::<_, std::io::Error>(vec![b' '; 600]));
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let request =
        server.send(&tenant, Method::POST, "/v1/messages").header("content-type", "application/json");
    assert_eq!(request.body(stream).read().await.refusal().1, "payload_too_large");
}

/// Sends a request and reads the response only after all of it is written, like a simple client; returns the response.
async fn write_all_and_read(server: &Server, head: &str, body: &str) -> String {
    let address = server.url.strip_prefix("http://").expect("plain");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(head.as_bytes()).await.expect("written");
    for half in [&body[..body.len() / 2], &body[body.len() / 2..]] {
        stream.write_all(half.as_bytes()).await.expect("taken");
        // A server that responds and closes early does it during this pause; the next write is then reset.
        let _nothing_comes = timeout(Duration::from_millis(200), stream.readable()).await;
    }
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.expect("read");
    String::from_utf8(reply).expect("a text")
}

#[tokio::test]
async fn who_still_writes_a_body_that_is_too_large_gets_to_read_that_it_is() {
    let server = server_with(|config| config.api.body_max_bytes = 200_000).await;
    let key = server.sender().await.key;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nconnection: close\r\n"
    );
    let body = " ".repeat(300_000);
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (more, body) in [("content-length: 300000", &body), ("transfer-encoding: chunked", &chunk)] {
        let reply = write_all_and_read(&server, &format!("{head}{more}\r\n\r\n"), body).await;
        assert!(reply.starts_with("HTTP/1.1 413 ") && reply.contains("payload_too_large"), "{reply}");
    }
    // A body far above the limit is refused at once, and so is one that waits for `100 Continue`.
    for more in ["content-length: 900000", "content-length: 300000\r\nexpect: 100-continue"] {
        let reply = write_all_and_read(&server, &format!("{head}{more}\r\n\r\n"), "").await;
        assert!(reply.starts_with("HTTP/1.1 413 "), "{more}: {reply}");
    }
}

#[tokio::test]
async fn what_a_push_service_would_refuse_is_refused_before_it_is_kept() {
    let server = server().await;
    let tenant = server.sender().await;
    let target = json!({"token": {"platform": "android", "token": "t"}});
    let nobody = json!({"target": target, "data": {"k": "v"}});
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&nobody).read().await;
    assert_eq!(read.refusal().1, "conflict", "no credential for fcm");
    crate::tenants::put_fcm(&server, &tenant).await;
    let cases = [
        (json!({"google.x": "v"}), "data.google.x"),
        (json!({"from": "v"}), "data.from"),
        (json!({"k": "v".repeat(5_000)}), "data"),
    ];
    for (data, field) in cases {
        let body = json!({"target": "everyone", "data": data});
        let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
        let (status, code, named) = read.refusal();
        assert_eq!((status, code.as_str()), (422, "invalid_field"), "{read:?}");
        assert!(named.expect("a field").starts_with(field), "{read:?}");
    }
    let device = server.device(&tenant, "t").await;
    let body = json!({"target": {"device": device}, "data": {"google.x": "v"}});
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(read.status, 202, "the device is not reached through fcm: {read:?}");
}

#[tokio::test]
async fn a_token_that_is_too_long_is_refused_where_it_is_named() {
    let server = server().await;
    let tenant = server.sender().await;
    let refused = async |path: &str, body: Value| {
        let read = server.send(&tenant, Method::POST, path).json(&body).read().await;
        let (status, code, field) = read.refusal();
        (status, code, field.unwrap_or_default(), read.text("detail"))
    };
    let token = json!({"platform": "apple", "token": "a".repeat(4_098)});
    let registered = refused("/v1/devices", token.clone()).await;
    assert_eq!((registered.0, registered.1.as_str(), registered.2.as_str()), (422, "invalid_field", "token"));
    let message = json!({"target": {"token": token}, "data": {"k": "v"}});
    let sent = refused("/v1/messages", message.clone()).await;
    assert_eq!((sent.0, sent.1.as_str(), sent.2.as_str()), (422, "invalid_field", "target.token.token"));
    assert_eq!(sent.3, registered.3.replace("token", "target.token.token"), "in the same words");
    let schedule = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": message});
    assert_eq!(refused("/v1/schedules", schedule).await.2, "message.target.token.token");
}

#[tokio::test]
async fn wrong_addresses_methods_types_and_queries_are_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    let cases: [(Method, &str, u16, &str); 12] = [
        (Method::GET, "/nowhere", 404, "not_found"),
        (Method::GET, "/v1/nowhere", 404, "not_found"),
        (Method::PUT, "/v1/messages", 405, "method_not_allowed"),
        (Method::DELETE, "/healthz", 405, "method_not_allowed"),
        (Method::POST, "/v1/messages", 415, "unsupported_media_type"),
        (Method::GET, "/v1/devices?limit=0", 422, "invalid_field"),
        (Method::GET, "/v1/devices?limit=many", 422, "invalid_field"),
        (Method::GET, "/v1/devices?limt=1", 422, "invalid_field"),
        (Method::GET, "/v1/devices?after=msg_1", 422, "invalid_field"),
        (Method::GET, "/v1/devices/dev_short", 404, "not_found"),
        (Method::GET, "/v1/topics/with%20space", 422, "invalid_field"),
        (Method::GET, "/v1/users/%ff", 400, "invalid_request"),
    ];
    for (method, path, status, code) in cases {
        let read = server.send(&tenant, method, path).read().await;
        let (found, word, _) = read.refusal();
        assert_eq!((found, word.as_str()), (status, code), "{path}: {read:?}");
    }
}

#[tokio::test]
async fn wrong_keys_and_idempotency_keys_are_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    let unknown = format!("sk_{}", "x".repeat(43));
    for key in ["", "x", &unknown, &"k".repeat(4_000)] {
        let read = server.with_key(key, Method::GET, "/v1/devices").read().await;
        assert_eq!(read.refusal().1, "unauthorized");
        assert!(read.headers.contains_key("www-authenticate"));
    }
    assert_eq!(server.open(Method::GET, "/v1/devices").read().await.refusal().1, "unauthorized");
    let basic = server.open(Method::GET, "/v1/devices").basic_auth("user", Some("x")).read().await;
    assert_eq!(basic.refusal().1, "unauthorized");
    let body: Value = json!({"target": "everyone", "data": {"k": "v"}});
    for key in ["", "with space", &"k".repeat(256)] {
        let ask =
            server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", key).json(&body);
        assert_eq!(ask.read().await.refusal().2.as_deref(), Some("Idempotency-Key"), "{key:?}");
    }
}

#[tokio::test]
async fn an_array_in_place_of_an_object_is_refused_with_the_fields_name() {
    let server = server().await;
    let tenant = server.sender().await;
    let cases = [
        ("/v1/messages", json!({"target": "everyone", "notification": ["Hi"]}), "notification"),
        ("/v1/messages", json!({"target": {"token": ["android", "t"]}, "data": {"k": "v"}}), "target.token"),
        ("/v1/schedules", json!({"recurrence": ["0 8 * * *"], "message": []}), "message"),
    ];
    for (path, body, field) in cases {
        let read = server.send(&tenant, Method::POST, path).json(&body).read().await;
        let (status, code, named) = read.refusal();
        assert_eq!((status, code.as_str()), (422, "invalid_field"), "{read:?}");
        assert!(named.is_some_and(|named| named.starts_with(field) || field.starts_with(&named)), "{read:?}");
    }
}
