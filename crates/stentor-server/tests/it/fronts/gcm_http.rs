//! The legacy HTTP API of GCM and FCM, as its callers use it.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::policy::{Policy, Script, ScriptedAnswer, ServiceError};
use stentor_emulators::{FcmConfig, FcmEmulator, RunningFcm};

use crate::harness::{Read, Reading, Server, Tenant, server};

/// A server with an app that sends to an emulator, for which the token `gone` is unregistered.
struct Scene {
    server: Server,
    tenant: Tenant,
    fcm: RunningFcm,
}

impl Scene {
    async fn new() -> Self {
        let server = server().await;
        let tenant = server.tenant().await;
        let gone = Script {
            token: Some("gone".into()),
            then: ScriptedAnswer::Error(ServiceError::new("UNREGISTERED")),
            ..Script::default()
        };
        let policy = Policy { scripts: vec![gone], ..Policy::default() };
        let fcm =
            FcmEmulator::start(FcmConfig { policy, ..FcmConfig::default() }).await.expect("an emulator");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
        let endpoint = format!("https://{}", fcm.addr());
        let credential = json!({"service_account": {"type": "service_account", "project_id": "a-project",
            "private_key_id": "k1", "private_key": key.serialize_pem(), "client_id": "1",
            "client_email": "a@a-project.iam.gserviceaccount.com", "token_uri": format!("{endpoint}/token")},
            "endpoint": endpoint, "ca_pem": fcm.ca_pem().expect("TLS")});
        let path = format!("/v1/apps/{}/credentials/fcm", tenant.id);
        let put = server.send(&tenant, Method::PUT, &path).json(&credential).read().await;
        assert_eq!(put.status, 204, "{put:?}");
        Self { server, tenant, fcm }
    }

    async fn post(&self, path: &str, body: &Value) -> Read {
        let request = self.server.open(Method::POST, path).json(body);
        request.header("authorization", format!("key={}", self.tenant.key)).read().await
    }

    async fn send(&self, body: Value) -> Read {
        self.post("/fcm/send", &body).await
    }

    async fn plain(&self, form: &str) -> Read {
        let request = self.server.open(Method::POST, "/gcm/send").body(form.to_owned());
        let request = request.header("content-type", "application/x-www-form-urlencoded;charset=UTF-8");
        request.header("authorization", format!("key={}", self.tenant.key)).read().await
    }

    /// Waits until every message has ended, and counts them.
    async fn settled(&self) -> usize {
        let list = self.server.get(&self.tenant, "/v1/messages?limit=1000").await;
        let messages = list["messages"].as_array().expect("a list").clone();
        for message in &messages {
            self.server.ended(&self.tenant, message["campaign"].as_str().expect("an id")).await;
        }
        messages.len()
    }
}

/// Returns the error of each result.
fn errors(read: &Read) -> Vec<Option<&str>> {
    assert_eq!(read.status, 200, "{read:?}");
    read.body["results"].as_array().expect("results").iter().map(|one| one["error"].as_str()).collect()
}

#[tokio::test]
async fn tokens_that_nobody_registered_are_sent_to_and_told_in_order() {
    let scene = Scene::new().await;
    let body = json!({"registration_ids": ["one", "line\nbreak", "two"], "data": {"k": "v", "n": 1},
        "collapse_key": "c", "time_to_live": 60, "priority": "high"});
    let read = scene.send(body).await;
    assert_eq!(errors(&read), [None, Some("InvalidRegistration"), None]);
    let counts = (&read.body["success"], &read.body["failure"], &read.body["canonical_ids"]);
    assert_eq!(counts, (&json!(2), &json!(1), &json!(0)));
    assert!(read.body["multicast_id"].as_u64().is_some_and(|id| id < 1 << 53));
    assert!(read.body["results"][0]["message_id"].as_str().is_some_and(|id| id.starts_with("msg_")));
    assert_eq!(scene.settled().await, 2);
    assert_eq!((scene.fcm.counts("one").accepted, scene.fcm.counts("two").accepted), (1, 1));
}

#[tokio::test]
async fn a_token_that_died_is_not_registered_from_then_on() {
    let scene = Scene::new().await;
    let body =
        json!({"to": "gone", "notification": {"title": "Hi", "icon": "i", "sound": "default", "badge": "3"}});
    assert_eq!(errors(&scene.send(body.clone()).await), [None], "the push service has not said it yet");
    scene.settled().await;
    assert_eq!(errors(&scene.send(body).await), [Some("NotRegistered")]);
    assert_eq!(scene.settled().await, 1, "nothing is kept for it");
    assert_eq!(scene.plain("registration_id=gone&data.k=v").await.body, json!("Error=NotRegistered\n"));
}

#[tokio::test]
async fn a_thousand_tokens_fit_and_a_repeat_with_the_same_key_sends_nothing_twice() {
    let scene = Scene::new().await;
    let ids = |count: usize| (0..count).map(|number| format!("token-{number}")).collect::<Vec<_>>();
    let ask = async || {
        let request = scene.server.open(Method::POST, "/gcm/send").header("idempotency-key", "once");
        let request = request.header("authorization", format!("key={}", scene.tenant.key));
        request.json(&json!({"registration_ids": ids(1_000), "data": {"k": "v"}})).read().await
    };
    let (first, again) = (ask().await, ask().await);
    assert_eq!((first.status, &first.body["success"]), (200, &json!(1_000)));
    assert_eq!(first.body, again.body);
    assert_eq!(scene.settled().await, 1_000);
    assert_eq!(scene.send(json!({"registration_ids": ids(1_001)})).await.status, 400);
}

#[tokio::test]
async fn what_is_wrong_with_a_message_is_told_for_each_token() {
    let scene = Scene::new().await;
    for (extra, error) in [
        (json!({"time_to_live": -1}), "InvalidTtl"),
        (json!({"time_to_live": 2_419_201}), "InvalidTtl"),
        (json!({"data": {"from": "x"}}), "InvalidDataKey"),
        (json!({"data": {"google.x": "x"}}), "InvalidDataKey"),
        (json!({"data": {"k": "x".repeat(4_100)}}), "MessageTooBig"),
    ] {
        let mut body = json!({"registration_ids": ["a", "b"]});
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        assert_eq!(errors(&scene.send(body).await), [Some(error), Some(error)], "{extra}");
    }
    assert_eq!(errors(&scene.send(json!({"data": {"k": "v"}})).await), [Some("MissingRegistration")]);
    assert_eq!(scene.settled().await, 0);
}

#[tokio::test]
async fn plain_text_is_answered_in_lines() {
    let scene = Scene::new().await;
    let sent = scene.plain("registration_id=one&collapse_key=c&data.k=a%20b&time_to_live=60").await;
    assert!(
        sent.body.as_str().is_some_and(|text| text.starts_with("id=msg_") && text.ends_with('\n')),
        "{sent:?}"
    );
    assert_eq!(scene.plain("data.k=v").await.body, json!("Error=MissingRegistration\n"));
    assert_eq!(scene.plain("registration_id=one&time_to_live=soon").await.body, json!("Error=InvalidTtl\n"));
    let checked = scene.plain("registration_id=one&dry_run=true&data.k=v").await;
    assert_eq!(checked.body, json!("id=fake_message_id\n"));
    assert_eq!(scene.plain("\u{7f}<").await.status, 400);
    assert_eq!(scene.settled().await, 1);
}

#[tokio::test]
async fn topics_and_conditions_are_ours() {
    let scene = Scene::new().await;
    let device = json!({"platform": "android", "token": "one", "topics": ["news"]});
    scene.server.post(&scene.tenant, "/v1/devices", device).await;
    let topic = scene.send(json!({"to": "/topics/news", "data": {"k": "v"}})).await;
    assert!(topic.body["message_id"].is_u64(), "{topic:?}");
    let condition = json!({"condition": "'news' in topics && !('sport' in topics)", "data": {"k": "v"}});
    assert!(scene.send(condition).await.body["message_id"].is_u64());
    scene.settled().await;
    assert_eq!(scene.fcm.counts("one").accepted, 2);
    let broken = scene.send(json!({"condition": "'news' in", "data": {"k": "v"}})).await;
    assert_eq!(broken.body, json!({"error": "InvalidRegistration"}));
    let both = json!({"to": "one", "condition": "'a' in topics", "data": {"k": "v"}});
    assert_eq!(scene.send(both).await.status, 400);
}

#[tokio::test]
async fn a_device_group_is_made_sent_to_changed_and_gone_with_its_last_member() {
    let scene = Scene::new().await;
    let change = async |operation: &str, key: Option<&str>, ids: Vec<String>| {
        let mut body =
            json!({"operation": operation, "notification_key_name": "user-anna", "registration_ids": ids});
        if let Some(key) = key {
            body["notification_key"] = json!(key);
        }
        scene.post("/gcm/notification", &body).await
    };
    let ids = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let before = scene.send(json!({"to": "two", "data": {"k": "v"}})).await;
    assert_eq!(errors(&before), [None], "from here on it is known, and not registered");
    let made = change("create", None, ids(&["one", "two"])).await;
    assert_eq!(made.status, 200, "{made:?}");
    let key = made.text("notification_key");
    let again = change("create", None, ids(&["one"])).await;
    assert_eq!((again.status, again.body), (400, json!({"error": "notification_key already exists"})));
    let sent = scene.send(json!({"to": key, "data": {"k": "v"}})).await;
    assert_eq!((sent.status, sent.body), (200, json!({"success": 2, "failure": 0})));
    scene.settled().await;
    assert_eq!((scene.fcm.counts("one").accepted, scene.fcm.counts("two").accepted), (1, 2));
    let many: Vec<_> = (0..19).map(|number| format!("more-{number}")).collect();
    assert_eq!(change("add", Some(&key), many).await.status, 400, "21 members are too many");
    assert_eq!(change("add", Some(&key), ids(&["three"])).await.text("notification_key"), key);
    assert_eq!(change("remove", Some(&key), ids(&["one", "two"])).await.status, 200);
    let found = scene.server.open(Method::GET, "/fcm/notification?notification_key_name=user-anna");
    let found = found.header("authorization", format!("key={}", scene.tenant.key)).read().await;
    assert_eq!(found.text("notification_key"), key);
    assert_eq!(change("remove", Some(&key), ids(&["three"])).await.status, 200);
    let gone = change("add", Some(&key), ids(&["one"])).await;
    assert_eq!((gone.status, gone.body), (400, json!({"error": "notification_key not found"})));
    assert_eq!(
        scene.send(json!({"to": key, "data": {"k": "v"}})).await.body,
        json!({"error": "NotRegistered"})
    );
}

#[tokio::test]
async fn members_that_are_added_at_once_are_never_too_many_together() {
    let scene = Scene::new().await;
    let change = async |operation: &str, ids: Vec<String>| {
        let body = json!({"operation": operation, "notification_key_name": "crowd", "registration_ids": ids});
        scene.post("/gcm/notification", &body).await
    };
    assert_eq!(change("create", vec!["first".to_owned()]).await.status, 200);
    let three = |round: u32| (0..3).map(|number| format!("m-{round}-{number}")).collect::<Vec<_>>();
    let added = futures_util::future::join_all((0..16).map(|round| change("add", three(round)))).await;
    let done = added.iter().filter(|read| read.status == 200).count();
    assert_eq!(done, 6, "six times three fit beside the first: {added:?}");
    let shown = scene.server.get(&scene.tenant, "/v1/groups/crowd").await;
    assert_eq!(shown["member_count"], 19);
}

#[tokio::test]
async fn refusals_have_the_statuses_of_the_documents() {
    let scene = Scene::new().await;
    let body = json!({"to": "one", "data": {"k": "v"}});
    let with = async |header: String, body: &Value| {
        let request = scene.server.open(Method::POST, "/fcm/send").header("authorization", header);
        request.json(body).read().await.status
    };
    assert_eq!(with("key=sk_wrong".into(), &body).await, 401);
    let register = scene.server.key(&scene.tenant.id, &["register"]).await;
    assert_eq!(with(format!("key={register}"), &body).await, 401);
    let key = format!("key={}", scene.tenant.key);
    assert_eq!(with(key.clone(), &json!({"registration_ids": "one"})).await, 400);
    assert_eq!(with(key, &json!([])).await, 400);
}

#[tokio::test]
async fn a_token_that_its_device_has_replaced_reaches_it_and_the_sender_is_told_the_new_one() {
    let scene = Scene::new().await;
    let key = scene.server.key(&scene.tenant.id, &["join"]).await;
    let join = scene.server.with_key(&key, Method::POST, "/gateway/v1/devices").json(&json!({}));
    let former = join.read().await.body;
    let ask = |device: &Value, method, path: &str| {
        let text = |name: &str| device[name].as_str().expect("a text").to_owned();
        scene.server.open(method, path).basic_auth(text("token"), Some(text("secret")))
    };
    let present = ask(&former, Method::POST, "/gateway/v1/device/token").read().await.body;
    // The first login with the new token makes it the device's.
    assert_eq!(ask(&present, Method::GET, "/gateway/v1/device").read().await.status, 200);
    let body = json!({"registration_ids": [former["token"], present["token"], "one"], "data": {"k": "v"}});
    let read = scene.send(body).await;
    assert_eq!(errors(&read), [None, None, None]);
    assert_eq!(read.body["canonical_ids"], 1);
    assert_eq!(read.body["results"][0]["registration_id"], present["token"]);
    assert!(read.body["results"][1]["registration_id"].is_null());
    let form = format!("registration_id={}&data.k=v", former["token"].as_str().expect("a token"));
    let plain = scene.plain(&form).await.body;
    let lines: Vec<_> = plain.as_str().expect("text").lines().map(ToOwned::to_owned).collect();
    let canonical = format!("registration_id={}", present["token"].as_str().expect("a token"));
    assert!(lines[0].starts_with("id=msg_") && lines[1] == canonical, "{lines:?}");
    scene.settled().await;
    let got = ask(&present, Method::GET, "/gateway/v1/messages?wait_seconds=20").read().await;
    assert_eq!(got.body["messages"].as_array().map(Vec::len), Some(3), "{got:?}");
}
