//! Bulk requests to a running server: order, partial failure, repeats, limits.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with an app, and the app's key.
struct Shop {
    directory: TempDir,
    server: Server,
    key: String,
    client: Client,
}

impl Shop {
    fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start(directory.path());
        let made = server.ok(&["app", "create", "shop"]);
        server.ok(&["app", "credential", "set", "--provider", "null"]);
        let key = made["key"]["secret"].as_str().unwrap().to_owned();
        Self { directory, server, key, client: Client::new() }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let address = format!("{}{path}", self.server.process.url());
        self.client.request(method, address).bearer_auth(&self.key)
    }

    /// Posts a bulk request and returns the status and the reply.
    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        told(self.ask(Method::POST, path).json(body)).await
    }

    async fn messages(&self) -> Vec<Value> {
        let (_, list) = told(self.ask(Method::GET, "/v1/messages?limit=1000")).await;
        list["messages"].as_array().unwrap().clone()
    }
}

async fn told(request: RequestBuilder) -> (u16, Value) {
    let reply = request.send().await.unwrap();
    let status = reply.status().as_u16();
    (status, serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap_or_default())
}

fn device(token: &str) -> Value {
    json!({"platform": "android", "provider": "null", "token": token})
}

fn to_everyone(body: &str) -> Value {
    json!({"target": "everyone", "notification": {"body": body}})
}

#[tokio::test]
async fn of_many_registrations_each_has_its_result_in_its_place() {
    let shop = Shop::open();
    let mut typo = device("c");
    typo["topcs"] = json!([]);
    let devices = [device("a"), json!({"platform": "android"}), typo, json!(7), device("b"), device("a")];
    let (status, body) = shop.post("/v1/devices/bulk", &json!({"devices": devices})).await;
    let results = body["results"].as_array().unwrap_or_else(|| panic!("{status}: {body}"));
    assert_eq!((status, results.len()), (200, 6));
    let made = |at: usize| (&results[at]["registered"]["created"], &results[at]["registered"]["id"]);
    assert_eq!((made(0).0, made(4).0, made(5).0), (&json!(true), &json!(true), &json!(false)));
    assert_eq!(made(0).1, made(5).1, "the same token is the same device");
    let refused = |at: usize| (&results[at]["refused"]["code"], &results[at]["refused"]["field"]);
    assert_eq!(refused(1), (&json!("invalid_field"), &json!("token")));
    assert_eq!(refused(2), (&json!("invalid_field"), &json!("topcs")));
    assert_eq!(refused(3).0, &json!("invalid_field"));
    let (_, list) = told_devices(&shop).await;
    assert_eq!(list["devices"].as_array().unwrap().len(), 2);
}

async fn told_devices(shop: &Shop) -> (u16, Value) {
    told(shop.ask(Method::GET, "/v1/devices")).await
}

#[tokio::test]
async fn what_the_store_refuses_of_one_registration_refuses_no_other() {
    let shop = Shop::open();
    let mut full = device("full");
    full["topics"] = (0..2_000).map(|at| json!(format!("t{at}"))).collect();
    let (status, _) = shop.post("/v1/devices", &full).await;
    assert_eq!(status, 201);
    full["topics"] = json!(["one-more"]);
    let mut devices: Vec<_> = (0..9).map(|at| device(&format!("d{at}"))).collect();
    devices.insert(4, full);
    let (_, body) = shop.post("/v1/devices/bulk", &json!({"devices": devices})).await;
    let codes: Vec<_> =
        body["results"].as_array().unwrap().iter().map(|one| &one["refused"]["code"]).collect();
    let refused: Vec<_> = (0..10).filter(|at| codes[*at] == "limit_reached").collect();
    assert_eq!(refused, [4], "{body}");
    assert_eq!(codes.iter().filter(|code| code.is_null()).count(), 9);
}

#[tokio::test]
async fn of_many_subscriptions_each_has_its_result_in_its_place() {
    let shop = Shop::open();
    let (_, body) = shop.post("/v1/devices/bulk", &json!({"devices": [device("a"), device("b")]})).await;
    let id = |at: usize| body["results"][at]["registered"]["id"].clone();
    let one = |device: &Value, topic: &str| json!({"device": device, "topic": topic});
    let subscriptions = [
        one(&id(0), "news"),
        one(&json!("dev_0000000000009"), "news"),
        one(&id(1), "no topic!"),
        one(&id(1), "sport"),
        json!({"device": id(0)}),
    ];
    let (status, body) = shop.post("/v1/subscriptions/bulk", &json!({"subscriptions": subscriptions})).await;
    let results = body["results"].as_array().unwrap_or_else(|| panic!("{status}: {body}"));
    assert_eq!((&results[0]["changed"], &results[3]["changed"]), (&json!(true), &json!(true)));
    let refused =
        |at: usize| (results[at]["refused"]["code"].as_str(), results[at]["refused"]["field"].as_str());
    assert_eq!(refused(1), (Some("not_found"), Some("device")));
    assert_eq!(refused(2), (Some("invalid_field"), Some("topic")));
    assert_eq!(refused(4), (Some("invalid_field"), Some("topic")));
    let (_, again) =
        shop.post("/v1/subscriptions/bulk", &json!({"subscriptions": [one(&id(0), "news")]})).await;
    assert_eq!(again["results"][0]["changed"], json!(false));
}

#[tokio::test]
async fn of_many_messages_each_has_its_result_and_a_repeat_has_the_same_after_a_crash() {
    let mut shop = Shop::open();
    let mut messages: Vec<_> = (0..300).map(|at| to_everyone(&format!("m{at}"))).collect();
    messages[7] = json!({"target": {"device": "dev_0000000000009"}, "data": {"k": "v"}});
    messages[8] = json!({"target": "everyone", "priorty": "high"});
    messages[9] = json!({"target": "everyone", "data": {"k": "v"}, "dry_run": true});
    let body = json!({"messages": messages});
    let send = |shop: &Shop| {
        let request = shop.ask(Method::POST, "/v1/messages/bulk").header("idempotency-key", "all");
        told(request.json(&body))
    };
    let (status, first) = send(&shop).await;
    let results = first["results"].as_array().unwrap_or_else(|| panic!("{status}: {first}"));
    assert_eq!((status, results.len()), (200, 300));
    let refused =
        |at: usize| (results[at]["refused"]["code"].as_str(), results[at]["refused"]["field"].as_str());
    assert_eq!(refused(7), (Some("not_found"), Some("target")));
    assert_eq!(refused(8), (Some("invalid_field"), Some("priorty")));
    assert_eq!(results[9]["checked"]["dry_run"], json!(true));
    let accepted_ids: Vec<_> = results.iter().filter_map(|one| one["accepted"]["id"].as_str()).collect();
    assert_eq!(accepted_ids.len(), 297);
    let shown = told(shop.ask(Method::GET, &format!("/v1/messages/{}", accepted_ids[100]))).await.1;
    assert_eq!(shown["notification"]["body"], json!("m103"), "in the order of what was asked");

    shop.server.process.kill();
    shop.server = Server::start(shop.directory.path());
    assert_eq!(send(&shop).await, (200, first.clone()));
    assert_eq!(shop.messages().await.len(), 297, "nothing is sent twice");
    let other = shop.ask(Method::POST, "/v1/messages/bulk").header("idempotency-key", "all");
    let (status, refusal) = told(other.json(&json!({"messages": [to_everyone("other")]}))).await;
    assert_eq!((status, &refusal["code"]), (422, &json!("idempotency_key_reused")));
}

/// Makes the server hang in the transaction that stores the reply under a key: the request's own work is committed by then.
fn hold_the_reply(file: &rusqlite::Connection, key: &str) {
    let trap = format!(
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;
         CREATE TRIGGER hold BEFORE INSERT ON replies WHEN NEW.key = '{key}'
         BEGIN SELECT count(*) FROM endless; END;"
    );
    file.execute_batch(&trap).unwrap();
}

#[tokio::test]
async fn a_kill_between_messages_and_the_reply_that_is_kept_makes_none_twice() {
    let mut shop = Shop::open();
    let mut messages: Vec<_> = (0..300).map(|at| to_everyone(&format!("m{at}"))).collect();
    messages[8] = json!({"target": "everyone", "priorty": "high"});
    let body = json!({"messages": messages});
    let send = |shop: &Shop| {
        let request = shop.ask(Method::POST, "/v1/messages/bulk").header("idempotency-key", "all");
        request.json(&body)
    };
    let file = rusqlite::Connection::open(shop.directory.path().join("data/stentor.db")).unwrap();
    hold_the_reply(&file, "all");
    let unanswered = tokio::spawn(send(&shop).send());
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    let patience = Instant::now() + PATIENCE;
    while count("SELECT count(*) FROM messages") < 299 {
        assert!(Instant::now() < patience, "{}", shop.server.process.log());
        tokio::task::yield_now().await;
    }
    shop.server.process.kill();
    assert!(unanswered.await.unwrap().is_err(), "nobody was told");
    assert_eq!(count("SELECT count(*) FROM replies WHERE key = 'all'"), 0, "no reply is kept");
    file.execute_batch("DROP TRIGGER hold; DROP VIEW endless").unwrap();
    drop(file);

    shop.server = Server::start(shop.directory.path());
    let stored: BTreeSet<_> = shop.messages().await.iter().map(|one| one["id"].to_string()).collect();
    assert_eq!(stored.len(), 299);
    let (status, again) = told(send(&shop)).await;
    let results = again["results"].as_array().unwrap_or_else(|| panic!("{status}: {again}"));
    let accepted: BTreeSet<_> =
        results.iter().filter_map(|one| one["accepted"].get("id")).map(Value::to_string).collect();
    assert_eq!(accepted, stored, "those that are there already");
    assert_eq!(results[8]["refused"]["code"], json!("invalid_field"));
    assert_eq!(shop.messages().await.len(), 299, "none is there twice");
    assert_eq!(told(send(&shop)).await, (200, again));
}

#[tokio::test]
async fn devices_whose_reply_a_kill_swallowed_are_there_once_when_registered_again() {
    let mut shop = Shop::open();
    let devices: Vec<_> = (0..300).map(|at| device(&format!("d{at}"))).collect();
    let body = json!({"devices": devices});
    let file = rusqlite::Connection::open(shop.directory.path().join("data/stentor.db")).unwrap();
    let count = || file.query_row("SELECT count(*) FROM devices", [], |row| row.get::<_, u32>(0)).unwrap();
    let unread = tokio::spawn(shop.ask(Method::POST, "/v1/devices/bulk").json(&body).send());
    let patience = Instant::now() + PATIENCE;
    while count() == 0 {
        assert!(Instant::now() < patience, "{}", shop.server.process.log());
        tokio::task::yield_now().await;
    }
    shop.server.process.kill();
    let _read_or_not = unread.await.unwrap();
    let before = count();
    shop.server = Server::start(shop.directory.path());
    let (status, again) = shop.post("/v1/devices/bulk", &body).await;
    let results = again["results"].as_array().unwrap_or_else(|| panic!("{status}: {again}"));
    let created = results.iter().filter(|one| one["registered"]["created"] == true).count();
    assert_eq!((created, count()), (300 - before as usize, 300));
}

#[tokio::test]
async fn more_than_a_thousand_and_none_are_refused_as_a_whole() {
    let shop = Shop::open();
    let many = |count: usize| vec![to_everyone("m"); count];
    for (path, name) in [
        ("/v1/messages/bulk", "messages"),
        ("/v1/devices/bulk", "devices"),
        ("/v1/subscriptions/bulk", "subscriptions"),
    ] {
        for count in [0, 1_001] {
            let (status, body) = shop.post(path, &json!({ name: many(count) })).await;
            assert_eq!((status, body["field"].as_str()), (422, Some(name)), "{count} to {path}: {body}");
        }
    }
    assert_eq!(shop.messages().await, Vec::<Value>::new());
    let (status, body) = shop.post("/v1/messages/bulk", &json!({"messages": many(1_000)})).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(shop.messages().await.len(), 1_000);
}
