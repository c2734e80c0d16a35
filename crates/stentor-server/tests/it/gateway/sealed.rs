//! Devices that have told of a key: what comes to them over the wire only they can read.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use stentor_gateway::web_push::{PushKeyPair, PushKeys, seal};

use super::*;

/// Registers a device and tells the server its keys.
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

/// Opens what the device got, which must say nothing beside.
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
}
