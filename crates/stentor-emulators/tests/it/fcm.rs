//! FCM: sending, errors and access tokens, over HTTP/2 and HTTP/1.1.

use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Raw};
use crate::rig::{self, Client, post, to_token};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};
use stentor_emulators::fcm::ServiceAccount;
use stentor_emulators::{EmulatorCredential, FcmConfig};

const SEND: &str = "/v1/projects/p/messages:send";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

#[tokio::test]
async fn a_message_is_accepted_over_http_1() {
    let fcm = rig::fcm(json!({})).await;
    let (status, body) = post(fcm.addr(), SEND, &to_token("abc")).await;
    assert_eq!(status, 200);
    assert!(body["name"].as_str().unwrap().starts_with("projects/p/messages/"));
    assert_eq!(fcm.counts("abc").accepted, 1);
}

#[tokio::test]
async fn a_message_is_accepted_over_http_2_with_and_without_authority() {
    let fcm = rig::fcm(json!({})).await;
    let mut client = Client::connect(fcm.addr()).await;
    let body = to_token("abc").to_string().into_bytes();
    let request = client.request(SEND).body(()).unwrap();
    assert_eq!(client.send(request, &body).await.unwrap().status, 200);
    let mut raw = Raw::connect(fcm.addr()).await;
    raw.request(1, SEND, &[(":authority", "fcm.googleapis.com:443")], &body).await;
    assert!(raw.read_stream(1).await.last().unwrap().payload.starts_with(b"{\"name\""));
    raw.request(3, SEND, &[], &body).await;
    assert!(raw.read_stream(3).await.last().unwrap().payload.starts_with(b"{\"name\""));
    assert_eq!(fcm.counts("abc").accepted, 3);
}

/// A header block as firebase-admin for Node writes it: `:scheme` is "https:", the first time spelled out and put into
/// the dynamic table, later as a reference to that entry.
fn block_of_node(path: &str, scheme: &[u8]) -> Vec<u8> {
    let path_bytes = u8::try_from(path.len()).unwrap();
    [b"\x83", scheme, &[0x04, path_bytes], path.as_bytes()].concat()
}

const SCHEME_SPELLED_OUT: &[u8] = b"\x46\x85\x9d\x29\xad\x17\x3f";
const SCHEME_FROM_TABLE: &[u8] = b"\xbe";

#[tokio::test]
async fn a_scheme_with_a_colon_is_taken_as_google_takes_it() {
    let fcm = rig::fcm(json!({})).await;
    let mut raw = Raw::connect(fcm.addr()).await;
    for (stream, scheme) in [(1, SCHEME_SPELLED_OUT), (3, SCHEME_FROM_TABLE), (5, SCHEME_SPELLED_OUT)] {
        raw.write(HEADERS, END_HEADERS, stream, &block_of_node(SEND, scheme)).await;
        raw.write(DATA, END_STREAM, stream, to_token("abc").to_string().as_bytes()).await;
        assert_eq!(raw.read_stream(stream).await[0].kind, HEADERS);
    }
    assert_eq!(fcm.counts("abc").accepted, 3);
}

#[tokio::test]
async fn apns_refuses_a_scheme_with_a_colon() {
    let apns = rig::apns(json!({})).await;
    let mut raw = Raw::connect(apns.addr()).await;
    let block = block_of_node(&format!("/3/device/{}", rig::hex(1)), SCHEME_SPELLED_OUT);
    raw.write(HEADERS, END_HEADERS | END_STREAM, 1, &block).await;
    assert_eq!(raw.read_stream(1).await[0].kind, RST_STREAM);
}

#[tokio::test]
async fn every_error_comes_with_its_status_and_detail() {
    for (code, http, status) in [
        ("UNREGISTERED", 404, "NOT_FOUND"),
        ("INVALID_ARGUMENT", 400, "INVALID_ARGUMENT"),
        ("SENDER_ID_MISMATCH", 403, "PERMISSION_DENIED"),
        ("QUOTA_EXCEEDED", 429, "RESOURCE_EXHAUSTED"),
        ("UNAVAILABLE", 503, "UNAVAILABLE"),
        ("INTERNAL", 500, "INTERNAL"),
        ("THIRD_PARTY_AUTH_ERROR", 401, "UNAUTHENTICATED"),
    ] {
        let fcm = rig::fcm(json!({"scripts": [{"prefix": "", "then": {"error": {"code": code}}}]})).await;
        let (found, body) = post(fcm.addr(), SEND, &to_token("abc")).await;
        let error = &body["error"];
        assert_eq!((found, &error["code"], &error["status"]), (http, &json!(http), &json!(status)));
        let kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
        assert_eq!(error["details"], json!([{"@type": kind, "errorCode": code}]));
        assert_eq!(fcm.counts("abc").rejected, 1);
    }
}

#[tokio::test]
async fn an_invalid_argument_blames_the_field_that_the_policy_names() {
    let error = json!({"code": "INVALID_ARGUMENT", "field": "message.token"});
    let fcm = rig::fcm(json!({"scripts": [{"prefix": "", "then": {"error": error}}]})).await;
    let (status, body) = post(fcm.addr(), SEND, &to_token("abc")).await;
    let details = &body["error"]["details"];
    assert_eq!((status, &details[0]["errorCode"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(details[1]["@type"], "type.googleapis.com/google.rpc.BadRequest");
    assert_eq!(details[1]["fieldViolations"][0]["field"], "message.token");
}

/// An installation id, as Firebase's SDKs make them.
const FID: &str = "cJ4vGd1wRk2aB-3_xYz09Q";

#[tokio::test]
async fn an_installation_id_is_answered_and_counted_like_a_token() {
    let scripts = json!([
        {"token": "gone", "then": {"error": {"code": "UNREGISTERED"}}},
        {"token": "bad", "then": {"error": {"code": "INVALID_ARGUMENT", "field": "message.token"}}},
    ]);
    let fcm = rig::fcm(json!({ "scripts": scripts })).await;
    let send = async |message: Value| post(fcm.addr(), SEND, &json!({ "message": message })).await;
    assert_eq!(send(json!({"fid": FID})).await.0, 200);
    assert_eq!(fcm.counts(FID).accepted, 1);
    let (status, body) = send(json!({"fid": "gone"})).await;
    assert_eq!((status, &body["error"]["details"][0]["errorCode"]), (404, &json!("UNREGISTERED")));
    let (_, body) = send(json!({"fid": "bad"})).await;
    assert_eq!(body["error"]["details"][1]["fieldViolations"][0]["field"], "message.fid");
}

#[tokio::test]
async fn a_second_target_is_refused_in_the_words_of_googles_json_reader() {
    let fcm = rig::fcm(json!({})).await;
    let both = json!({"message": {"token": "abc", "fid": FID}});
    let (status, body) = post(fcm.addr(), SEND, &both).await;
    let words = "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set 'token'";
    assert_eq!((status, &body["error"]["message"]), (400, &json!(words)));
    assert_eq!((fcm.counts("abc").accepted, fcm.counts(FID).accepted), (0, 0));
}

#[tokio::test]
async fn a_script_goes_on_per_token() {
    let policy = json!({"scripts": [{"prefix": "slow", "answers": [
        {"answer": {"error": {"code": "QUOTA_EXCEEDED", "retry_after_s": 1}}, "times": 2},
    ]}]});
    let fcm = rig::fcm(policy).await;
    for token in ["slow-a", "slow-b"] {
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(post(fcm.addr(), SEND, &to_token(token)).await.0);
        }
        assert_eq!(statuses, [429, 429, 200]);
    }
    let counts = fcm.counts("slow-a");
    assert_eq!((counts.attempts, counts.rejected, counts.accepted), (3, 2, 1));
}

#[tokio::test]
async fn a_malformed_message_names_its_field() {
    let fcm = rig::fcm(json!({})).await;
    let big = "x".repeat(4096);
    let half = "x".repeat(2048);
    for (message, field) in [
        (json!({}), "message"),
        (json!({"token": "a", "topic": "b"}), "message"),
        (json!({"token": "a", "fid": "b"}), "message"),
        (json!({"token": "a b"}), "message.token"),
        (json!({"fid": "a b"}), "message.fid"),
        (json!({"topic": "/topics/a"}), "message.topic"),
        (json!({"condition": "'a' in"}), "message.condition"),
        (json!({"token": "a", "shout": 1}), "message"),
        (json!({"token": "a", "data": {"k": 1}}), "message.data[k]"),
        (json!({"token": "a", "data": {"from": "x"}}), "message.data"),
        (json!({"token": "a", "data": {"google.x": "x"}}), "message.data"),
        (json!({"token": "a", "data": {"gcm.notification.x": "x"}}), "message.data"),
        (json!({"token": "a", "data": {"k": big}}), "message"),
        (json!({"topic": "a", "data": {"k": half}}), "message"),
        (json!({"token": "a", "notification": {"title": 1}}), "message.notification.title"),
        (json!({"token": "a", "android": {"ttl": "2419201s"}}), "message.android.ttl"),
        (json!({"token": "a", "android": {"ttl": "1"}}), "message.android.ttl"),
        (json!({"token": "a", "android": {"priority": "URGENT"}}), "message.android.priority"),
        (json!({"token": "a", "android": {}, "androidV2": {}}), "message.android"),
        (json!({"token": "a", "androidV2": {"priority": "HIGH"}}), "message.android_v2"),
        (json!({"token": "a", "androidV2": {"ttl": "1"}}), "message.android_v2.ttl"),
        (json!({"token": "a", "androidV2": {"data": {"from": "x"}}}), "message.android_v2.data"),
        (
            json!({"token": "a", "android_v2": {"remote_notification": {}, "background_sync": {}}}),
            "message.android_v2",
        ),
        (json!({"token": "a", "apns": {"headers": {"apns-priority": 5}}}), "message.apns.headers"),
    ] {
        let (status, body) = post(fcm.addr(), SEND, &json!({"message": message})).await;
        let violation = &body["error"]["details"][0]["fieldViolations"][0];
        assert_eq!((status, &violation["field"]), (400, &json!(field)), "{message}");
        assert_eq!(body["error"]["status"], "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn both_spellings_of_field_names_are_understood() {
    let fcm = rig::fcm(json!({})).await;
    let android = json!({"collapse_key": "a", "ttl": "3.5s", "priority": "high", "direct_boot_ok": true});
    for request in [
        json!({"validate_only": true, "message": {"token": "abc", "android": android}}),
        json!({"validateOnly": true, "message": {"fid": "abc", "android": {"collapseKey": "a"}}}),
    ] {
        assert_eq!(post(fcm.addr(), SEND, &request).await.0, 200);
    }
    let counts = fcm.counts("abc");
    assert_eq!((counts.attempts, counts.validate_only, counts.accepted), (2, 2, 0));
}

#[tokio::test]
async fn of_two_equal_keys_the_last_wins() {
    let fcm = rig::fcm(json!({})).await;
    let mut client = Client::connect(fcm.addr()).await;
    let request = client.request(SEND).body(()).unwrap();
    let body = br#"{"message":{"token":"first","token":"last"}}"#;
    assert_eq!(client.send(request, body).await.unwrap().status, 200);
    assert_eq!((fcm.counts("first").accepted, fcm.counts("last").accepted), (0, 1));
}

#[tokio::test]
async fn garbage_is_answered_and_changes_nothing() {
    let fcm = rig::fcm(json!({})).await;
    let mut client = Client::connect(fcm.addr()).await;
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    for body in [b"".as_slice(), b"{", b"\xff\xfe", b"null", &deep] {
        let request = client.request(SEND).body(()).unwrap();
        assert_eq!(client.send(request, body).await.unwrap().status, 400);
    }
    assert_eq!(fcm.sums().tokens.attempts, 0);
}

#[tokio::test]
async fn an_unknown_project_is_forbidden() {
    let mut config = FcmConfig::default();
    config.vendor.projects = vec!["known".to_owned()];
    config.vendor.auth.required = false;
    let fcm = rig::fcm_with(config).await;
    assert_eq!(post(fcm.addr(), SEND, &to_token("abc")).await.0, 403);
    assert_eq!(post(fcm.addr(), "/v1/projects/known/messages:send", &to_token("abc")).await.0, 200);
}

#[tokio::test]
async fn the_background_call_of_google_auth_is_answered() {
    let fcm = rig::fcm(json!({})).await;
    let path = "/v1/projects/-/serviceAccounts/a@b.example/allowedLocations";
    let reply = reqwest::get(format!("http://{}{path}", fcm.addr())).await.unwrap();
    assert_eq!(reply.status(), 404);
}

async fn grant(address: std::net::SocketAddr, assertion: &str) -> (u16, Value) {
    let form = [("grant_type", GRANT), ("assertion", assertion)];
    let request = reqwest::Client::new().post(format!("http://{address}/token")).form(&form);
    let reply = request.send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

async fn send_with(address: std::net::SocketAddr, token: &str) -> (u16, Value) {
    let request = reqwest::Client::new().post(format!("http://{address}{SEND}")).bearer_auth(token);
    let reply = request.json(&to_token("abc")).send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

fn assertion(key: &KeyPair, issuer: &str, audience: &str, expires_s: u64) -> String {
    let key = EncodingKey::from_rsa_pem(key.serialize_pem().as_bytes()).unwrap();
    let claims =
        json!({"iss": issuer, "aud": audience, "scope": "any", "iat": expires_s - 3600, "exp": expires_s});
    encode(&Header::new(Algorithm::RS256), &claims, &key).unwrap()
}

#[tokio::test]
async fn a_service_account_gets_a_token_that_may_send() {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let other = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let mut config = FcmConfig::default();
    let account = ServiceAccount { client_email: "a@p".to_owned(), public_key_pem: key.public_key_pem() };
    config.vendor.auth.accounts = vec![account];
    let fcm = rig::fcm_with(config).await;
    let (uri, soon) = (format!("https://{}/token", fcm.addr()), get_current_timestamp() + 3600);

    for bad in [
        assertion(&other, "a@p", &uri, soon),
        assertion(&key, "b@p", &uri, soon),
        assertion(&key, "a@p", "https://elsewhere.example/x", soon),
        assertion(&key, "a@p", &uri, soon - 4000),
        "garbage".to_owned(),
    ] {
        let (status, body) = grant(fcm.addr(), &bad).await;
        assert_eq!((status, &body["error"]), (400, &json!("invalid_grant")));
    }
    let (status, body) = grant(fcm.addr(), &assertion(&key, "a@p", &uri, soon)).await;
    assert_eq!((status, &body["expires_in"], &body["token_type"]), (200, &json!(3599), &json!("Bearer")));
    let token = body["access_token"].as_str().unwrap();
    assert_eq!(send_with(fcm.addr(), token).await.0, 200);
    let (status, body) = send_with(fcm.addr(), &format!("{token}x")).await;
    assert_eq!((status, &body["error"]["status"]), (401, &json!("UNAUTHENTICATED")));
    assert_eq!(post(fcm.addr(), SEND, &to_token("abc")).await.0, 401);
    assert_eq!(fcm.counts("abc").attempts, 1);
}

#[tokio::test]
async fn an_access_token_expires() {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let mut config = FcmConfig::default();
    config.vendor.auth.token_life_s = 0;
    let fcm = rig::fcm_with(config).await;
    let uri = "https://oauth2.googleapis.com/token";
    let (_, body) = grant(fcm.addr(), &assertion(&key, "any@p", uri, get_current_timestamp() + 3600)).await;
    let token = body["access_token"].as_str().unwrap();
    assert_eq!(send_with(fcm.addr(), token).await.0, 401);
}

#[tokio::test]
async fn the_quota_answers_429_with_the_rest_of_the_window() {
    let fcm = rig::fcm(json!({"quota": {"messages": 2, "window_ms": 3_600_000}})).await;
    for expected in [200, 200, 429] {
        assert_eq!(post(fcm.addr(), SEND, &to_token("abc")).await.0, expected);
    }
    let mut client = Client::connect(fcm.addr()).await;
    let request = client.request(SEND).body(()).unwrap();
    let reply = client.send(request, to_token("abc").to_string().as_bytes()).await.unwrap();
    let seconds: u32 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3500..=3600).contains(&seconds));
    assert_eq!(reply.json()["error"]["details"][0]["errorCode"], "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn only_the_service_account_that_the_emulator_has_made_gets_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FcmConfig::default();
    config.vendor.projects = vec!["shop".to_owned()];
    config.vendor.credential = Some(folder.path().join("account.json"));
    let fcm = rig::fcm_with(config).await;
    let file = folder.path().join("account.json");
    let made = EmulatorCredential::ServiceAccount { file: file.clone(), project_id: "shop".to_owned() };
    assert_eq!(fcm.credential(), Some(&made));
    let account: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let text = |field: &str| account[field].as_str().unwrap();
    assert_eq!(text("token_uri"), format!("{}/token", fcm.url()));
    let key = KeyPair::from_pem(text("private_key")).unwrap();
    let other = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let soon = get_current_timestamp() + 3600;
    for (key, status) in [(other, 400), (key, 200)] {
        let assertion = assertion(&key, text("client_email"), text("token_uri"), soon);
        assert_eq!(grant(fcm.addr(), &assertion).await.0, status);
    }
}
