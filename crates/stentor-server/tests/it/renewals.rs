//! Devices that get another address at their push service, one by one and in bulk.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Read, Reading, Server, Tenant, server};

/// An address of the newer kind that FCM has.
const FID: &str = "cJ4vGd1wRk2aB-3_xYz09Q";

async fn register(server: &Server, tenant: &Tenant, body: &Value) -> Read {
    server.send(tenant, Method::POST, "/v1/devices").json(body).read().await
}

async fn import(server: &Server, tenant: &Tenant, query: &str, kind: &str, body: &str) -> Value {
    let request = server.send(tenant, Method::POST, &format!("/v1/devices/import{query}"));
    let read = request.header("content-type", kind).body(body.to_owned()).read().await;
    assert_eq!(read.status, 200, "{read:?}");
    read.body
}

fn counts(report: &Value) -> [u64; 5] {
    ["created", "updated", "renewed", "merged", "failed"].map(|key| report[key].as_u64().expect("a count"))
}

async fn listed(server: &Server, tenant: &Tenant, query: &str) -> Vec<String> {
    let page = server.get(tenant, &format!("/v1/devices?{query}")).await;
    let ids = page["devices"].as_array().expect("a list").iter();
    ids.map(|device| device["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_device_registered_with_its_former_token_keeps_its_id_and_its_topics() {
    let server = server().await;
    let tenant = server.tenant().await;
    let old = json!({"platform": "android", "token": "old", "user": "ada", "topics": ["news"]});
    let id = register(&server, &tenant, &old).await.text("id");
    let new = json!({"platform": "android", "token": FID, "former_token": "old"});
    let moved = register(&server, &tenant, &new).await;
    assert_eq!((moved.status, moved.text("id"), &moved.body["created"]), (200, id.clone(), &json!(false)));
    let shown = server.get(&tenant, &format!("/v1/devices/{id}")).await;
    assert_eq!((&shown["token_hint"], &shown["user"]), (&json!("…z09Q"), &json!("ada")));
    let topics = server.get(&tenant, &format!("/v1/devices/{id}/topics")).await;
    assert_eq!(topics["topics"], json!(["news"]));
    assert_eq!(listed(&server, &tenant, "").await, [id]);
}

#[tokio::test]
async fn an_import_tells_which_devices_are_new_have_moved_or_have_become_one() {
    let server = server().await;
    let tenant = server.tenant().await;
    let lines = |pairs: &[(&str, &str)]| -> String {
        let line = |(token, former): &(&str, &str)| {
            format!("{}\n", json!({"platform": "android", "token": token, "former_token": former}))
        };
        pairs.iter().map(line).collect()
    };
    let before = "platform,token,topics\nandroid,a,news\nandroid,b,\nandroid,b2,sport\n";
    assert_eq!(counts(&import(&server, &tenant, "", "text/csv", before).await), [3, 0, 0, 0, 0]);
    let body = format!("{}nonsense\n", lines(&[("a2", "a"), ("b2", "b"), ("c2", "c")]));
    let rehearsed = import(&server, &tenant, "?dry_run=true", "application/x-ndjson", &body).await;
    assert_eq!((counts(&rehearsed), &rehearsed["valid"]), ([0, 0, 0, 0, 1], &json!(3)));
    let report = import(&server, &tenant, "", "application/x-ndjson", &body).await;
    assert_eq!(counts(&report), [1, 2, 1, 1, 1], "{report}");
    assert_eq!(report["errors"][0]["line"], 4);
    assert_eq!(listed(&server, &tenant, "").await.len(), 3, "no device is counted twice");
    let again = import(&server, &tenant, "", "application/x-ndjson", &body).await;
    assert_eq!(counts(&again), [0, 3, 0, 0, 1], "importing again is harmless");
    // An empty cell names nothing: the address is as it was.
    let csv = "platform,former_token,token\nandroid,a2,a3\nandroid,,d\n";
    assert_eq!(counts(&import(&server, &tenant, "", "text/csv", csv).await), [1, 1, 1, 0, 0]);
}

#[tokio::test]
async fn a_former_token_that_can_be_none_is_refused_by_its_name() {
    let server = server().await;
    let tenant = server.tenant().await;
    let refusal = |read: Read| read.refusal();
    let wrong = (422, "invalid_field".to_owned(), Some("former_token".to_owned()));
    let apple = json!({"platform": "apple", "token": "0a".repeat(32), "former_token": "none"});
    assert_eq!(refusal(register(&server, &tenant, &apple).await), wrong);
    let gateway = json!({"platform": "linux", "provider": "gateway", "token": "t2", "former_token": "t1"});
    assert_eq!(refusal(register(&server, &tenant, &gateway).await), wrong);
    let phone = json!({"platform": "android", "token": "t"});
    let id = register(&server, &tenant, &phone).await.text("id");
    let replacing = json!({"platform": "android", "token": "t2", "former_token": "t"});
    let replaced = server.send(&tenant, Method::PUT, &format!("/v1/devices/{id}")).json(&replacing);
    assert_eq!(refusal(replaced.read().await), wrong);
}

#[tokio::test]
async fn two_spellings_of_a_former_token_of_apns_are_one() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (old, new) = ("0a".repeat(32), "0b".repeat(80));
    let id = register(&server, &tenant, &json!({"platform": "apple", "token": old})).await.text("id");
    let body = json!({"platform": "apple", "token": new.to_uppercase(), "former_token": old.to_uppercase()});
    assert_eq!(register(&server, &tenant, &body).await.text("id"), id);
}

#[tokio::test]
async fn devices_that_still_have_an_address_of_the_older_kind_are_listed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let mut ids = Vec::new();
    for token in ["old:1", FID, "old:2"] {
        ids.push(
            register(&server, &tenant, &json!({"platform": "android", "token": token})).await.text("id"),
        );
    }
    register(&server, &tenant, &json!({"platform": "apple", "token": "0a".repeat(32)})).await;
    assert_eq!(
        listed(&server, &tenant, "provider=fcm&address=token").await,
        [ids[0].clone(), ids[2].clone()]
    );
    assert_eq!(listed(&server, &tenant, "provider=fcm&address=fid").await, [ids[1].clone()]);
    assert_eq!(listed(&server, &tenant, "provider=fcm&address=token&limit=1").await, [ids[0].clone()]);
    for (query, field) in [
        ("address=fid", "provider"),
        ("provider=apns&address=token", "address"),
        ("provider=fcm&address=iid", "address"),
    ] {
        let read = server.send(&tenant, Method::GET, &format!("/v1/devices?{query}")).read().await;
        assert_eq!(read.refusal(), (422, "invalid_field".to_owned(), Some(field.to_owned())), "{query}");
    }
}
