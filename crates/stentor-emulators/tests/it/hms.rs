//! HMS: grants, messages to lists of tokens, partial success, errors, and what devices see.

use crate::rig::{CONTROL, read};
use serde_json::{Value, json};
use stentor_emulators::device::TokenRegistration;
use stentor_emulators::hms::{HmsAuth, HmsClient};
use stentor_emulators::{HmsConfig, HmsEmulator, HmsOptions, RunningHms, TlsConfig};

const PROJECT: &str = "700";
const CLIENT: &str = "100";

async fn hms(policy: Value) -> RunningHms {
    hms_with(HmsConfig { policy: read(policy), ..HmsConfig::default() }).await
}

async fn hms_with(config: HmsConfig) -> RunningHms {
    let control = Some(CONTROL.parse().unwrap());
    HmsEmulator::start(HmsConfig { tls: TlsConfig::Plaintext, control, ..config }).await.unwrap()
}

fn client(client_id: &str, project_id: &str) -> HmsClient {
    let [client_id, project_id] = [client_id, project_id].map(str::to_owned);
    HmsClient { client_id, client_secret: "right".to_owned(), project_id }
}

async fn grant(hms: &RunningHms, client_id: &str, secret: &str) -> (u16, Value) {
    let form = format!("grant_type=client_credentials&client_id={client_id}&client_secret={secret}");
    request(hms, "/oauth2/v3/token", None, form).await
}

async fn request(hms: &RunningHms, path: &str, bearer: Option<&str>, body: String) -> (u16, Value) {
    let mut request = reqwest::Client::new().post(format!("http://{}{path}", hms.addr())).body(body);
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn bearer(hms: &RunningHms) -> String {
    let (status, granted) = grant(hms, CLIENT, "right").await;
    assert_eq!((status, &granted["token_type"]), (200, &json!("Bearer")), "{granted}");
    granted["access_token"].as_str().unwrap().to_owned()
}

/// Sends a message and returns its status, its code and its description.
async fn send(hms: &RunningHms, message: Value) -> (u16, String, String) {
    let bearer = bearer(hms).await;
    let path = format!("/v2/{PROJECT}/messages:send");
    let (status, answer) =
        request(hms, &path, Some(&bearer), json!({ "message": message }).to_string()).await;
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("msg"))
}

fn data(tokens: &[&str]) -> Value {
    json!({"token": tokens, "data": "hello"})
}

#[tokio::test]
async fn an_access_token_is_given_to_a_client_with_its_secret_and_serves_its_own_project() {
    let auth = HmsAuth { clients: vec![client(CLIENT, PROJECT), client("200", "900")], ..HmsAuth::default() };
    let vendor = HmsOptions { projects: vec![PROJECT.to_owned(), "900".to_owned()], auth };
    let hms = hms_with(HmsConfig { vendor, ..HmsConfig::default() }).await;
    for (client_id, secret, sub_error) in
        [(CLIENT, "wrong", 12_304), ("300", "right", 20_003), ("abc", "right", 20_002), (CLIENT, "", 20_171)]
    {
        let (status, denied) = grant(&hms, client_id, secret).await;
        assert_eq!((status, &denied["error"], &denied["sub_error"]), (400, &json!(1101), &json!(sub_error)));
    }
    let bearer = bearer(&hms).await;
    let body = json!({"message": data(&["one"])}).to_string();
    for (path, status, code) in [
        ("/v2/700/messages:send", 200, "80000000"),
        ("/v1/100/messages:send", 200, "80000000"),
        ("/v2/900/messages:send", 401, "80200001"),
        ("/v1/200/messages:send", 401, "80200001"),
    ] {
        let answer = request(&hms, path, Some(&bearer), body.clone()).await;
        assert_eq!((answer.0, &answer.1["code"]), (status, &json!(code)), "{path}");
    }
    let without = request(&hms, "/v2/700/messages:send", None, body.clone()).await;
    assert_eq!((without.0, &without.1["code"]), (401, &json!("80200001")));
    assert_eq!(request(&hms, "/v3/700/messages:send", Some(&bearer), body).await.0, 404);
    assert_eq!(hms.counts("one").accepted, 2);
}

#[tokio::test]
async fn an_expired_access_token_is_told_from_a_wrong_one() {
    let auth = HmsAuth { token_life_s: 0, ..HmsAuth::default() };
    let vendor = HmsOptions { auth, ..HmsOptions::default() };
    let hms = hms_with(HmsConfig { vendor, ..HmsConfig::default() }).await;
    assert_eq!(send(&hms, data(&["one"])).await.1, "80200003");
    let forged =
        request(&hms, "/v2/700/messages:send", Some("hms.stentor-emulator.9.9.x"), "{}".into()).await;
    assert_eq!(forged.1["code"], "80200001");
}

#[tokio::test]
async fn tokens_are_decided_and_counted_one_by_one() {
    let error = json!({"error": {"code": "80300007"}});
    let hms = hms(json!({"scripts": [{"prefix": "gone", "then": error}]})).await;
    assert_eq!(send(&hms, data(&["one", "two"])).await, (200, "80000000".into(), "Success".into()));
    let (status, code, listed) = send(&hms, data(&["one", "gone-1", "b d"])).await;
    assert_eq!((status, code.as_str()), (200, "80100000"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed, json!({"success": 1, "failure": 2, "illegal_tokens": ["gone-1", "b d"]}));
    let (status, code, _) = send(&hms, data(&["gone-1", "gone-2"])).await;
    assert_eq!((status, code.as_str()), (400, "80300007"));
    let counts = hms.counts("gone-1");
    assert_eq!((counts.attempts, counts.accepted, counts.rejected), (2, 0, 2));
    assert_eq!(hms.counts("one").accepted, 2);
}

#[tokio::test]
async fn any_other_error_is_the_answer_to_the_whole_request() {
    let then = |code| json!({"error": {"code": code, "retry_after_s": 3}});
    let hms = hms(json!({"scripts": [
        {"token": "down", "then": then("81000001")}, {"token": "busy", "then": then("503")},
    ]}))
    .await;
    let (status, code, _) = send(&hms, data(&["one", "down"])).await;
    assert_eq!((status, code.as_str()), (500, "81000001"));
    assert_eq!(send(&hms, data(&["one", "busy"])).await, (503, String::new(), String::new()));
    assert_eq!((hms.counts("one").accepted, hms.counts("one").rejected), (0, 2));
    for unknown in ["80000000", "80100000", "UNREGISTERED"] {
        let policy = read(json!({"scripts": [{"prefix": "", "then": then(unknown)}]}));
        assert!(hms.set_policy(policy).is_err(), "{unknown}");
    }
}

#[tokio::test]
async fn a_message_that_breaks_a_rule_is_refused_with_its_code() {
    let hms = hms(json!({})).await;
    let many: Vec<String> = (0..1_001).map(|number| format!("t{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let android = |android: Value| json!({"token": ["a"], "data": "d", "android": android});
    let shown = |own: Value| json!({"token": ["a"], "android": {"notification": own}});
    let open = json!({"type": 3});
    for (message, code) in [
        (json!({"data": "d"}), "80300010"),
        (data(&[]), "80300010"),
        (data(&many), "80300010"),
        (json!({"token": ["a"], "topic": "news", "data": "d"}), "80100003"),
        (json!({"token": ["a"]}), "80100003"),
        (json!({"token": ["a"], "data": {"k": "v"}}), "80100003"),
        (json!({"token": ["a"], "data": "x".repeat(4_200)}), "80300008"),
        (android(json!({"ttl": "0s"})), "80100004"),
        (android(json!({"ttl": "1296001s"})), "80100003"),
        (android(json!({"ttl": 5})), "80100003"),
        (android(json!({"collapse_key": 101})), "80100013"),
        (android(json!({"urgency": "high"})), "80100003"),
        (json!({"token": ["a"], "notification": {"title": "t", "body": "b"}}), "80100003"),
        (shown(json!({"title": "t", "click_action": open})), "80100003"),
        (shown(json!({"title": "t", "body": "b"})), "80100003"),
        (shown(json!({"title": "t", "body": "b", "click_action": {"type": 1}})), "80100003"),
        (shown(json!({"title": "t", "body": "b", "image": "http://a", "click_action": open})), "80100003"),
    ] {
        let (status, answered, words) = send(&hms, message.clone()).await;
        assert_eq!((status, answered.as_str()), (400, code), "{words}: {message}");
    }
    assert_eq!(send(&hms, data(&many[..1_000])).await.1, "80000000");
    let right = shown(json!({"title": "t", "body": "b", "click_action": {"type": 2, "url": "https://a"}}));
    assert_eq!(send(&hms, right).await.1, "80000000");
    let half = json!({"token": ["a"], "notification": {"title": "t", "body": "b"},
        "android": {"notification": {"click_action": open}}});
    assert_eq!(send(&hms, half).await.1, "80000000");
    assert_eq!(hms.counts("a").accepted, 2);
}

#[tokio::test]
async fn a_device_sees_the_message_without_the_tokens_and_the_newest_of_a_group() {
    let hms = hms(json!({})).await;
    let token = hms.devices().register(TokenRegistration::default());
    let grouped = |text: &str| json!({"token": [token, "other"], "data": text, "android": {"collapse_key": 7, "urgency": "HIGH"}});
    for text in ["first", "second"] {
        assert_eq!(send(&hms, grouped(text)).await.1, "80000000");
    }
    let mut device = hms.devices().listen(&token).unwrap();
    let seen = device.recv().await.unwrap();
    assert_eq!((&seen.payload["data"], seen.high_priority), (&json!("second"), true));
    assert_eq!((seen.collapse_key.as_deref(), seen.payload.get("token")), (Some("7"), None));
    assert!(device.try_recv().is_err());
    hms.devices().expire(&token, None);
    assert_eq!(send(&hms, data(&[&token])).await.1, "80300007");
}

#[tokio::test]
async fn a_message_for_validation_is_counted_and_delivered_as_none() {
    let hms = hms(json!({})).await;
    let token = hms.devices().register(TokenRegistration::default());
    let mut device = hms.devices().listen(&token).unwrap();
    let bearer = bearer(&hms).await;
    let body = json!({"validate_only": true, "message": data(&[&token])}).to_string();
    let answer = request(&hms, "/v2/700/messages:send", Some(&bearer), body).await;
    assert_eq!(answer.1["code"], "80000000");
    assert_eq!((hms.counts(&token).validate_only, hms.counts(&token).accepted), (1, 0));
    assert!(device.try_recv().is_err());
}
