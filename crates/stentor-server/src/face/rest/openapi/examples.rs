//! Bodies that can be sent as they stand, for those operations with which somebody begins.

use serde_json::{Value, json};

/// Bodies by path and method.
fn examples() -> [(&'static str, &'static str, Value); 8] {
    let notification = json!({"title": "Hello", "body": "It works."});
    [
        ("/v1/messages", "post", json!({"target": {"topic": "news"}, "notification": notification})),
        (
            "/v1/messages/bulk",
            "post",
            json!({"messages": [{"target": {"user": "anna"}, "notification": notification, "ttl_seconds": 3600}]}),
        ),
        (
            "/v1/devices",
            "post",
            json!({"platform": "android", "provider": "null", "token": "a-token-for-trials", "user": "anna", "topics": ["news"]}),
        ),
        (
            "/v1/devices/bulk",
            "post",
            json!({"devices": [{"platform": "android", "provider": "null", "token": "another-token", "topics": ["news"]}]}),
        ),
        ("/v1/groups/{group}/members", "post", json!({"users": ["anna"]})),
        (
            "/v1/schedules",
            "post",
            json!({"cron": "0 9 * * 1-5", "time_zone": "Europe/Rome",
                "message": {"target": {"topic": "news"}, "notification": notification}}),
        ),
        ("/v1/apps", "post", json!({"name": "my app"})),
        ("/v1/apps/{app}/keys", "post", json!({"name": "backend", "scopes": ["send", "register"]})),
    ]
}

/// Adds them to a document.
pub(super) fn apply(document: &mut Value) {
    for (path, method, example) in examples() {
        let content = &mut document["paths"][path][method]["requestBody"]["content"]["application/json"];
        if content.is_object() {
            content["example"] = example;
        }
    }
}
