//! `POST /api/push`, as gorush's callers use it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Read, Reading, Server, Tenant, server};

async fn push(server: &Server, tenant: &Tenant, body: &Value) -> Read {
    server.send(tenant, Method::POST, "/api/push").json(body).read().await
}

async fn messages(server: &Server, tenant: &Tenant) -> Vec<Value> {
    let list = server.get(tenant, "/v1/messages").await;
    list["messages"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn each_token_of_each_notification_is_a_message_that_is_on_disk() {
    let server = server().await;
    let tenant = server.sender().await;
    for token in ["token-a", "token-b", "token-c"] {
        server.device(&tenant, token).await;
    }
    let body = json!({"notifications": [
        {"tokens": ["token-a", "token-b"], "platform": 2, "title": "Hi", "message": "Hello", "data": {"n": 7, "t": "x"}},
        {"tokens": ["token-c"], "platform": 1, "message": "Hello iOS", "priority": "normal"},
    ]});
    let read = push(&server, &tenant, &body).await;
    assert_eq!((read.status, &read.body), (200, &json!({"success": "ok", "counts": 3, "logs": []})));
    let sent = messages(&server, &tenant).await;
    assert_eq!(sent.len(), 3);
    for message in &sent {
        let ledger = server.ended(&tenant, message["campaign"].as_str().expect("an id")).await;
        assert_eq!(ledger["totals"]["accepted"], 1, "{ledger}");
    }
    let last = sent.last().expect("the first")["id"].as_str().expect("an id");
    let first = server.get(&tenant, &format!("/v1/messages/{last}")).await;
    assert_eq!(first["notification"], json!({"title": "Hi", "body": "Hello"}));
    assert_eq!(first["data"], json!({"n": "7", "t": "x"}));
}

/// A user of gorush changes only the URL: the key is a part of it, as a password.
#[tokio::test]
async fn a_caller_that_knows_no_header_of_a_key_has_it_in_the_address() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let body =
        json!({"notifications": [{"tokens": ["token-a"], "platform": 2, "message": "Hello"}]}).to_string();
    let at = |user: &str, key: &str| {
        let host = server.url.strip_prefix("http://").expect("plain").to_owned();
        let request = server.client.post(format!("http://{user}:{key}@{host}/api/push"));
        request.header("content-type", "application/json").body(body.clone()).read()
    };
    let response = at("gorush", &tenant.key).await;
    assert_eq!((response.status, &response.body), (200, &json!({"success": "ok", "counts": 1, "logs": []})));
    assert_eq!(messages(&server, &tenant).await.len(), 1);
    // The operator's key acts for the app whose id is the user name.
    let response = at(&tenant.id, &server.root).await;
    assert_eq!((response.status, &response.body["counts"]), (200, &json!(1)), "{response:?}");
    assert_eq!(messages(&server, &tenant).await.len(), 2);
    let response = at("gorush", "sk_wrong").await;
    assert_eq!((response.status, &response.body["code"]), (401, &json!(401)), "{response:?}");
}

#[tokio::test]
async fn a_collapse_key_may_be_long_and_an_empty_one_hides_no_other() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let long = "a".repeat(100);
    for (collapse_id, collapse_key) in [("", long.as_str()), (long.as_str(), "")] {
        let body = json!({"notifications": [{"tokens": ["token-a"], "platform": 2, "message": "Hello",
            "collapse_id": collapse_id, "collapse_key": collapse_key}]});
        assert_eq!(push(&server, &tenant, &body).await.body["logs"], json!([]));
        let id = messages(&server, &tenant).await[0]["id"].as_str().expect("an id").to_owned();
        let shown = server.get(&tenant, &format!("/v1/messages/{id}")).await;
        assert_eq!(shown["collapse_key"].as_str().map(str::len), Some(64), "its hash: {shown}");
    }
}

#[tokio::test]
async fn a_repeat_with_the_same_key_sends_nothing_twice_and_another_body_is_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let one =
        |text: &str| json!({"notifications": [{"tokens": ["token-a"], "platform": 2, "message": text}]});
    let ask = |body: Value| {
        let request = server.send(&tenant, Method::POST, "/api/push").header("idempotency-key", "once");
        request.json(&body).read()
    };
    let first = ask(one("Hello")).await;
    assert_eq!(first.body, ask(one("Hello")).await.body);
    assert_eq!(messages(&server, &tenant).await.len(), 1);
    let other = ask(one("Bye")).await;
    assert_eq!((other.status, &other.body["code"]), (422, &json!(422)));
}

#[tokio::test]
async fn what_cannot_be_sent_is_told_by_the_token_and_does_not_touch_the_rest() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "token-a").await;
    let body = json!({"notifications": [
        {"notif_id": "n-1", "tokens": ["token-a", "line\nbreak", "never-seen"], "platform": 2, "message": "Hello"},
    ]});
    let read = push(&server, &tenant, &body).await;
    assert_eq!((read.status, &read.body["counts"]), (200, &json!(3)), "{read:?}");
    let logs = read.body["logs"].as_array().expect("a list");
    let of = |index: usize, name: &str| logs[index][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(logs.len(), 2, "{read:?}");
    assert_eq!(
        (of(0, "type"), of(0, "notif_id"), of(0, "platform")),
        ("failed-push".into(), "n-1".into(), "android".into())
    );
    assert!(of(0, "error").contains("not a valid FCM registration token"));
    assert!(of(1, "error").contains("no credential for fcm"), "{read:?}");
    assert_eq!(messages(&server, &tenant).await.len(), 1);
}

#[tokio::test]
async fn a_topic_is_an_audience_on_android() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = json!({"platform": "android", "provider": "null", "token": "t", "topics": ["news"]});
    server.post(&tenant, "/v1/devices", device).await;
    let body = json!({"notifications": [{"topic": "/topics/news", "platform": 2, "message": "Hello"}]});
    let read = push(&server, &tenant, &body).await;
    assert_eq!(read.body, json!({"success": "ok", "counts": 1, "logs": []}));
    let campaign = messages(&server, &tenant).await[0]["campaign"].as_str().expect("an id").to_owned();
    assert_eq!(server.ended(&tenant, &campaign).await["totals"]["accepted"], 1);
}

#[tokio::test]
async fn refusals_have_the_shape_and_the_words_of_gorush() {
    let server = server().await;
    let tenant = server.sender().await;
    let refused = async |body: Value| {
        let read = push(&server, &tenant, &body).await;
        assert_eq!(read.body["code"], read.status, "{read:?}");
        (read.status, read.text("message"))
    };
    assert_eq!(refused(json!({})).await, (400, "Missing notifications field.".into()));
    assert_eq!(refused(json!({"notifications": []})).await, (400, "Notifications field is empty.".into()));
    let many: Vec<_> = (0..101).map(|_| json!({"tokens": ["t"], "platform": 2})).collect();
    let many = refused(json!({"notifications": many})).await;
    assert_eq!(many, (400, "Number of notifications(101) over limit(100)".into()));
    let one = |fields: Value| json!({"notifications": [fields]});
    assert!(refused(one(json!({"platform": 2}))).await.1.ends_with("tokens must not be nil or empty"));
    assert!(refused(one(json!({"tokens": ["t"], "platform": 3}))).await.1.contains("platform 3"));
    assert_eq!(refused(one(json!({"tokens": "t", "platform": 2}))).await.0, 400);
    let wrong = server.with_key("sk_wrong", Method::POST, "/api/push").json(&json!({})).read().await;
    assert_eq!((wrong.status, &wrong.body["code"]), (401, &json!(401)));
    let key = server.key(&tenant.id, &["register"]).await;
    let body = one(json!({"tokens": ["t"], "platform": 2, "message": "m"}));
    let forbidden = server.with_key(&key, Method::POST, "/api/push").json(&body).read().await;
    assert_eq!(forbidden.status, 403);
}
