//! Devices, people, groups, topics.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::device::DEVICE_TEXTS;

use crate::harness::{Reading, server};

#[tokio::test]
async fn every_optional_text_can_be_registered_imported_changed_and_cleared() {
    let server = server().await;
    let tenant = server.tenant().await;
    for text in DEVICE_TEXTS {
        let (name, example, token) = (text.name, text.rule.example, format!("phone-with-{}", text.name));
        let bare = json!({"platform": "android", "token": token});
        let id = server.send(&tenant, Method::POST, "/v1/devices").json(&bare).read().await.text("id");
        let path = format!("/v1/devices/{id}");
        assert_eq!(server.get(&tenant, &path).await[name], Value::Null);
        let csv = format!("platform,token,{name}\nandroid,{token},{example}\n");
        let import = server.send(&tenant, Method::POST, "/v1/devices/import?format=csv").body(csv);
        let report = import.header("content-type", "text/csv").read().await.body;
        assert_eq!(report["updated"], 1, "{report}");
        assert_eq!(server.get(&tenant, &path).await[name], example);
        let full = json!({"platform": "android", "token": token, name: example});
        for (method, body, expected) in [
            (Method::PATCH, &json!({name: null}), Value::Null),
            (Method::PATCH, &json!({name: example}), example.into()),
            (Method::PUT, &bare, Value::Null),
            (Method::PUT, &full, example.into()),
        ] {
            let changed = server.send(&tenant, method, &path).json(body).read().await;
            assert_eq!((changed.status, &changed.body[name]), (200, &expected), "{body}");
        }
        let refused = server.send(&tenant, Method::PATCH, &path).json(&json!({name: ""})).read().await;
        assert_eq!((&refused.body["code"], &refused.body["field"]), (&json!("invalid_field"), &json!(name)));
    }
}

#[tokio::test]
async fn registering_the_same_token_again_is_harmless() {
    let server = server().await;
    let tenant = server.tenant().await;
    let body = json!({"platform": "android", "token": "registration-token-1", "user": "u1", "locale": "de-CH",
        "time_zone": "Europe/Rome", "tags": ["b", "a", "b"], "topics": ["news"]});
    let first = server.send(&tenant, Method::POST, "/v1/devices").json(&body).read().await;
    let again = server.send(&tenant, Method::POST, "/v1/devices").json(&body).read().await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!((first.body["created"].clone(), again.body["created"].clone()), (json!(true), json!(false)));
    assert_eq!(first.text("id"), again.text("id"));
    assert_eq!(first.headers["location"], format!("/v1/devices/{}", first.text("id")));
    let shown = server.get(&tenant, &format!("/v1/devices/{}", first.text("id"))).await;
    assert_eq!(shown["token_hint"], "…en-1");
    assert_eq!(
        (&shown["provider"], &shown["state"], &shown["tags"]),
        (&json!("fcm"), &json!("active"), &json!(["a", "b"]))
    );
    assert!(!shown.to_string().contains("registration-token"), "the token is not shown");
    let topics = server.get(&tenant, &format!("/v1/devices/{}/topics", first.text("id"))).await;
    assert_eq!(topics["topics"], json!(["news"]));
}

#[tokio::test]
async fn a_device_is_changed_rotated_and_removed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let id = server.device(&tenant, "old").await;
    let path = format!("/v1/devices/{id}");
    let patch = json!({"user": "anna", "tags": ["vip"]});
    let changed = server.send(&tenant, Method::PATCH, &path).json(&patch).read().await;
    assert_eq!((changed.text("user"), changed.body["tags"].clone()), ("anna".to_owned(), json!(["vip"])));
    let cleared = server.send(&tenant, Method::PATCH, &path).json(&json!({"user": null})).read().await;
    assert!(cleared.body.get("user").is_none() && cleared.body["tags"] == json!(["vip"]));
    let full = json!({"platform": "android", "provider": "null", "token": "new", "topics": ["t"]});
    let replaced = server.send(&tenant, Method::PUT, &path).json(&full).read().await;
    assert_eq!((replaced.status, replaced.body["tags"].clone()), (200, json!([])));
    let other = json!({"platform": "apple", "token": "0a".repeat(32)});
    let refused = server.send(&tenant, Method::PUT, &path).json(&other).read().await;
    assert_eq!(refused.refusal().2.as_deref(), Some("platform"));
    assert_eq!(server.send(&tenant, Method::DELETE, &path).read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::GET, &path).read().await.refusal().0, 404);
}

#[tokio::test]
async fn a_platform_goes_by_the_name_that_people_use_and_is_shown_by_one() {
    let server = server().await;
    let tenant = server.sender().await;
    let named = ["ios", "iPadOS", "macOS", "Apple"].map(|name| (name, "apple", "apns"));
    for (name, shown, provider) in named.into_iter().chain([("Android", "android", "fcm")]) {
        let body = json!({"platform": name, "token": "0a".repeat(32)});
        let made = server.send(&tenant, Method::POST, "/v1/devices").json(&body).read().await;
        assert_eq!(
            made.status,
            if name == "ios" || name == "Android" { 201 } else { 200 },
            "{name}: {made:?}"
        );
        let device = server.get(&tenant, &format!("/v1/devices/{}", made.text("id"))).await;
        assert_eq!((&device["platform"], &device["provider"]), (&json!(shown), &json!(provider)), "{name}");
    }
    let filtered = server.get(&tenant, "/v1/devices?provider=APNS").await;
    assert_eq!(filtered["devices"].as_array().map(Vec::len), Some(1));
    let token = json!({"platform": "iOS", "provider": "NULL", "token": "t"});
    let body = json!({"target": {"token": token}, "data": {"k": "v"}, "priority": "HIGH"});
    let sent = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(sent.status, 202, "{sent:?}");
    let message = server.get(&tenant, &format!("/v1/messages/{}", sent.text("id"))).await;
    assert_eq!(
        (&message["target"]["token"]["platform"], &message["priority"]),
        (&json!("apple"), &json!("high"))
    );
}

#[tokio::test]
async fn a_token_that_another_device_holds_is_a_conflict() {
    let server = server().await;
    let tenant = server.tenant().await;
    server.device(&tenant, "taken").await;
    let id = server.device(&tenant, "mine").await;
    let patch =
        server.send(&tenant, Method::PATCH, &format!("/v1/devices/{id}")).json(&json!({"token": "taken"}));
    assert_eq!(patch.read().await.refusal().1, "conflict");
}

#[tokio::test]
async fn a_token_longer_than_the_store_has_room_for_is_refused_with_the_limit() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (longest, too_long) = ("0".repeat(4_096), "0".repeat(4_098));
    let body = |token: &str| json!({"platform": "apple", "token": token});
    let made = server.send(&tenant, Method::POST, "/v1/devices").json(&body(&longest)).read().await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("/v1/devices/{}", made.text("id"));
    for (method, path, body) in [
        (Method::POST, "/v1/devices", body(&too_long)),
        (Method::PUT, &path, body(&too_long)),
        (Method::PATCH, &path, json!({"token": too_long})),
    ] {
        let refused = server.send(&tenant, method.clone(), path).json(&body).read().await;
        let (status, code, field) = refused.refusal();
        assert_eq!(
            (status, code.as_str(), field.as_deref()),
            (422, "invalid_field", Some("token")),
            "{method}"
        );
        assert!(refused.text("detail").contains("4096 bytes"), "{refused:?}");
    }
}

#[tokio::test]
async fn devices_are_listed_in_pieces_and_by_filter() {
    let server = server().await;
    let tenant = server.tenant().await;
    for n in 0..5 {
        let body =
            json!({"platform": "android", "token": format!("t{n}"), "user": if n < 2 { "a" } else { "b" }});
        server.post(&tenant, "/v1/devices", body).await;
    }
    let mut seen = Vec::new();
    let mut path = "/v1/devices?limit=2".to_owned();
    loop {
        let piece = server.get(&tenant, &path).await;
        seen.extend(piece["devices"].as_array().expect("a list").iter().map(|one| one["id"].to_string()));
        match piece["next"].as_str() {
            Some(next) => path = format!("/v1/devices?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted());
    let of_a = server.get(&tenant, "/v1/devices?user=a").await;
    assert_eq!(of_a["devices"].as_array().expect("a list").len(), 2);
}

#[tokio::test]
async fn people_have_devices_and_are_forgotten_without_them() {
    let server = server().await;
    let tenant = server.tenant().await;
    let put = server.send(&tenant, Method::PUT, "/v1/users/anna%20b").read().await;
    assert_eq!((put.status, put.text("external_id")), (200, "anna b".to_owned()));
    let body = json!({"platform": "android", "token": "t", "user": "anna b"});
    let device = server.post(&tenant, "/v1/devices", body).await;
    assert_eq!(server.get(&tenant, "/v1/users/anna%20b").await["devices"], json!([device["id"]]));
    assert_eq!(server.get(&tenant, "/v1/users").await["users"][0]["external_id"], "anna b");
    assert_eq!(server.send(&tenant, Method::DELETE, "/v1/users/anna%20b").read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::GET, "/v1/users/anna%20b").read().await.refusal().0, 404);
    let device = server.get(&tenant, &format!("/v1/devices/{}", device["id"].as_str().expect("an id"))).await;
    assert!(device.get("user").is_none());
}

#[tokio::test]
async fn groups_hold_people_and_devices() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = server.device(&tenant, "t").await;
    assert_eq!(server.send(&tenant, Method::PUT, "/v1/groups/team").read().await.status, 200);
    let members = json!({"users": ["anna"], "devices": [device, "dev_0000000009999"]});
    let change = server.post(&tenant, "/v1/groups/team/members", members.clone()).await;
    let unknown_devices = json!(["dev_0000000009999"]);
    let expected = json!({"changed": 2, "unchanged": 0, "unknown": 1, "unknown_devices": unknown_devices});
    assert_eq!(change, expected);
    let listed = server.get(&tenant, "/v1/groups/team/members").await;
    assert_eq!((&listed["users"], &listed["devices"]), (&json!(["anna"]), &json!([device])));
    let first = server.get(&tenant, "/v1/groups/team/members?limit=1").await;
    let next = first["next"].as_str().expect("a cursor").to_owned();
    let second = server.get(&tenant, &format!("/v1/groups/team/members?limit=1&after={next}")).await;
    assert_ne!((&first["users"], &first["devices"]), (&second["users"], &second["devices"]));
    assert_eq!(server.get(&tenant, "/v1/groups/team").await["member_count"], 2);
    let change = server.post(&tenant, "/v1/groups/team/members/remove", members).await;
    assert_eq!((&change["changed"], &change["unknown_devices"]), (&json!(2), &unknown_devices));
    let strangers = json!({"users": ["bob", "anna"], "devices": [device]});
    let change = server.post(&tenant, "/v1/groups/team/members/remove", strangers).await;
    let expected = json!({
        "changed": 0, "unchanged": 2, "unknown": 1, "unknown_devices": [], "unknown_users": ["bob"],
    });
    assert_eq!(change, expected, "a person is told by name");
    assert_eq!(server.send(&tenant, Method::DELETE, "/v1/groups/team").read().await.status, 204);
    assert_eq!(server.get(&tenant, "/v1/groups").await["groups"], json!([]));
}

#[tokio::test]
async fn topics_exist_as_soon_as_somebody_subscribes() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = server.device(&tenant, "t").await;
    let path = "/v1/topics/news/subscriptions";
    let body = json!({"devices": [device, "dev_0000000009999"]});
    let unknown_devices = json!(["dev_0000000009999"]);
    let expected = json!({"changed": 1, "unchanged": 0, "unknown": 1, "unknown_devices": unknown_devices});
    assert_eq!(server.post(&tenant, path, body.clone()).await, expected);
    assert_eq!(server.post(&tenant, path, body.clone()).await["unchanged"], 1);
    assert_eq!(server.get(&tenant, "/v1/topics/news").await["device_count"], 1);
    let removed = server.post(&tenant, &format!("{path}/remove"), body).await;
    assert_eq!((&removed["changed"], &removed["unknown_devices"]), (&json!(1), &unknown_devices));
    let own = format!("/v1/devices/{device}/topics/sport");
    assert_eq!(server.send(&tenant, Method::PUT, &own).read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::DELETE, &own).read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::DELETE, "/v1/topics/news").read().await.status, 204);
    assert_eq!(server.send(&tenant, Method::GET, "/v1/topics/news").read().await.refusal().0, 404);
}
