//! GCM: sending in both forms, results, errors, device groups and topics.

use crate::rig::{CONTROL, post, read};
use serde_json::{Value, json};
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::{GcmConfig, GcmEmulator, GcmOptions, RunningGcm, TlsConfig};

const KEY: &str = "key=AIza";
const PATHS: [&str; 2] = ["/gcm/send", "/fcm/send"];

async fn gcm(policy: Value) -> RunningGcm {
    gcm_with(GcmConfig { policy: read(policy), ..GcmConfig::default() }).await
}

async fn gcm_with(config: GcmConfig) -> RunningGcm {
    let control = Some(CONTROL.parse().unwrap());
    GcmEmulator::start(GcmConfig { tls: TlsConfig::Plaintext, control, ..config }).await.unwrap()
}

/// An answer: its status, `Retry-After` and body.
struct Reply {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn errors(&self) -> Vec<Value> {
        let body = self.json();
        body["results"].as_array().unwrap().iter().map(|result| result["error"].clone()).collect()
    }
}

async fn request(request: reqwest::RequestBuilder) -> Reply {
    let answer = request.send().await.unwrap();
    let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    Reply { status: answer.status().as_u16(), retry_after, body: answer.text().await.unwrap() }
}

fn at(gcm: &RunningGcm, path: &str) -> reqwest::RequestBuilder {
    reqwest::Client::new().post(format!("http://{}{path}", gcm.addr())).header("authorization", KEY)
}

async fn send(gcm: &RunningGcm, body: Value) -> Reply {
    request(at(gcm, "/gcm/send").json(&body)).await
}

async fn send_text(gcm: &RunningGcm, form: &'static str) -> Reply {
    request(at(gcm, "/gcm/send").body(form)).await
}

async fn group(gcm: &RunningGcm, body: Value) -> Reply {
    request(at(gcm, "/gcm/notification").header("project_id", "4711").json(&body)).await
}

#[tokio::test]
async fn results_come_in_the_order_of_the_request() {
    let error = |code| json!({"error": {"code": code}});
    let scripts = json!([
        {"token": "gone", "then": error("NotRegistered")},
        {"token": "foreign", "then": error("MismatchSenderId")}
    ]);
    let gcm = gcm(json!({ "scripts": scripts })).await;
    for path in PATHS {
        let body = json!({"registration_ids": ["one", "gone", "b d", "foreign", "two"], "data": {"k": "v"}});
        let reply = request(at(&gcm, path).json(&body)).await;
        let body = reply.json();
        assert_eq!((reply.status, &body["success"], &body["failure"]), (200, &json!(2), &json!(3)));
        let expected =
            [Value::Null, "NotRegistered".into(), "InvalidRegistration".into(), "MismatchSenderId".into()];
        assert_eq!(reply.errors()[..4], expected);
        assert!(body["multicast_id"].as_u64().unwrap() <= i64::MAX as u64);
        assert!(body["results"][4]["message_id"].as_str().unwrap().starts_with("0:"));
    }
    let counts = gcm.counts("one");
    assert_eq!((counts.attempts, counts.accepted, counts.rejected), (2, 2, 0));
    assert_eq!((gcm.counts("gone").attempts, gcm.counts("gone").rejected), (2, 2));
    assert_eq!(gcm.sums().tokens.attempts, 10);
}

#[tokio::test]
async fn a_thousand_tokens_are_taken_and_one_more_is_not() {
    let gcm = gcm(json!({})).await;
    let tokens: Vec<String> = (0..1001).map(|number| format!("t{number}")).collect();
    let reply = send(&gcm, json!({"registration_ids": tokens[..1000]})).await;
    assert_eq!(reply.json()["success"], 1000);
    let reply = send(&gcm, json!({"registration_ids": tokens})).await;
    assert_eq!((reply.status, reply.body.contains("exceeds maximum allowed (1000)")), (400, true));
    assert_eq!(send(&gcm, json!({"registration_ids": []})).await.status, 400);
    let totals = gcm.sums().tokens;
    assert_eq!((totals.tokens, totals.accepted), (1000, 1000));
}

#[tokio::test]
async fn only_what_cannot_be_read_is_a_bad_request() {
    let gcm = gcm(json!({})).await;
    for body in [
        json!([1]),
        json!({"to": 5}),
        json!({"to": "a", "registration_ids": ["b"]}),
        json!({"to": "a", "data": "text"}),
        json!({"to": "a", "dry_run": "yes"}),
        json!({"to": "a", "time_to_live": [1]}),
    ] {
        assert_eq!(send(&gcm, body.clone()).await.status, 400, "{body}");
    }
    let refused = [
        (json!({"data": {}}), "MissingRegistration"),
        (json!({"to": "a", "time_to_live": 2_419_201}), "InvalidTtl"),
        (json!({"to": "a", "time_to_live": -1}), "InvalidTtl"),
        (json!({"to": "a", "data": {"from": "x"}}), "InvalidDataKey"),
        (json!({"to": "a", "data": {"google.x": "x"}}), "InvalidDataKey"),
    ];
    for (body, code) in refused {
        let reply = send(&gcm, body.clone()).await;
        assert_eq!((reply.status, reply.errors()), (200, vec![json!(code)]), "{body}");
    }
    let answer = request(at(&gcm, "/gcm/send").header("content-type", "application/json").body("{")).await;
    assert_eq!((answer.status, answer.body.starts_with("JSON_PARSING_ERROR")), (400, true));
    assert_eq!(gcm.counts("a").accepted, 0);
}

#[tokio::test]
async fn keys_and_values_of_the_data_may_have_4096_bytes_with_what_is_charged_beside() {
    let config = GcmConfig {
        vendor: GcmOptions { data_overhead_bytes: 34, ..GcmOptions::default() },
        ..GcmConfig::default()
    };
    let gcm = gcm_with(config).await;
    let of = |bytes: usize| json!({"to": "abc", "data": {"PAYLOAD": "x".repeat(bytes)}});
    assert_eq!(send(&gcm, of(4055)).await.json()["success"], 1);
    assert_eq!(send(&gcm, of(4056)).await.errors(), [json!("MessageTooBig")]);
    let plain = self::gcm(json!({})).await;
    assert_eq!(send(&plain, of(4089)).await.json()["success"], 1);
    assert_eq!(send(&plain, of(4090)).await.errors(), [json!("MessageTooBig")]);
    let to_topic = json!({"to": "/topics/news", "data": {"k": "x".repeat(2048)}});
    assert_eq!(send(&plain, to_topic).await.json(), json!({"error": "MessageTooBig"}));
}

#[tokio::test]
async fn a_key_is_required_and_a_wrong_one_refused() {
    let config = GcmConfig {
        vendor: GcmOptions { keys: vec!["right".to_owned()], ..GcmOptions::default() },
        ..GcmConfig::default()
    };
    let gcm = gcm_with(config).await;
    let url = format!("http://{}/fcm/send", gcm.addr());
    for (header, status) in [("key=right", 200), ("key=wrong", 401), ("key=", 401), ("Bearer right", 401)] {
        let sent =
            reqwest::Client::new().post(&url).header("authorization", header).json(&json!({"to": "a"}));
        assert_eq!(request(sent).await.status, status, "{header}");
    }
    assert_eq!(post(gcm.addr(), "/gcm/send", &json!({"to": "a"})).await.0, 401);
    assert_eq!(gcm.counts("a").accepted, 1);
}

#[tokio::test]
async fn plain_text_is_answered_in_plain_text() {
    let error = |code| json!({"error": {"code": code, "retry_after_s": 7}});
    let gcm = gcm(json!({"scripts": [
        {"token": "gone", "then": error("NotRegistered")},
        {"token": "busy", "then": error("Unavailable")}
    ]}))
    .await;
    let reply =
        send_text(&gcm, "registration_id=abc&collapse_key=c&time_to_live=60&dry_run=0&data.k=v%26w+x").await;
    assert_eq!((reply.status, reply.body.starts_with("id=0:")), (200, true), "{}", reply.body);
    assert_eq!(send_text(&gcm, "registration_id=gone").await.body, "Error=NotRegistered\n");
    assert_eq!(send_text(&gcm, "collapse_key=c").await.body, "Error=MissingRegistration\n");
    assert_eq!(send_text(&gcm, "registration_id=abc&data.from=x").await.body, "Error=InvalidDataKey\n");
    assert_eq!(send_text(&gcm, "registration_id=%ff").await.status, 400);
    let busy = send_text(&gcm, "registration_id=busy").await;
    assert_eq!((busy.status, busy.retry_after.as_deref()), (500, Some("7")));
    assert_eq!(gcm.counts("abc").accepted, 1);
}

#[tokio::test]
async fn the_policy_refuses_results_or_the_whole_request() {
    let then = |code| json!({"error": {"code": code, "retry_after_s": 3}});
    let gcm = gcm(json!({"scripts": [
        {"token": "slow", "then": then("Unavailable")},
        {"token": "down", "then": then("503")}
    ]}))
    .await;
    let reply = send(&gcm, json!({"registration_ids": ["a", "slow"]})).await;
    assert_eq!((reply.status, reply.retry_after.as_deref()), (200, Some("3")));
    assert_eq!(reply.errors(), [Value::Null, json!("Unavailable")]);
    let reply = send(&gcm, json!({"registration_ids": ["b", "down"]})).await;
    assert_eq!((reply.status, reply.retry_after.as_deref()), (503, Some("3")));
    assert_eq!((gcm.counts("b").accepted, gcm.counts("b").rejected), (0, 1));
    let unknown = read(json!({"scripts": [{"prefix": "", "then": then("UNREGISTERED")}]}));
    assert!(gcm.set_policy(unknown).is_err());
}

#[tokio::test]
async fn a_dry_run_is_counted_and_delivered_as_none() {
    let gcm = gcm(json!({})).await;
    let token = gcm.devices().register(TokenRegistration::default());
    let mut device = gcm.devices().listen(&token).unwrap();
    let reply = send(&gcm, json!({"to": token, "dry_run": true})).await;
    assert_eq!(reply.json()["results"][0]["message_id"], "fake_message_id");
    assert_eq!((gcm.counts(&token).validate_only, gcm.counts(&token).accepted), (1, 0));
    send(&gcm, json!({"to": token, "data": {"k": "v"}, "priority": "high", "collapse_key": "c"})).await;
    let seen = device.recv().await.unwrap();
    assert_eq!((&seen.payload["data"]["k"], seen.high_priority), (&json!("v"), true));
    assert_eq!((seen.collapse_key.as_deref(), seen.payload.get("to")), (Some("c"), None));
    assert!(device.try_recv().is_err());
}

#[tokio::test]
async fn a_token_that_was_replaced_still_works_and_the_new_one_is_told() {
    let gcm = gcm(json!({})).await;
    let old = gcm.devices().register(TokenRegistration::default());
    let control = gcm.control_addr().unwrap();
    let (_, first) = post(control, &format!("/device/{old}/replace"), &json!({})).await;
    let first = first["token"].as_str().unwrap().to_owned();
    let (_, newest) = post(control, &format!("/device/{first}/replace"), &json!({"token": "newest"})).await;
    assert_eq!(newest["token"], "newest");
    assert_eq!(post(control, "/device/nobody/replace", &json!({})).await.0, 404);
    let mut device = gcm.devices().listen("newest").unwrap();
    let reply = send(&gcm, json!({"registration_ids": [old, "newest"], "data": {"k": "v"}})).await;
    let body = reply.json();
    assert_eq!((&body["canonical_ids"], &body["success"]), (&json!(1), &json!(2)));
    assert_eq!(body["results"][0]["registration_id"], "newest");
    assert_eq!(body["results"][1].get("registration_id"), None);
    assert!(device.try_recv().is_ok() && device.try_recv().is_ok());
    let form = format!("registration_id={old}");
    let text = request(at(&gcm, "/gcm/send").body(form)).await;
    assert!(text.body.ends_with("\nregistration_id=newest\n"), "{}", text.body);
    assert_eq!((gcm.counts(&old).accepted, gcm.counts("newest").accepted), (2, 1));
}

#[tokio::test]
async fn devices_expire_and_belong_to_one_package() {
    let gcm = gcm_with(GcmConfig { strict_tokens: true, ..GcmConfig::default() }).await;
    let registration =
        TokenRegistration { topic: Some("org.example".to_owned()), ..TokenRegistration::default() };
    let token = gcm.devices().register(registration);
    let to = |token: &str, package| json!({"to": token, "restricted_package_name": package});
    assert_eq!(send(&gcm, to(&token, "org.example")).await.json()["success"], 1);
    assert_eq!(send(&gcm, to(&token, "org.other")).await.errors(), [json!("InvalidPackageName")]);
    assert_eq!(send(&gcm, json!({"to": "unheard-of"})).await.errors(), [json!("InvalidRegistration")]);
    gcm.devices().expire(&token, None);
    assert_eq!(send(&gcm, json!({ "to": token })).await.errors(), [json!("NotRegistered")]);
}

#[tokio::test]
async fn a_group_is_created_changed_sent_to_and_emptied() {
    let gcm =
        gcm(json!({"scripts": [{"token": "gone", "then": {"error": {"code": "NotRegistered"}}}]})).await;
    let ask = |operation: &str, key: Option<&str>, ids: &[&str]| json!({"operation": operation, "notification_key_name": "me", "notification_key": key, "registration_ids": ids});
    let made = group(&gcm, ask("create", None, &["one", "gone"])).await;
    let key = made.json()["notification_key"].as_str().unwrap().to_owned();
    assert_eq!(
        group(&gcm, ask("create", None, &["one"])).await.json()["error"],
        "notification_key already exists"
    );
    assert_eq!(group(&gcm, ask("add", Some(&key), &["two"])).await.json()["notification_key"], key);
    assert_eq!(group(&gcm, ask("add", Some("other"), &["x"])).await.status, 400);
    let many: Vec<String> = (0..18).map(|number| format!("m{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(group(&gcm, ask("add", Some(&key), &many)).await.status, 400);
    for address in ["to", "notification_key"] {
        let reply = send(&gcm, json!({address: key, "data": {"k": "v"}})).await;
        assert_eq!(reply.json(), json!({"success": 2, "failure": 1, "failed_registration_ids": ["gone"]}));
    }
    assert_eq!((gcm.counts("two").accepted, gcm.counts(&key).attempts), (2, 0));
    let url = format!("http://{}/gcm/notification?notification_key_name=me", gcm.addr());
    let find = reqwest::Client::new().get(url).header("authorization", KEY).header("project_id", "4711");
    assert_eq!(request(find.try_clone().unwrap()).await.json()["notification_key"], key);
    assert_eq!(group(&gcm, ask("remove", Some(&key), &["one", "two", "gone"])).await.status, 200);
    assert_eq!(request(find).await.status, 400);
    assert_eq!(request(at(&gcm, "/gcm/notification").json(&ask("create", None, &["a"]))).await.status, 400);
}

#[tokio::test]
async fn a_client_adds_itself_to_a_group_with_its_identity() {
    let gcm = gcm(json!({})).await;
    let ask = |identity: Value| {
        let body = json!({"operation": "add", "notification_key_name": "me@example.org", "registration_ids": ["one"],
            "id_token": identity});
        let url = format!("http://{}/gcm/googlenotification", gcm.addr());
        request(reqwest::Client::new().post(url).header("project_id", "4711").json(&body))
    };
    assert_eq!(ask(Value::Null).await.status, 400);
    let key = ask(json!("a.b.c")).await.json()["notification_key"].clone();
    assert_eq!(send(&gcm, json!({ "to": key })).await.json(), json!({"success": 1, "failure": 0}));
}

#[tokio::test]
async fn a_topic_reaches_who_is_subscribed() {
    let gcm = gcm(json!({})).await;
    let token = gcm.devices().register(TokenRegistration::default());
    let mut device = gcm.devices().listen(&token).unwrap();
    let subscribe = json!({"to": "/topics/news", "registration_tokens": [token]});
    assert_eq!(request(at(&gcm, "/iid/v1:batchAdd").json(&subscribe)).await.json(), json!({"results": [{}]}));
    let reply = send(&gcm, json!({"to": "/topics/news", "data": {"k": "v"}})).await;
    assert!(reply.json()["message_id"].is_u64(), "{}", reply.body);
    assert_eq!(device.recv().await.unwrap().topic.as_deref(), Some("news"));
    let condition = "'news' in topics && !('sport' in topics)";
    assert!(send(&gcm, json!({ "condition": condition })).await.json()["message_id"].is_u64());
    assert!(device.recv().await.is_some());
    assert_eq!(
        send(&gcm, json!({"to": "/topics/b d"})).await.json(),
        json!({"error": "InvalidRegistration"})
    );
    assert_eq!((gcm.counts("/topics/news").accepted, gcm.counts(condition).accepted), (1, 1));
}

#[tokio::test]
async fn what_stalls_is_counted_for_every_token_when_it_is_released() {
    let gcm = gcm(json!({"stall": {"tokens": ["late"]}})).await;
    let body = json!({"registration_ids": ["early", "late"]});
    let sent = tokio::spawn(request(at(&gcm, "/gcm/send").json(&body)));
    while gcm.counts("late").attempts == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((gcm.counts("early").accepted, gcm.counts("late").accepted), (0, 0));
    gcm.set_policy(read(json!({}))).unwrap();
    assert_eq!(sent.await.unwrap().json()["success"], 2);
    assert_eq!((gcm.counts("early").accepted, gcm.counts("late").accepted), (1, 1));
}
