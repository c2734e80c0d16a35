//! The FCM HTTP v1 API and its older topics, as its callers use them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::policy::{Policy, Script, ScriptedAnswer, ServiceError};
use stentor_emulators::{FcmConfig, FcmEmulator, RunningFcm};

use crate::harness::{Read, Reading, Server, Tenant, server_with};

/// A server with a service account. Its app sends to an emulator for which the token `gone` is unregistered.
struct Scene {
    server: Server,
    tenant: Tenant,
    fcm: RunningFcm,
    account: String,
    file: Value,
    token: String,
}

impl Scene {
    async fn new() -> Self {
        let server = server_with(|_| {}).await;
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
        let (account, file) = account(&server, &tenant, &json!({"name": "backend", "url": server.url})).await;
        let mut scene = Self { server, tenant, fcm, account, file, token: String::new() };
        let granted = scene.grant(&scene.assertion(&json!({}))).await;
        assert_eq!((granted.status, &granted.body["expires_in"]), (200, &json!(3_599)), "{granted:?}");
        scene.token = granted.text("access_token");
        scene
    }

    /// Signs an assertion like the library of an app server, with some claims changed.
    fn assertion(&self, changed: &Value) -> String {
        signed(&self.file, changed, &json!({}))
    }

    async fn grant(&self, assertion: &str) -> Read {
        let form =
            format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
        let request = self.server.open(Method::POST, "/token").body(form);
        request.header("content-type", "application/x-www-form-urlencoded").read().await
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Read {
        self.server.with_key(&self.token, method, path).json(body).read().await
    }

    async fn send(&self, message: Value) -> Read {
        let path = format!("/v1/projects/{}/messages:send", self.tenant.id);
        self.ask(Method::POST, &path, &json!({"message": message})).await
    }

    /// Sends, and waits until the emulator has answered.
    async fn sent(&self, message: Value) {
        let read = self.send(message).await;
        assert_eq!(read.status, 200, "{read:?}");
        let name = read.text("name");
        let id =
            name.strip_prefix(&format!("projects/{}/messages/", self.tenant.id)).expect("a name").to_owned();
        self.server.ended(&self.tenant, &id.replace("msg_", "cmp_")).await;
    }

    fn resource(&self, token: &str, rest: &str) -> String {
        format!("/v1/projects/{}/registrations/{token}/topicSubscriptions{rest}", self.tenant.id)
    }
}

/// Makes a service account; returns its id and its file.
pub(crate) async fn account(server: &Server, tenant: &Tenant, body: &Value) -> (String, Value) {
    let path = format!("/v1/apps/{}/service-accounts", tenant.id);
    let made = server.send(tenant, Method::POST, &path).json(body).read().await;
    assert_eq!(made.status, 201, "{made:?}");
    (made.text("id"), serde_json::from_str(&made.text("file")).expect("JSON"))
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Signs as a service account, with some claims and parts of the head changed.
pub(crate) fn signed(file: &Value, changed: &Value, head_changed: &Value) -> String {
    let mut claims = json!({"iss": file["client_email"], "aud": file["token_uri"], "iat": now(), "exp": now() + 3_600,
        "scope": "https://www.googleapis.com/auth/cloud-platform"});
    let mut head = json!({"alg": "RS256", "typ": "JWT", "kid": file["private_key_id"]});
    for (value, changes) in [(&mut claims, changed), (&mut head, head_changed)] {
        for (name, change) in changes.as_object().expect("an object") {
            value[name] = change.clone();
        }
    }
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(head.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let pem = file["private_key"].as_str().expect("PEM");
    let letters: String = pem.lines().filter(|line| !line.starts_with("--")).collect();
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(letters).expect("base64")).expect("a key");
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).expect("signed");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Returns status, status word and `errorCode` of a refusal.
fn refusal(read: &Read) -> (u16, &str, Option<&str>) {
    let error = &read.body["error"];
    assert_eq!(error["code"], read.status, "{read:?}");
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let code = details.iter().find_map(|detail| detail["errorCode"].as_str());
    (read.status, error["status"].as_str().expect("a word"), code)
}

#[tokio::test]
async fn an_account_gets_a_token_for_what_it_signs_and_nobody_else_does() {
    let scene = Scene::new().await;
    let other =
        account(&scene.server, &scene.tenant, &json!({"name": "other", "url": scene.server.url})).await.1;
    let mut forged = other.clone();
    forged["client_email"] = scene.file["client_email"].clone();
    let hour = 3_600;
    for (assertion, what) in [
        (scene.assertion(&json!({"aud": "https://elsewhere.example/token"})), "another audience"),
        (scene.assertion(&json!({"iat": now() + hour, "exp": now() + 2 * hour})), "the future"),
        (scene.assertion(&json!({"iat": now() - 2 * hour, "exp": now() - hour})), "the past"),
        (scene.assertion(&json!({"exp": now() + 9 * hour})), "a life without end"),
        (scene.assertion(&json!({"iss": "key_0000000000001@nobody"})), "an account that does not exist"),
        (scene.assertion(&json!({"iss": 7})), "an issuer that is no text"),
        (signed(&forged, &json!({}), &json!({"kid": scene.file["private_key_id"]})), "another's key"),
        (signed(&scene.file, &json!({}), &json!({"alg": "none"})), "no algorithm"),
        (signed(&scene.file, &json!({}), &json!({"kid": "another"})), "another key's name"),
        ("a.b".to_owned(), "no JWT"),
        ("x".repeat(9_000), "a long text"),
        (String::new(), "nothing"),
    ] {
        let read = scene.grant(&assertion).await;
        assert_eq!((read.status, read.text("error").as_str()), (400, "invalid_grant"), "{what}: {read:?}");
    }
    let skewed = scene.grant(&scene.assertion(&json!({"iat": now() + 200, "exp": now() + 3_700}))).await;
    assert_eq!(skewed.status, 200, "a clock that is some minutes ahead: {skewed:?}");
    let known =
        scene.grant(&scene.assertion(&json!({"aud": "https://accounts.google.com/o/oauth2/token"}))).await;
    assert_eq!(known.status, 200, "an audience that clients have built in: {known:?}");
    let plain = scene.server.open(Method::POST, "/token").body("grant_type=password").read().await;
    assert_eq!(plain.text("error"), "unsupported_grant_type");
}

#[tokio::test]
async fn a_token_ends_with_its_account_and_opens_its_app_alone() {
    let scene = Scene::new().await;
    let stranger = scene.server.tenant().await;
    let message = json!({"message": {"token": "t", "data": {"k": "v"}}});
    let elsewhere =
        scene.ask(Method::POST, &format!("/v1/projects/{}/messages:send", stranger.id), &message).await;
    assert_eq!(refusal(&elsewhere), (403, "PERMISSION_DENIED", None));
    let path = format!("/v1/apps/{}/keys", scene.tenant.id);
    assert_eq!(scene.server.with_key(&scene.token, Method::GET, &path).read().await.status, 403, "no admin");
    assert_eq!(scene.send(json!({"token": "t", "data": {"k": "v"}})).await.status, 200);
    let accounts = format!("/v1/apps/{}/service-accounts", scene.tenant.id);
    let list = scene.server.get(&scene.tenant, &accounts).await;
    assert_eq!(list["service_accounts"][0]["id"], scene.account.as_str());
    assert!(!list.to_string().contains("PRIVATE KEY"), "{list}");
    let gone = format!("{accounts}/{}", scene.account);
    assert_eq!(scene.server.send(&scene.tenant, Method::DELETE, &gone).read().await.status, 204);
    let refused = scene.send(json!({"token": "t", "data": {"k": "v"}})).await;
    assert_eq!(refusal(&refused), (401, "UNAUTHENTICATED", None));
    let again = scene.grant(&scene.assertion(&json!({}))).await;
    assert_eq!(again.text("error"), "invalid_grant");
}

#[tokio::test]
async fn an_account_without_the_scope_sends_and_subscribes_nobody() {
    let scene = Scene::new().await;
    let body = json!({"name": "sender", "url": scene.server.url, "scopes": ["send"]});
    let file = account(&scene.server, &scene.tenant, &body).await.1;
    let token = scene.grant(&signed(&file, &json!({}), &json!({}))).await.text("access_token");
    let batch = json!({"to": "/topics/news", "registration_tokens": ["a"]});
    let refused = scene.server.with_key(&token, Method::POST, "/iid/v1:batchAdd").json(&batch).read().await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let path = format!("/v1/apps/{}/service-accounts", scene.tenant.id);
    for (body, field) in [
        (json!({"name": "x", "url": scene.server.url, "scopes": ["admin"]}), "scopes"),
        (json!({"name": "x", "url": "push.example"}), "url"),
        (json!({"name": "x", "url": "https://push.example/path"}), "url"),
    ] {
        let read = scene.server.send(&scene.tenant, Method::POST, &path).json(&body).read().await;
        assert_eq!(read.refusal(), (422, "invalid_field".to_owned(), Some(field.to_owned())));
    }
}

#[tokio::test]
async fn a_message_reaches_the_token_with_the_parts_of_every_platform() {
    let scene = Scene::new().await;
    scene
        .sent(json!({"token": "plain", "notification": {"title": "T"}, "data": {"k": "v"},
            "android": {"ttl": "3.5s", "collapse_key": "c", "notification": {"channel_id": "main"}},
            "apns": {"headers": {"apns-priority": "10"}, "fcm_options": {"image": "i"}},
            "webpush": {"headers": {"Urgency": "high"}}, "fcm_options": {"analytics_label": "l"}}))
        .await;
    let fid = "cJ4vGd1wRk2aB-3_xYz09Q";
    scene.sent(json!({"fid": fid, "android_v2": {"background_sync": {}}})).await;
    for token in ["plain", fid] {
        assert_eq!(scene.fcm.counts(token).accepted, 1, "{token}");
    }
}

/// Registers a device with the emulator and listens.
fn listening(fcm: &RunningFcm, token: &str) -> impl AsyncFnMut() -> Value {
    fcm.devices().register(TokenRegistration { token: Some(token.to_owned()), topic: None });
    let mut heard = fcm.devices().listen(token).expect("it is registered");
    async move || heard.recv().await.expect("a message").payload
}

#[tokio::test]
async fn every_block_of_a_message_arrives_as_it_was_sent() {
    let scene = Scene::new().await;
    let mut next = listening(&scene.fcm, "rich");
    let blocks = json!({
        "notification": {"title": "Title", "body": "Körper 🎈", "image": "https://img.example/i.png"},
        "data": {"k": "v", "empty": "", "json": "{\"a\": [1]}"},
        "android": {"collapseKey": "news", "priority": "NORMAL", "ttl": "3600s",
            "restrictedPackageName": "com.example.app", "directBootOk": true, "data": {"own": "android's"},
            "fcmOptions": {"analyticsLabel": "android-label"},
            "notification": {"title": "For Android", "icon": "bell", "color": "#ff8800", "tag": "t", "clickAction": "OPEN",
                "bodyLocKey": "body_key", "bodyLocArgs": ["one", "two"], "channelId": "main", "sticky": true,
                "notificationPriority": "PRIORITY_MAX", "vibrateTimingsMillis": [0, 250], "visibility": "PUBLIC",
                "notificationCount": 7, "lightSettings": {"color": {"red": 1.0, "green": 0.5, "blue": 0.0, "alpha": 1.0},
                    "lightOnDuration": "1.5s", "lightOffDuration": "2s"}}},
        "apns": {"headers": {"apns-priority": "5", "apns-expiration": "2000000000", "apns-collapse-id": "own", "apns-push-type": "alert"},
            "payload": {"aps": {"alert": {"title": "For Apple", "subtitle": "s", "loc-args": ["x"]}, "badge": 3,
                "sound": {"critical": 1, "name": "default", "volume": 0.8}, "mutable-content": 1,
                "category": "INVITE", "thread-id": "chat"}, "acme": {"deep": [1, {"b": null}]}},
            "fcmOptions": {"analyticsLabel": "apple-label", "image": "https://img.example/a.png"}},
        "webpush": {"headers": {"TTL": "60", "Urgency": "high"}, "data": {"w": "1"},
            "notification": {"title": "For browsers", "actions": [{"action": "open", "title": "Open"}], "renotify": true},
            "fcmOptions": {"link": "https://example.org/", "analyticsLabel": "web-label"}},
    });
    let mut message = blocks.clone();
    (message["token"], message["fcmOptions"]) = (json!("rich"), json!({"analyticsLabel": "for-none"}));
    scene.sent(message).await;
    let arrived = next().await;
    let mut expected = blocks;
    expected["token"] = json!("rich");
    // The TTL that remains when the message is sent; each platform's own label precedes the general one.
    let ttl = arrived["android"]["ttl"].as_str().and_then(|ttl| ttl.strip_suffix('s')?.parse::<u64>().ok());
    assert!(ttl.is_some_and(|ttl| (3_500..=3_600).contains(&ttl)), "{arrived}");
    expected["android"]["ttl"] = arrived["android"]["ttl"].clone();
    assert_eq!(arrived, expected);
}

#[tokio::test]
async fn the_newer_block_for_android_and_the_label_for_all_arrive_too() {
    let scene = Scene::new().await;
    let mut next = listening(&scene.fcm, "newer");
    let newer = json!({"remoteNotification": {"mutableContent": true}, "ttl": "60s"});
    let web = json!({"notification": {"title": "W"}});
    scene
        .sent(json!({"token": "newer", "data": {"k": "v"}, "androidV2": newer, "webpush": web,
            "fcmOptions": {"analyticsLabel": "all"}}))
        .await;
    let arrived = next().await;
    let label = json!({"analyticsLabel": "all"});
    let part = &arrived["androidV2"];
    assert_eq!((&part["remoteNotification"], arrived.get("android")), (&newer["remoteNotification"], None));
    assert_eq!(part["fcmOptions"], label);
    // The TTL that remains when the message is sent.
    let ttl = part["ttl"].as_str().and_then(|ttl| ttl.strip_suffix('s')?.parse::<u64>().ok());
    assert!(ttl.is_some_and(|ttl| ttl <= 60), "{arrived}");
    assert_eq!(
        (&arrived["webpush"]["notification"], &arrived["webpush"]["fcmOptions"]),
        (&web["notification"], &label)
    );
    assert_eq!((&arrived["apns"]["fcmOptions"], &arrived["data"]), (&label, &json!({"k": "v"})));
}

#[tokio::test]
async fn a_dead_token_is_unregistered_and_what_is_wrong_is_said_in_foreign_words() {
    let scene = Scene::new().await;
    scene.sent(json!({"token": "gone", "data": {"k": "v"}})).await;
    let dead = scene.send(json!({"token": "gone", "data": {"k": "v"}})).await;
    assert_eq!(refusal(&dead), (404, "NOT_FOUND", Some("UNREGISTERED")));
    let invalid = (400, "INVALID_ARGUMENT", Some("INVALID_ARGUMENT"));
    for message in [
        json!({"token": "line\nbreak", "data": {"k": "v"}}),
        json!({"token": "t", "data": {"k": "x".repeat(4_096)}}),
        json!({"token": "t", "data": {"from": "x"}}),
        json!({"token": "t", "android": {"unknown": 1}}),
        json!({"condition": "'a' in topics &&"}),
        json!({"topic": "a b"}),
        json!({"fid": "no installation", "data": {"k": "v"}}),
    ] {
        assert_eq!(refusal(&scene.send(message.clone()).await), invalid, "{message}");
    }
    let malformed = scene.send(json!({"token": "t", "android": {"ttl": "soon"}})).await;
    assert_eq!(refusal(&malformed), (400, "INVALID_ARGUMENT", None));
    assert_eq!(malformed.body["error"]["details"][0]["fieldViolations"][0]["field"], "message.android.ttl");
    let group = scene.send(json!({"token": "stentor-group.bm9uZQ", "data": {"k": "v"}})).await;
    assert_eq!(refusal(&group), (404, "NOT_FOUND", Some("UNREGISTERED")));
    let path = format!("/v1/apps/{}/credentials/fcm", scene.tenant.id);
    assert_eq!(scene.server.send(&scene.tenant, Method::DELETE, &path).read().await.status, 204);
    let third = scene.send(json!({"token": "t", "data": {"k": "v"}})).await;
    assert_eq!(refusal(&third), (401, "UNAUTHENTICATED", Some("THIRD_PARTY_AUTH_ERROR")));
}

#[tokio::test]
async fn a_dry_run_keeps_nothing_and_a_repeat_under_a_key_is_one_message() {
    let scene = Scene::new().await;
    let path = format!("/v1/projects/{}/messages:send", scene.tenant.id);
    let body = json!({"validate_only": true, "message": {"token": "t", "data": {"k": "v"}}});
    let dry = scene.ask(Method::POST, &path, &body).await;
    assert!(dry.text("name").ends_with("/messages/fake_message_id"), "{dry:?}");
    let body = json!({"message": {"token": "t", "data": {"k": "v"}}});
    let mut names = Vec::new();
    for _ in 0..2 {
        let request =
            scene.server.with_key(&scene.token, Method::POST, &path).header("Idempotency-Key", "once");
        names.push(request.json(&body).read().await.text("name"));
    }
    assert_eq!(names[0], names[1]);
    let list = scene.server.get(&scene.tenant, "/v1/messages").await;
    assert_eq!(list["messages"].as_array().map(Vec::len), Some(1), "{list}");
}

#[tokio::test]
async fn topics_are_joined_by_the_batch_and_left_and_a_topic_without_anybody_is_no_error() {
    let scene = Scene::new().await;
    scene.sent(json!({"token": "gone", "data": {"k": "v"}})).await;
    let batch = json!({"to": "/topics/news", "registration_tokens": ["a", "b", "gone", "line\nbreak"]});
    let added = scene.ask(Method::POST, "/iid/v1:batchAdd", &batch).await;
    let results = json!([{}, {}, {"error": "NOT_FOUND"}, {"error": "INVALID_ARGUMENT"}]);
    assert_eq!((added.status, &added.body["results"]), (200, &results));
    let info = scene.ask(Method::GET, "/iid/info/a?details=true", &json!({})).await;
    assert_eq!(
        (&info.body["platform"], &info.body["rel"]["topics"]),
        (&json!("ANDROID"), &json!({"news": {}}))
    );
    scene.sent(json!({"topic": "news", "data": {"k": "v"}})).await;
    let left = json!({"to": "/topics/news", "registration_tokens": ["b", "nobody"]});
    let removed = scene.ask(Method::POST, "/iid/v1:batchRemove", &left).await;
    assert_eq!(removed.body["results"], json!([{}, {}]));
    scene.sent(json!({"condition": "'news' in topics || 'sport' in topics", "data": {"k": "v"}})).await;
    assert_eq!((scene.fcm.counts("a").accepted, scene.fcm.counts("b").accepted), (2, 1));
    scene.sent(json!({"topic": "nobody-is-here", "data": {"k": "v"}})).await;
    let wrong = json!({"to": "news", "registration_tokens": ["a"]});
    assert_eq!(scene.ask(Method::POST, "/iid/v1:batchAdd", &wrong).await.status, 400);
}

#[tokio::test]
async fn subscriptions_are_resources_of_a_registration() {
    let scene = Scene::new().await;
    let path = scene.resource("a%3Ab", "?topic_name=news");
    let made = scene.ask(Method::POST, &path, &json!({})).await;
    assert!(made.text("name").ends_with("/registrations/a:b/topicSubscriptions/news"), "{made:?}");
    let again = scene.ask(Method::POST, &path, &json!({})).await;
    assert_eq!(refusal(&again), (409, "ALREADY_EXISTS", None));
    let patched =
        scene.ask(Method::PATCH, &scene.resource("a%3Ab", "/sport?allowMissing=true"), &json!({})).await;
    assert_eq!(patched.status, 200, "{patched:?}");
    let first = scene.ask(Method::GET, &scene.resource("a%3Ab", "?pageSize=1"), &json!({})).await;
    assert_eq!(first.text("nextPageToken"), "news");
    let rest =
        scene.ask(Method::GET, &scene.resource("a%3Ab", "?pageSize=1&pageToken=news"), &json!({})).await;
    assert!(
        rest.body["topicSubscriptions"][0]["name"].as_str().expect("a name").ends_with("/sport"),
        "{rest:?}"
    );
    assert!(rest.body.get("nextPageToken").is_none());
    let one = scene.resource("a%3Ab", "/news");
    assert_eq!(scene.ask(Method::GET, &one, &json!({})).await.status, 200);
    assert_eq!(scene.ask(Method::DELETE, &one, &json!({})).await.status, 200);
    for (method, rest, status) in [
        (Method::GET, "/news", 404),
        (Method::DELETE, "/news", 404),
        (Method::DELETE, "/news?allow_missing=true", 200),
        (Method::PATCH, "/news", 404),
        (Method::POST, "?topicName=a%20b", 400),
    ] {
        let read = scene.ask(method.clone(), &scene.resource("a%3Ab", rest), &json!({})).await;
        assert_eq!(read.status, status, "{method} {rest}: {read:?}");
    }
}

#[tokio::test]
async fn a_device_group_is_reached_by_its_key_with_an_access_token() {
    let scene = Scene::new().await;
    let body =
        json!({"operation": "create", "notification_key_name": "home", "registration_ids": ["g1", "g2"]});
    let made = scene.ask(Method::POST, "/fcm/notification", &body).await;
    assert_eq!(made.status, 200, "{made:?}");
    scene.sent(json!({"token": made.text("notification_key"), "data": {"k": "v"}})).await;
    assert_eq!((scene.fcm.counts("g1").accepted, scene.fcm.counts("g2").accepted), (1, 1));
}

#[tokio::test]
async fn a_full_queue_is_a_quota_with_a_time_to_come_back() {
    let server = server_with(|config| config.pipeline.max_queued_chunks = 2).await;
    let tenant = server.sender().await;
    let path = format!("/v1/projects/{}/messages:send", tenant.id);
    let stranded = json!({"platform": "android", "token": "stranded"});
    let id = server.post(&tenant, "/v1/devices", stranded).await["id"].clone();
    // Without a credential for its push service, messages for this device wait.
    let waits = json!({"target": {"device": id}, "data": {"k": "v"}});
    let audience = json!({"message": {"condition": "!('a' in topics)", "data": {"k": "v"}}});
    for _ in 0..10_000 {
        server.send(&tenant, Method::POST, "/v1/messages").json(&waits).read().await;
        let full = server.send(&tenant, Method::POST, &path).json(&audience).read().await;
        if full.status != 200 {
            assert_eq!(refusal(&full), (429, "RESOURCE_EXHAUSTED", Some("QUOTA_EXCEEDED")));
            assert!(full.headers.contains_key("retry-after"), "{full:?}");
            return;
        }
    }
    panic!("the queue takes everything");
}

#[tokio::test]
async fn a_registered_token_of_apns_never_goes_to_fcm() {
    let scene = Scene::new().await;
    let token = "ab01".repeat(16);
    let device = json!({"platform": "ios", "token": token});
    scene.server.post(&scene.tenant, "/v1/devices", device).await;
    for spelled in [token.clone(), token.to_uppercase()] {
        let read = scene.send(json!({"token": spelled, "notification": {"title": "Hi"}})).await;
        assert_eq!(refusal(&read), (401, "UNAUTHENTICATED", Some("THIRD_PARTY_AUTH_ERROR")));
    }
    let list = scene.server.get(&scene.tenant, "/v1/messages").await;
    assert_eq!(list["messages"], json!([]), "nothing was kept for FCM");
}

#[tokio::test]
async fn a_null_in_any_part_is_absence() {
    let scene = Scene::new().await;
    scene
        .sent(json!({"token": "token-a", "notification": {"title": "t", "image": null}, "data": {"k": null, "a": "b"},
            "android": {"collapse_key": null, "notification": {"sound": null}, "data": null}, "apns": {"headers": null},
            "webpush": null, "fcm_options": {"analytics_label": null}, "topic": null}))
        .await;
}
