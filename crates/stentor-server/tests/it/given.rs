//! Values are accepted as their specification allows, through each interface: in either case, with a null, with a number of any size.
//! Values that no push service could carry are refused before they are stored.

use std::sync::Arc;
use stentor_storage::conformance::PlainChanges;

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::device::{Platform, ProviderKind, PushToken, Registration};
use stentor_core::ports::store::DeviceStore as _;
use stentor_core::time::Timestamp;
use stentor_storage::sqlite::SqliteStore;

use crate::harness::{Read, Reading, Server, Tenant, server, server_on_store};

const SMALL: &str = "ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01ab01";

/// Creates an app with a credential for APNs at an address without a server.
async fn apns_sender(server: &Server) -> Tenant {
    let tenant = server.tenant().await;
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let credential = json!({"key_p8": key, "key_id": "KEY0123456", "team_id": "TEAM012345",
        "bundle_id": "com.example.app", "endpoint": "https://127.0.0.1:9"});
    let path = format!("/v1/apps/{}/credentials/apns", tenant.id);
    let put = server.send(&tenant, Method::PUT, &path).json(&credential).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    tenant
}

async fn post(server: &Server, tenant: &Tenant, path: &str, body: &Value) -> Read {
    server.send(tenant, Method::POST, path).json(body).read().await
}

#[tokio::test]
async fn a_token_of_apns_is_one_device_whatever_its_case() {
    let server = server().await;
    let tenant = server.sender().await;
    let capitals = SMALL.to_uppercase();
    let device = |token: &str| json!({"platform": "apple", "token": token});
    let first = post(&server, &tenant, "/v1/devices", &device(SMALL)).await;
    let again = post(&server, &tenant, "/v1/devices", &device(&capitals)).await;
    assert_eq!((first.status, again.status, &again.body["id"]), (201, 200, &first.body["id"]));
    let many = json!({"devices": [device(&capitals), device(SMALL)]});
    let many = post(&server, &tenant, "/v1/devices/bulk", &many).await;
    for result in many.body["results"].as_array().expect("results") {
        assert_eq!(result["registered"]["id"].as_str().or(result["id"].as_str()), first.body["id"].as_str());
    }
    let lines = server.send(&tenant, Method::POST, "/v1/devices/import");
    let lines = lines.header("content-type", "application/x-ndjson").body(device(&capitals).to_string());
    assert_eq!(lines.read().await.status, 200);
    let printed = format!("<{} {}>", &capitals[..8], &SMALL[8..]);
    let again = post(&server, &tenant, "/v1/devices", &device(&printed)).await;
    assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]), "{again:?}");
    assert_eq!(server.get(&tenant, "/v1/devices").await["devices"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_device_that_was_kept_in_capitals_is_found_and_gets_the_spelling_that_counts() {
    let store = Arc::new(SqliteStore::temporary().expect("a store"));
    let server = server_on_store(Arc::clone(&store), |_| {}).await;
    let tenant = server.sender().await;
    let app = tenant.id.parse().expect("an id");
    let stored_token = PushToken::new(SMALL.to_uppercase()).expect("a token");
    let other = PushToken::new(format!("CD{}", &SMALL[2..]).to_uppercase()).expect("a token");
    let registrations = [Registration::new(Platform::Apple, ProviderKind::Apns, stored_token)];
    let stored =
        store.register(app, &registrations, Timestamp::from_millis(1)).await.expect("registered")[0].device;
    let registrations = [Registration::new(Platform::Apple, ProviderKind::Apns, other.clone())];
    let imported =
        store.register(app, &registrations, Timestamp::from_millis(1)).await.expect("registered")[0].device;
    let read = post(&server, &tenant, "/v1/devices", &json!({"platform": "ios", "token": SMALL})).await;
    assert_eq!((read.status, read.body["id"].as_str()), (200, Some(stored.to_string().as_str())), "{read:?}");
    let line = json!({"platform": "ios", "token": other.expose().to_lowercase()}).to_string();
    let import = server.send(&tenant, Method::POST, "/v1/devices/import");
    let read = import.header("content-type", "application/x-ndjson").body(line).read().await;
    assert_eq!((&read.body["created"], &read.body["updated"]), (&json!(0), &json!(1)), "{read:?}");
    for (device, small) in [(stored, SMALL.to_owned()), (imported, other.expose().to_lowercase())] {
        let token = store.device(app, device).await.expect("a device").token;
        assert_eq!(token.expose(), small);
    }
}

#[tokio::test]
async fn what_can_be_no_token_of_apns_is_named_by_each_way_in() {
    let server = server().await;
    let tenant = apns_sender(&server).await;
    for wrong in ["(null)", "abc", &SMALL[1..], "<ab01>", &format!("{}g", &SMALL[1..])] {
        let push = json!({"notifications": [{"tokens": [wrong, SMALL], "platform": 1, "message": "Hi"}]});
        let read = post(&server, &tenant, "/api/push", &push).await;
        let logs = read.body["logs"].as_array().expect("logs");
        assert_eq!(
            (logs.len(), &logs[0]["token"], &logs[0]["error"]),
            (1, &wrong.into(), &"BadDeviceToken".into())
        );
        let send = json!({"target": {"token": {"platform": "apple", "token": wrong}}, "data": {"a": "b"}});
        let refused = post(&server, &tenant, "/v1/messages", &send).await.refusal();
        assert_eq!(
            refused,
            (422, "invalid_field".to_owned(), Some("target.token.token".to_owned())),
            "{wrong}"
        );
        let device = json!({"platform": "apple", "token": wrong});
        let refused = post(&server, &tenant, "/v1/devices", &device).await.refusal();
        assert_eq!(refused, (422, "invalid_field".to_owned(), Some("token".to_owned())), "{wrong}");
        let many = post(&server, &tenant, "/v1/devices/bulk", &json!({"devices": [device]})).await;
        assert_eq!(many.body["results"][0]["refused"]["code"], "invalid_field", "{many:?}");
        let import = server.send(&tenant, Method::POST, "/v1/devices/import");
        let import = import.header("content-type", "application/x-ndjson").body(device.to_string());
        assert_eq!(import.read().await.body["failed"], json!(1), "{wrong}");
    }
}

#[tokio::test]
async fn a_collapse_key_that_no_header_can_carry_is_refused_by_each_way_in() {
    let server = server().await;
    let tenant = apns_sender(&server).await;
    let with = |key: &str| json!({"target": "everyone", "data": {"a": "b"}, "collapse_key": key});
    let field = |read: &Read| read.refusal();
    for wrong in ["score ", " score", "a\nb", " "] {
        let read = post(&server, &tenant, "/v1/messages", &with(wrong)).await;
        assert_eq!(field(&read), (422, "invalid_field".into(), Some("collapse_key".into())), "{wrong:?}");
        let many = post(&server, &tenant, "/v1/messages/bulk", &json!({"messages": [with(wrong)]})).await;
        assert_eq!(many.body["results"][0]["refused"]["field"], "collapse_key", "{many:?}");
        let schedule = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": with(wrong)});
        let read = post(&server, &tenant, "/v1/schedules", &schedule).await;
        assert_eq!(field(&read), (422, "invalid_field".into(), Some("message.collapse_key".into())));
        for name in ["collapse_id", "collapse_key"] {
            let mut push = json!({"notifications": [{"tokens": [SMALL], "platform": 1, "message": "Hi"}]});
            push["notifications"][0][name] = wrong.into();
            let read = post(&server, &tenant, "/api/push", &push).await;
            assert_eq!(read.body["logs"].as_array().map(Vec::len), Some(1), "{read:?}");
        }
        let own = json!({"target": "everyone", "data": {"a": "b"}, "apns": {"headers": {"apns-collapse-id": wrong}}});
        let read = post(&server, &tenant, "/v1/messages", &own).await;
        assert_eq!(field(&read).2.as_deref(), Some("apns.headers.apns-collapse-id"));
    }
    assert_eq!(server.get(&tenant, "/v1/messages").await["messages"], json!([]));
    assert_eq!(post(&server, &tenant, "/v1/messages", &with("the score")).await.status, 202);
}

#[tokio::test]
async fn a_null_in_a_front_is_absence() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let message = json!({"data": null, "notification": {"title": "t", "sound": null, "body": null}, "condition": null,
        "collapse_key": null, "time_to_live": null, "dry_run": null, "priority": null, "content_available": null});
    let mut legacy = message.clone();
    legacy["to"] = "token-a".into();
    let read = post(&server, &tenant, "/fcm/send", &legacy).await;
    assert_eq!((read.status, &read.body["success"]), (200, &json!(1)), "{read:?}");
    legacy["notification"] = Value::Null;
    legacy["data"] = json!({"k": null, "n": "x"});
    let read = post(&server, &tenant, "/fcm/send", &legacy).await;
    assert_eq!((read.status, &read.body["success"]), (200, &json!(1)), "{read:?}");
    let mut push = message;
    push["tokens"] = json!(["token-a"]);
    push["devices"] = Value::Null;
    push["platform"] = 2.into();
    push["alert"] = Value::Null;
    push["badge"] = Value::Null;
    let read = post(&server, &tenant, "/api/push", &json!({"notifications": [push]})).await;
    assert_eq!((read.status, &read.body["logs"]), (200, &json!([])), "{read:?}");
    let sent = server.get(&tenant, "/v1/messages").await;
    for one in sent["messages"].as_array().expect("messages") {
        let shown =
            server.get(&tenant, &format!("/v1/messages/{}", one["id"].as_str().expect("an id"))).await;
        for part in ["notification", "data", "android", "apns", "collapse_key"] {
            assert!(!shown[part].to_string().contains("\"null\""), "{shown}");
        }
    }
}

#[tokio::test]
async fn what_only_iphones_know_of_a_legacy_notification_reaches_them() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let body = json!({"to": "token-a", "mutable_content": true, "notification": {"title": "t", "subtitle": "s",
        "click_action": "OPEN", "body_loc_key": "b", "body_loc_args": ["1"], "title_loc_key": "k", "title_loc_args": "[\"2\"]",
        "badge": "3", "sound": "ping"}});
    let read = post(&server, &tenant, "/fcm/send", &body).await;
    assert_eq!(read.body["success"], 1, "{read:?}");
    let list = server.get(&tenant, "/v1/messages").await;
    let id = list["messages"][0]["id"].as_str().expect("an id").to_owned();
    let aps = server.get(&tenant, &format!("/v1/messages/{id}")).await["apns"]["payload"]["aps"].clone();
    let alert = json!({"subtitle": "s", "loc-key": "b", "loc-args": ["1"], "title-loc-key": "k", "title-loc-args": ["2"]});
    let expected =
        json!({"alert": alert, "category": "OPEN", "badge": 3, "sound": "ping", "mutable-content": 1});
    assert_eq!(aps, expected);
}

#[tokio::test]
async fn a_number_that_would_be_rounded_is_refused_with_its_path() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let ask = |path: &'static str, body: String| {
        server.send(&tenant, Method::POST, path).header("content-type", "application/json").body(body).read()
    };
    let apns = |number: &str| {
        format!(r#"{{"target":"everyone","data":{{"a":"b"}},"apns":{{"payload":{{"a":{number}}}}}}}"#)
    };
    for wrong in [
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1234567890123456789",
    ] {
        let read = ask("/v1/messages", apns(wrong)).await;
        let expected = (422, "invalid_field".to_owned(), Some("apns.payload.a".to_owned()));
        assert_eq!(read.refusal(), expected, "{wrong}");
        let legacy = format!(r#"{{"to":"token-a","data":{{"a":"b"}},"notification":{{"badge":{wrong}}}}}"#);
        assert_eq!(ask("/fcm/send", legacy).await.status, 400, "{wrong}");
    }
    for right in ["18446744073709551615", "-9223372036854775808"] {
        let read = ask("/v1/messages", apns(right)).await;
        let id = read.text("id");
        let shown = server.get(&tenant, &format!("/v1/messages/{id}")).await;
        assert_eq!(shown["apns"]["payload"]["a"].to_string(), right);
    }
}

#[tokio::test]
async fn numbers_in_the_data_of_the_legacy_api_are_texts_to_the_last_digit() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = server.device(&tenant, "token-a").await;
    for number in ["1.10", "1e3", "12345678901234567890123", "0.1234567890123456789"] {
        let body = format!(r#"{{"to":"token-a","data":{{"a":{number}}}}}"#);
        let request =
            server.send(&tenant, Method::POST, "/fcm/send").header("content-type", "application/json");
        let read = request.body(body).read().await;
        assert_eq!((read.status, &read.body["success"]), (200, &json!(1)), "{read:?}");
        let id = read.body["results"][0]["message_id"].as_str().expect("an id").to_owned();
        let shown = server.get(&tenant, &format!("/v1/messages/{id}")).await;
        assert_eq!(shown["data"]["a"], number, "{device}");
    }
}

#[tokio::test]
async fn nil_and_empty_elements_say_nothing_and_old_clients_of_java_are_answered() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let xml = r#"<SendMessage xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><target><everyone>true</everyone></target>
        <data><entry><key>a</key><value>b</value></entry><entry><key>c</key><value xsi:nil="true"/></entry></data>
        <collapse_key xsi:nil="true"/><android/></SendMessage>"#;
    let request =
        server.send(&tenant, Method::POST, "/v1/messages").header("content-type", "application/xml");
    let java = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
    let read = request.header("accept", java).body(xml).read().await;
    assert_eq!(read.status, 202, "{read:?}");
    let id = read.text("id");
    let shown = server.get(&tenant, &format!("/v1/messages/{id}")).await;
    assert_eq!((&shown["data"], &shown["android"]), (&json!({"a": "b"}), &Value::Null), "{shown}");
}

#[tokio::test]
async fn a_byte_order_mark_before_a_request_is_passed_over() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = json!({"platform": "android", "provider": "null", "token": "token-a"});
    let request =
        server.send(&tenant, Method::POST, "/v1/devices").header("content-type", "application/json");
    let read = request.body(format!("\u{feff}{device}")).read().await;
    assert_eq!(read.status, 201, "{read:?}");
}
