//! Stories of callers, and refusals.

use reqwest::Method;
use serde_json::{Value, json};

use super::{EVERY_FACE, Refused, Through, ask, done, server};
use crate::harness::{Reading, Server, Tenant};

const LINES: &str = "{\"platform\":\"android\",\"provider\":\"null\",\"token\":\"of-a-line\"}\n\
                     {\"platform\":\"vms\",\"token\":\"of-a-bad-line\"}\n";

#[tokio::test]
async fn a_device_is_registered_others_imported_all_reached_and_the_ledger_says_the_same() {
    let server = server().await;
    for through in EVERY_FACE {
        let tenant = server.sender().await;
        let key = &tenant.key;
        let device =
            json!({"platform": "android", "provider": "null", "token": "a-phone", "topics": ["news"]});
        let registered = done(through, &server, key, "devices.register", device.clone()).await;
        assert_eq!(registered["created"], true, "{through:?}");
        let again = done(through, &server, key, "devices.register", device).await;
        assert_eq!((&again["id"], &again["created"]), (&registered["id"], &json!(false)), "{through:?}");
        let lines = json!({"format": "ndjson", "lines": LINES});
        let imported = done(through, &server, key, "devices.import", lines).await;
        let of_line = &imported["errors"][0];
        assert_eq!((&imported["created"], &imported["failed"]), (&json!(1), &json!(1)), "{through:?}");
        assert_eq!((&of_line["line"], &of_line["code"]), (&json!(2), &json!("invalid_field")), "{through:?}");
        let message = json!({"target": everyone(through), "data": {"k": "v"}, "ttl_seconds": 60});
        let sent = sent_id(&done(through, &server, key, "messages.send", message).await);
        server.ended(&tenant, &sent).await;
        let ledger = done(through, &server, key, "messages.ledger", json!({"message": sent})).await;
        assert_eq!(
            (&ledger["balanced"], &ledger["audience"]),
            (&json!(true), &json!(2)),
            "{through:?}: {ledger}"
        );
        assert_eq!(ledger["totals"]["accepted"], 2, "{through:?}: {ledger}");
    }
}

#[tokio::test]
async fn the_keys_that_a_device_has_told_are_found_through_every_face() {
    let server = server().await;
    let tenant = server.tenant().await;
    let join = server.key(&tenant.id, &["join"]).await;
    let joined =
        server.with_key(&join, Method::POST, "/gateway/v1/devices").json(&json!({})).read().await.body;
    let text = |name: &str| joined[name].as_str().expect("a text");
    let keys = json!({
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    });
    let put =
        server.open(Method::PUT, "/gateway/v1/device/keys").basic_auth(text("token"), Some(text("secret")));
    assert_eq!(put.json(&keys).read().await.status, 204);
    for through in EVERY_FACE {
        let device = json!({"device": text("device")});
        let shown = done(through, &server, &tenant.key, "devices.show", device).await;
        assert_eq!(shown["keys"], keys, "{through:?}");
        let listed = done(through, &server, &tenant.key, "devices.list", json!({})).await;
        assert_eq!(listed["devices"][0]["keys"], keys, "{through:?}");
    }
}

/// Returns the target of all devices. REST's short form is a word; a format with typed fields has a field for it.
fn everyone(through: Through) -> Value {
    if matches!(through, Through::Soap | Through::Grpc) {
        json!({"everyone": true})
    } else {
        json!("everyone")
    }
}

/// Returns the id of a message, which is the whole reply in REST.
fn sent_id(reply: &Value) -> String {
    let id = reply["accepted"]["id"].as_str().or_else(|| reply["id"].as_str());
    id.unwrap_or_else(|| panic!("no id: {reply}")).to_owned()
}

#[tokio::test]
async fn a_message_that_is_repeated_through_another_face_is_sent_once() {
    let server = server().await;
    let tenant = server.sender().await;
    for first in EVERY_FACE {
        let key = format!("from-{first:?}");
        let id = sent_id(&sent_with(&server, &tenant, first, &key).await);
        for other in EVERY_FACE {
            let again = sent_with(&server, &tenant, other, &key).await;
            assert_eq!(sent_id(&again), id, "{first:?}, then {other:?}");
        }
    }
    let all = server.get(&tenant, "/v1/messages").await;
    assert_eq!(all["messages"].as_array().map(Vec::len), Some(EVERY_FACE.len()), "{all}");
}

#[tokio::test]
async fn several_messages_that_are_repeated_through_another_face_are_sent_once() {
    let server = server().await;
    let tenant = server.sender().await;
    let ids = |reply: &Value| -> Vec<String> {
        reply["results"].as_array().expect("results").iter().map(sent_id).collect()
    };
    for first in EVERY_FACE {
        let key = format!("many-from-{first:?}");
        let sent = ids(&many_sent_with(&server, &tenant, first, &key).await);
        assert_eq!(sent.len(), 2, "{first:?}");
        for other in EVERY_FACE {
            let again = ids(&many_sent_with(&server, &tenant, other, &key).await);
            assert_eq!(again, sent, "{first:?}, then {other:?}");
        }
    }
    let all = server.get(&tenant, "/v1/messages").await;
    assert_eq!(all["messages"].as_array().map(Vec::len), Some(2 * EVERY_FACE.len()), "{all}");
}

async fn many_sent_with(server: &Server, tenant: &Tenant, through: Through, key: &str) -> Value {
    let one = |title: &str| json!({"target": everyone(through), "notification": {"title": title}});
    let record = json!({"messages": [one("a"), one("b")], "idempotency_key": key});
    done(through, server, &tenant.key, "messages.send_many", record).await
}

#[tokio::test]
async fn a_schedule_that_is_repeated_through_another_face_is_made_once() {
    let server = server().await;
    let tenant = server.sender().await;
    for first in EVERY_FACE {
        let key = format!("tick-from-{first:?}");
        let made = scheduled_with(&server, &tenant, first, &key).await;
        for other in EVERY_FACE {
            let again = scheduled_with(&server, &tenant, other, &key).await;
            assert_eq!(again, made, "{first:?}, then {other:?}");
        }
    }
    let all = server.get(&tenant, "/v1/schedules").await;
    assert_eq!(all["schedules"].as_array().map(Vec::len), Some(EVERY_FACE.len()), "{all}");
}

/// Creates a schedule in the far future; returns its id. REST replies the schedule without an envelope.
async fn scheduled_with(server: &Server, tenant: &Tenant, through: Through, key: &str) -> String {
    let message = json!({"target": everyone(through), "data": {"k": "v"}});
    let mut record = json!({"cron": "0 0 1 1 *", "time_zone": "Europe/Rome", "message": message});
    record["idempotency_key"] = json!(key);
    let reply = done(through, server, &tenant.key, "schedules.create", record).await;
    let id = reply["schedule"]["id"].as_str().or_else(|| reply["id"].as_str());
    id.unwrap_or_else(|| panic!("no id: {reply}")).to_owned()
}

async fn sent_with(server: &Server, tenant: &Tenant, through: Through, key: &str) -> Value {
    let mut message = json!({"target": everyone(through), "data": {"k": "v"}});
    message["idempotency_key"] = json!(key);
    done(through, server, &tenant.key, "messages.send", message).await
}

#[tokio::test]
async fn what_is_refused_is_refused_with_the_same_code_and_field_everywhere() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.sender().await);
    let foreign = server.device(&other, "of-another-app").await;
    let only_send = server.key(&tenant.id, &["send"]).await;
    let key = tenant.key.as_str();
    for (key, operation, record, code, field) in [
        ("sk_wrong", "topics.list", json!({}), "unauthorized", None),
        (only_send.as_str(), "devices.register", device("android", "t"), "forbidden", None),
        (key, "apps.create_app", json!({"name": "another"}), "forbidden", None),
        (server.root.as_str(), "devices.list", json!({}), "invalid_request", None),
        (key, "devices.show", json!({"device": foreign}), "not_found", None),
        (key, "devices.show", json!({"device": "mine"}), "not_found", None),
        (key, "devices.remove", json!({"device": foreign}), "not_found", None),
        (key, "messages.ledger", json!({"message": "msg_0000000000001"}), "not_found", None),
        (key, "devices.register", device("vms", "t"), "invalid_field", Some("platform")),
        (key, "devices.register", device("android", ""), "invalid_field", Some("token")),
        (key, "devices.register", device("android", &"t".repeat(5_000)), "invalid_field", Some("token")),
        (key, "devices.register", json!({"platform": "android"}), "invalid_field", Some("token")),
        (
            key,
            "topics.subscribe",
            json!({"topic": "a topic!", "devices": []}),
            "invalid_field",
            Some("topic"),
        ),
        (key, "devices.list", json!({"limit": 0}), "invalid_field", Some("limit")),
        (key, "devices.list", json!({"after": "nonsense"}), "invalid_field", Some("after")),
        (key, "messages.send", late(-1), "invalid_field", Some("ttl_seconds")),
        (key, "messages.send", late(i64::MAX), "invalid_field", Some("ttl_seconds")),
        (key, "users.put", json!({"external_id": "with\ttab"}), "invalid_field", Some("external_id")),
    ] {
        for through in EVERY_FACE {
            let refused = ask(through, &server, key, operation, &record).await;
            let wanted: Refused = (code.to_owned(), field.map(str::to_owned));
            assert_eq!(refused.expect_err("a refusal"), wanted, "{through:?} {operation} {record}");
        }
    }
}

fn device(platform: &str, token: &str) -> Value {
    json!({"platform": platform, "token": token})
}

fn late(ttl_seconds: i64) -> Value {
    json!({"target": {"topic": "news"}, "data": {"k": "v"}, "ttl_seconds": ttl_seconds})
}

#[tokio::test]
async fn what_is_too_large_is_refused_everywhere_and_nothing_of_it_is_kept() {
    let server = server().await;
    let tenant = server.sender().await;
    let large = json!({"target": {"topic": "news"}, "data": {"k": "v".repeat(300_000)}});
    for through in EVERY_FACE {
        let refused = ask(through, &server, &tenant.key, "messages.send", &large).await;
        assert_eq!(refused.expect_err("a refusal").0, "payload_too_large", "{through:?}");
    }
    let all = server.get(&tenant, "/v1/messages").await;
    assert_eq!(all["messages"], json!([]));
}

#[tokio::test]
async fn what_xml_cannot_carry_is_replied_with_a_mark_in_its_place() {
    let server = server().await;
    let tenant = server.sender().await;
    let message = json!({"target": "everyone", "notification": {"title": "a\u{1}b"}});
    let sent = done(Through::Socket, &server, &tenant.key, "messages.send", message).await;
    for through in EVERY_FACE {
        let request = json!({"message": sent_id(&sent)});
        let shown = done(through, &server, &tenant.key, "messages.show", request).await;
        let is_xml = matches!(through, Through::Soap | Through::Xmlrpc);
        let wanted = if is_xml { "a\u{fffd}b" } else { "a\u{1}b" };
        assert_eq!(shown["notification"]["title"], wanted, "{through:?}: {shown}");
    }
}
