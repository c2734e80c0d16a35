//! A valid request for each operation with a body, which pages show and readers can send as it is.

use serde_json::{Value, json};

use super::super::format::MEDIA_TYPES;

/// Adds the examples to the document.
pub(super) fn apply(document: &mut Value) {
    let items = document["paths"].as_object_mut().into_iter().flatten();
    let operations = items.filter_map(|(_, item)| item.as_object_mut()).flatten();
    for (_, operation) in operations {
        let name = operation["operationId"].as_str().unwrap_or_default();
        let Some(example) = example(name) else { continue };
        if let Some(body) = operation.pointer_mut("/requestBody/content") {
            body[MEDIA_TYPES[0]]["example"] = example;
        }
    }
}

/// Returns the example request of an operation.
fn example(operation: &str) -> Option<Value> {
    // The app needs no credential of a push service: messages for `null` go nowhere.
    let token = "cJ4vGd1wRk2:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx";
    let device = "dev_01kb2d3v00000";
    Some(match operation {
        "messages_send" => json!({
            "target": {"user": "maria"},
            "notification": {"title": "Your order is on its way", "body": "It arrives tomorrow before noon."},
            "data": {"order": "1234"}, "ttl_seconds": 86_400, "collapse_key": "order-1234",
        }),
        "messages_send_many" => json!({"messages": [
            {"target": {"user": "maria"}, "notification": {"title": "Good morning"}},
            {"target": {"topic": "news"}, "data": {"edition": "2026-11-28"}},
        ]}),
        "devices_register" | "devices_replace" => json!({
            "platform": "android", "provider": "null", "token": token, "user": "maria", "locale": "de-CH", "time_zone": "Europe/Zurich",
            "tags": ["beta"], "topics": ["news"],
        }),
        "devices_register_many" => {
            json!({"devices": [
                {"platform": "android", "provider": "null", "token": token, "user": "maria"},
            ]})
        }
        "devices_change" => json!({"user": "maria", "locale": null, "tags": ["beta"]}),
        "topics_subscribe" | "topics_unsubscribe" => json!({"devices": [device]}),
        "topics_subscribe_many" => json!({"subscriptions": [{"topic": "news", "device": device}]}),
        "groups_add" | "groups_take_out" => json!({"users": ["maria"]}),
        "schedules_create" => json!({
            "name": "Good morning", "cron": "0 9 * * 1-5", "time_zone": "Europe/Rome",
            "message": {"target": {"topic": "news"}, "notification": {"title": "Good morning"}},
        }),
        "proposals_create" => json!({
            "message": {"target": {"topic": "news"}, "notification": {"title": "For everybody"}},
        }),
        "services_publish" => json!({
            "kind": "mqtt", "address": "mqtt.example.org:1883", "description": "Sensors of the hall", "ttl_seconds": 300,
        }),
        "upstream_acknowledge" | "upstream_retry_dead_letters" => json!({"ids": ["ups_01kb2d3v00000"]}),
        "apps_create_app" => json!({"name": "Shop"}),
        "apps_create_key" => json!({"name": "Shop's server", "scopes": ["send", "register"]}),
        "apps_create_service_account" => json!({"name": "Shop's server", "url": "https://push.example.org"}),
        "apps_put_upstream_webhook" => json!({"url": "https://shop.example.org/from-devices"}),
        "apps_put_null" => json!({}),
        "apps_put_gateway" => json!({"open_registration": false}),
        _ => return None,
    })
}
