//! The table of operations is true.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::app::{Scope, Scopes};
use stentor_server::contract::table::OPERATIONS;
use stentor_server::contract::{Access, Facts};
use stentor_server::face::rest::address_of;

use crate::harness::{Reading, server};

/// Returns the method and path of an operation in REST.
fn address(facts: &Facts) -> (Method, String) {
    let address = address_of(facts.name);
    let (method, path) = address.split_once(' ').expect("an operation of this face");
    (method.parse().expect("a method"), path.to_owned())
}

/// Fills a path with names that fit; nothing but the app exists.
fn filled(path: &str, app: &str) -> String {
    let mut path = path.replace("{app}", app);
    for (part, name) in [
        ("{key}", "key_0000000000001"),
        ("{account}", "key_0000000000001"),
        ("{device}", "dev_0000000000001"),
        ("{message}", "msg_0000000000001"),
        ("{campaign}", "cmp_0000000000001"),
        ("{schedule}", "sch_0000000000001"),
        ("{proposal}", "prp_0000000000001"),
        ("{external_id}", "anna"),
        ("{group}", "team"),
        ("{topic}", "news"),
        ("{service}", "printer"),
        ("{channel}", "dHN0LXNyY2gtY2hubA=="),
        ("{provider}", "null"),
    ] {
        path = path.replace(part, name);
    }
    path
}

/// Returns a valid record of the operation, if it takes one.
fn record(name: &str) -> Option<Value> {
    let message = json!({"target": "everyone", "data": {"k": "v"}});
    match name {
        "apps.create_app" => Some(json!({"name": "x"})),
        "apps.put_credential" => Some(json!({})),
        "apps.create_key" => Some(json!({"name": "x", "scopes": ["send"]})),
        "apps.create_service_account" => Some(json!({"name": "x", "url": "https://push.example"})),
        "apps.put_upstream_webhook" => Some(json!({"url": "https://app.example.org/hook"})),
        "devices.register" | "devices.replace" => Some(json!({"platform": "android", "token": "t"})),
        "channels.create" | "devices.change" => Some(json!({})),
        "groups.add" | "groups.take_out" => Some(json!({"users": ["anna"]})),
        "topics.subscribe" | "topics.unsubscribe" => Some(json!({"devices": ["dev_0000000000001"]})),
        "services.publish" => Some(json!({"kind": "ipp", "address": "ipp://127.0.0.1/print"})),
        "messages.send" => Some(message),
        "messages.send_many" => Some(json!({"messages": [message]})),
        "devices.register_many" => Some(json!({"devices": [{"platform": "android", "token": "t"}]})),
        "topics.subscribe_many" => {
            Some(json!({"subscriptions": [{"device": "dev_0000000000001", "topic": "news"}]}))
        }
        "upstream.acknowledge" | "upstream.retry_dead_letters" => Some(json!({"ids": ["ups_0000000000001"]})),
        "proposals.create" => Some(json!({"message": message})),
        "schedules.create" => Some(json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": message})),
        _ => None,
    }
}

fn takes(access: Access, scope: Scope) -> bool {
    match access {
        Access::Root => false,
        Access::AnyKey => true,
        Access::Scopes(scopes) | Access::Reading(scopes) => {
            scopes.iter().any(|needed| Scopes::of(&[scope]).allows(*needed))
        }
    }
}

#[tokio::test]
async fn every_operation_takes_the_keys_that_the_table_names_and_no_other() {
    let server = server().await;
    let tenant = server.tenant().await;
    for (scope, word) in [(Scope::Send, "send"), (Scope::Register, "register"), (Scope::Admin, "admin")] {
        let key = server.key(&tenant.id, &[word]).await;
        for facts in OPERATIONS {
            let (method, path) = address(facts);
            let request = server.with_key(&key, method, &filled(&path, &tenant.id));
            let request = match record(facts.name) {
                Some(record) => request.json(&record),
                None if facts.name == "devices.import" => {
                    request.header("content-type", "application/x-ndjson").body("")
                }
                None => request,
            };
            let read = request.read().await;
            assert_eq!(read.status != 403, takes(facts.access, scope), "{}, {word}: {read:?}", facts.name);
        }
    }
}
