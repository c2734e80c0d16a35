//! Devices with keys: only they can read the messages sent to them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stentor_wire::web_push::{PushKeyPair, PushKeys, seal};

use super::*;
use crate::harness::durable_server;

/// Registers a device and sends its keys to the server.
async fn device_with_keys(server: &Server, tenant: &Tenant) -> (Device, PushKeyPair) {
    let device = Device::join(server, tenant, json!({})).await;
    let pair = PushKeyPair::generate().expect("keys");
    assert_eq!(tell(server, &device, &told(&pair)).await.status, 204);
    (device, pair)
}

fn told(pair: &PushKeyPair) -> Value {
    let (p256dh, auth) = pair.public().expect("keys").texts();
    json!({"p256dh": p256dh, "auth": auth})
}

async fn tell(server: &Server, device: &Device, keys: &Value) -> Read {
    device.ask(server, Method::PUT, "/gateway/v1/device/keys").json(keys).read().await
}

/// Opens the sealed part of a message, which must have no other content.
fn opened(message: &Value, pair: &PushKeyPair, by: &str) -> Vec<u8> {
    let names: Vec<_> = message.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(names, ["id", "priority", "sealed", "sent_at", "ttl_seconds"], "{message}");
    let sealed = &message["sealed"];
    assert_eq!((&sealed["by"], &sealed["encoding"]), (&json!(by), &json!("aes128gcm")));
    let body = BASE64_STANDARD.decode(sealed["body"].as_str().expect("a body")).expect("base64");
    pair.open(&body).expect("sealed for it")
}

#[tokio::test]
async fn a_device_with_keys_gets_its_messages_sealed_however_it_asks_for_them() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let (device, pair) = device_with_keys(&server, &tenant).await;
        let message = send(&server, &tenant, json!({"devices": [device.id]}), "A secret").await;
        let polled = device.poll(&server, "wait_seconds=20").await;
        let (id, event) = device.events(&server, "").await.next().await;
        assert_eq!((id, &polled["cursor"]), (message.clone(), &json!(message)));
        for given in [&polled["messages"][0], &event] {
            let clear: Value = serde_json::from_slice(&opened(given, &pair, "server")).expect("JSON");
            assert_eq!((&clear["id"], &clear["data"]), (&json!(message), &json!({"n": "1"})));
            assert_eq!(clear["notification"]["title"], "A secret");
        }
        let shown = device.ask(&server, Method::GET, "/gateway/v1/device").read().await;
        assert_eq!(shown.body["p256dh"], told(&pair)["p256dh"]);
    }
}

#[tokio::test]
async fn what_a_sender_has_sealed_goes_as_it_is_and_what_it_says_beside_is_sealed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (device, pair) = device_with_keys(&server, &tenant).await;
    let body = seal(b"from the app", &pair.public().expect("keys")).expect("sealed");
    let own = json!({"raw": BASE64_STANDARD.encode(&body), "encoding": "aes128gcm"});
    let target = json!({"devices": [device.id]});
    let alone = json!({"target": target, "gateway": own});
    server.post(&tenant, "/v1/messages", alone).await;
    let polled = device.poll(&server, "wait_seconds=20").await;
    assert_eq!(opened(&polled["messages"][0], &pair, "sender"), b"from the app");
    let cursor = polled["cursor"].as_str().expect("a cursor");
    let beside = json!({"target": target, "data": {"k": "v"}, "gateway": own});
    server.post(&tenant, "/v1/messages", beside).await;
    let polled = device.poll(&server, &format!("wait_seconds=20&after={cursor}")).await;
    let clear: Value =
        serde_json::from_slice(&opened(&polled["messages"][0], &pair, "server")).expect("JSON");
    assert_eq!((&clear["data"], &clear["gateway"]), (&json!({"k": "v"}), &own));
}

#[tokio::test]
async fn whoever_tells_of_keys_ends_the_session_that_was_open_and_without_them_messages_are_clear() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut events = device.events(&server, "").await;
    let pair = PushKeyPair::generate().expect("keys");
    assert_eq!(tell(&server, &device, &told(&pair)).await.status, 204);
    let end = tokio::time::timeout(Duration::from_secs(20), events.response.chunk()).await;
    assert!(matches!(end.expect("in time"), Ok(None) | Err(_)), "it was opened before there were keys");
    let message = send(&server, &tenant, json!({"devices": [device.id]}), "Hi").await;
    let (id, sealed) = device.events(&server, "").await.next().await;
    assert_eq!((id, sealed["sealed"]["by"].as_str()), (message, Some("server")));
    let removed = device.ask(&server, Method::DELETE, "/gateway/v1/device/keys").read().await;
    assert_eq!(removed.status, 204);
    let (_, clear) = device.events(&server, "").await.next().await;
    assert_eq!(clear["notification"]["title"], "Hi");
}

#[tokio::test]
async fn an_app_finds_the_keys_that_a_device_has_told_and_nobody_elses() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let (tenant, other) = (server.tenant().await, server.tenant().await);
        let without = Device::join(&server, &tenant, json!({})).await;
        let (device, pair) = device_with_keys(&server, &tenant).await;
        let path = format!("/v1/devices/{}", device.id);
        let shown = server.get(&tenant, &path).await;
        assert_eq!(shown["keys"], told(&pair));
        let listed = server.get(&tenant, "/v1/devices").await;
        let keys = listed["devices"].as_array().expect("a list").iter().map(|one| one.get("keys"));
        assert_eq!(keys.collect::<Vec<_>>(), [None, Some(&told(&pair))], "{listed}");
        assert!(server.get(&tenant, &format!("/v1/devices/{}", without.id)).await.get("keys").is_none());

        assert_eq!(server.send(&other, Method::GET, &path).read().await.refusal().0, 404);
        let of_devices = server.key(&tenant.id, &["join"]).await;
        assert_eq!(server.with_key(&of_devices, Method::GET, &path).read().await.refusal().0, 403);

        let next = PushKeyPair::generate().expect("keys");
        assert_eq!(tell(&server, &device, &told(&next)).await.status, 204);
        assert_eq!(server.get(&tenant, &path).await["keys"], told(&next), "what it told last");
        let removed = device.ask(&server, Method::DELETE, "/gateway/v1/device/keys").read().await;
        assert_eq!((removed.status, server.get(&tenant, &path).await.get("keys")), (204, None));
    }
}

#[tokio::test]
async fn keys_are_a_part_of_the_state_by_which_a_device_is_changed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let path = format!("/v1/devices/{}", device.id);
    let tag = async || {
        let shown = server.send(&tenant, Method::GET, &path).send().await.expect("shown");
        shown.headers()["etag"].to_str().expect("text").to_owned()
    };
    let before = tag().await;
    let pair = PushKeyPair::generate().expect("keys");
    assert_eq!(tell(&server, &device, &told(&pair)).await.status, 204);
    let change = async |tag: &str| {
        let change = server.send(&tenant, Method::PATCH, &path).header("if-match", tag);
        change.json(&json!({"tags": ["sealed"]})).read().await
    };
    assert_eq!(change(&before).await.status, 412);
    let changed = change(&tag().await).await;
    assert_eq!((changed.status, &changed.body["keys"]), (200, &told(&pair)));
}

#[tokio::test]
async fn of_what_an_app_has_sealed_the_servers_files_hold_nothing_that_can_be_read() {
    const SECRET: &str = "the code of the door is 4711";
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let (device, pair) = device_with_keys(&server, &tenant).await;
    let shown = server.get(&tenant, &format!("/v1/devices/{}", device.id)).await;
    let text = |name: &str| shown["keys"][name].as_str().expect("a text");
    let keys = PushKeys::read(text("p256dh"), text("auth")).expect("keys");
    let body = seal(SECRET.as_bytes(), &keys).expect("sealed");
    let own = json!({"raw": BASE64_STANDARD.encode(&body), "encoding": "aes128gcm"});
    let target = json!({"device": device.id});
    server.post(&tenant, "/v1/messages", json!({"target": target, "gateway": own})).await;
    let polled = device.poll(&server, "wait_seconds=20").await;
    assert_eq!(opened(&polled["messages"][0], &pair, "sender"), SECRET.as_bytes());
    let cursor = polled["cursor"].as_str().expect("a cursor").to_owned();
    // Where the server seals, it stores the sender's text: the search below must find that much.
    let found = send(&server, &tenant, target, "not sealed by its sender").await;
    let polled = device.poll(&server, &format!("wait_seconds=20&after={cursor}")).await;
    assert_eq!(polled["messages"][0]["id"], json!(found));
    let folder = server.stop().await;
    assert!(!holding(folder.path(), b"not sealed by its sender").is_empty());
    assert!(!holding(folder.path(), BASE64_STANDARD.encode(&body).as_bytes()).is_empty());
    for trace in [SECRET.as_bytes(), BASE64_STANDARD.encode(SECRET).as_bytes()] {
        assert_eq!(holding(folder.path(), trace), Vec::<std::path::PathBuf>::new());
    }
}

/// Lists the files below a folder that hold some bytes.
fn holding(folder: &std::path::Path, bytes: &[u8]) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let found = entries.flat_map(|path| {
        if path.is_dir() {
            return holding(&path, bytes);
        }
        let content = std::fs::read(&path).expect("read");
        let holds = content.windows(bytes.len()).any(|window| window == bytes);
        if holds { vec![path] } else { Vec::new() }
    });
    found.collect()
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut off_the_curve = [1; 65];
    off_the_curve[0] = 4;
    let text = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(off_the_curve);
    let auth = "BTBZMqHH6r4Tts7J_aSIgg";
    assert!(PushKeys::read(&text, auth).is_some(), "the right form");
    for p256dh in ["AAAA", &text] {
        let refused = tell(&server, &device, &json!({"p256dh": p256dh, "auth": auth})).await;
        assert_eq!((refused.status, &refused.body["field"]), (422, &json!("p256dh")), "{refused:?}");
    }
    let pair = PushKeyPair::generate().expect("keys");
    let good = told(&pair);
    assert_eq!(tell(&server, &device, &good).await.status, 204);
    let long = "A".repeat(100_000);
    for hostile in [
        json!({}),
        json!([]),
        json!({"p256dh": good["p256dh"]}),
        json!({"p256dh": good["p256dh"], "auth": ""}),
        json!({"p256dh": good["p256dh"], "auth": long}),
        json!({"p256dh": long, "auth": auth}),
        json!({"p256dh": format!("{} {auth}", good["p256dh"].as_str().expect("text")), "auth": auth}),
        json!({"p256dh": {"x": 1}, "auth": [1]}),
        json!({"p256dh": good["p256dh"], "auth": good["auth"], "private": "x"}),
    ] {
        let refused = tell(&server, &device, &hostile).await;
        assert!((400..500).contains(&refused.status), "{hostile}: {refused:?}");
    }
    let shown = server.get(&tenant, &format!("/v1/devices/{}", device.id)).await;
    assert_eq!(shown["keys"], good, "what was refused changed nothing");
}

#[tokio::test]
async fn what_only_looks_sealed_is_sealed_by_the_server_and_never_given_in_clear() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (device, pair) = device_with_keys(&server, &tenant).await;
    let mut after = String::new();
    for none in [json!("no base64!"), json!(7)] {
        let message =
            json!({"target": {"device": device.id}, "gateway": {"raw": none, "encoding": "aes128gcm"}});
        let refused = server.send(&tenant, Method::POST, "/v1/messages").json(&message).read().await;
        assert_eq!((refused.status, refused.refusal().2.as_deref()), (422, Some("gateway.raw")));
    }
    for own in [
        json!({"raw": "AAAA", "encoding": "AES128GCM"}),
        json!({"encoding": "aes128gcm"}),
        json!({"raw": "AAAA", "encoding": {"x": []}}),
    ] {
        let message = json!({"target": {"device": device.id}, "gateway": own});
        server.post(&tenant, "/v1/messages", message).await;
        let polled = device.poll(&server, &format!("wait_seconds=20{after}")).await;
        let clear: Value =
            serde_json::from_slice(&opened(&polled["messages"][0], &pair, "server")).expect("JSON");
        assert_eq!(clear["gateway"], own);
        after = format!("&after={}", polled["cursor"].as_str().expect("a cursor"));
    }
}
