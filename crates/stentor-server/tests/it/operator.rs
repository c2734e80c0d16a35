//! Tasks of an operator: apps, keys, credentials, health, drain.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::{AuditStore, Change};
use stentor_core::time::Timestamp;
use stentor_server::face::record::protobuf::Schema;
use stentor_storage::sqlite::SqliteStore;

use crate::harness::{Reading, durable_server, durable_server_at, server, server_on_store, server_with};

#[tokio::test]
async fn an_app_is_made_shown_listed_and_removed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let shown = server.get(&tenant, &format!("/v1/apps/{}", tenant.id)).await;
    assert_eq!(shown["name"], "an app");
    let listed = server.root(Method::GET, "/v1/apps").read().await;
    assert_eq!(listed.body["apps"].as_array().expect("a list").len(), 1);
    let removed = server.root(Method::DELETE, &format!("/v1/apps/{}", tenant.id)).read().await;
    assert_eq!(removed.status, 204);
    let after = server.send(&tenant, Method::GET, "/v1/devices").read().await;
    assert_eq!(after.refusal().0, 401, "its keys open nothing any more");
}

#[tokio::test]
async fn a_key_finds_out_which_app_it_belongs_to_and_sees_no_other() {
    let server = server().await;
    let (own, other) = (server.tenant().await, server.tenant().await);
    let only_send = server.key(&own.id, &["send"]).await;
    for key in [&own.key, &only_send] {
        let listed = server.with_key(key, Method::GET, "/v1/apps").read().await;
        let ids: Vec<_> =
            listed.body["apps"].as_array().expect("a list").iter().map(|app| &app["id"]).collect();
        assert_eq!(ids, [&json!(own.id)]);
    }
    let removed = server.root(Method::DELETE, &format!("/v1/apps/{}", other.id)).read().await;
    assert_eq!(removed.status, 204);
    let listed = server.with_key(&other.key, Method::GET, "/v1/apps").read().await;
    assert_eq!(listed.refusal().0, 401, "its app is gone");
}

#[tokio::test]
async fn a_removed_key_opens_nothing_though_it_was_used_before() {
    let server = server().await;
    let tenant = server.tenant().await;
    let secret = server.key(&tenant.id, &["send"]).await;
    assert_eq!(server.with_key(&secret, Method::GET, "/v1/messages").read().await.status, 200);
    let keys = server.get(&tenant, &format!("/v1/apps/{}/keys", tenant.id)).await;
    let keys = keys["keys"].as_array().expect("a list").clone();
    assert!(!keys.iter().any(|key| key.to_string().contains(&secret)), "secrets are shown once");
    let sends = keys.iter().find(|key| key["scopes"] == json!(["send"])).expect("listed");
    let path = format!("/v1/apps/{}/keys/{}", tenant.id, sends["id"].as_str().expect("an id"));
    assert_eq!(server.send(&tenant, Method::DELETE, &path).read().await.status, 204);
    assert_eq!(server.with_key(&secret, Method::GET, "/v1/messages").read().await.refusal().0, 401);
}

#[tokio::test]
async fn a_key_is_taken_from_either_header() {
    let server = server().await;
    let tenant = server.tenant().await;
    let read = server.open(Method::GET, "/v1/devices").header("X-API-Key", &tenant.key).read().await;
    assert_eq!(read.status, 200);
}

#[tokio::test]
async fn the_root_key_names_the_app_by_header_or_query() {
    let server = server().await;
    let tenant = server.tenant().await;
    let nameless = server.root(Method::GET, "/v1/devices").read().await;
    assert_eq!(nameless.refusal().1, "invalid_request");
    let header = server.root(Method::GET, "/v1/devices").header("X-Stentor-App", &tenant.id).read().await;
    let query = server.root(Method::GET, &format!("/v1/devices?limit=3&app={}", tenant.id)).read().await;
    assert_eq!((header.status, query.status), (200, 200));
    let unknown = server.root(Method::GET, "/v1/devices?app=app_0000000000001").read().await;
    assert_eq!(unknown.refusal().0, 404);
}

#[tokio::test]
async fn scopes_open_what_they_name_and_nothing_else() {
    let server = server().await;
    let tenant = server.tenant().await;
    let send = server.key(&tenant.id, &["send"]).await;
    let register = server.key(&tenant.id, &["register"]).await;
    let device = json!({"platform": "android", "token": "t"});
    let refused = server.with_key(&send, Method::POST, "/v1/devices").json(&device).read().await;
    assert_eq!(refused.refusal().1, "forbidden");
    assert_eq!(server.with_key(&send, Method::GET, "/v1/devices").read().await.status, 200);
    let made = server.with_key(&register, Method::POST, "/v1/devices").json(&device).read().await;
    assert_eq!(made.status, 201);
    assert_eq!(server.with_key(&register, Method::GET, "/v1/messages").read().await.refusal().0, 403);
    let path = format!("/v1/apps/{}/keys", tenant.id);
    assert_eq!(server.with_key(&send, Method::GET, &path).read().await.refusal().0, 403);
    assert_eq!(server.with_key(&send, Method::GET, "/v1/status").read().await.refusal().0, 403);
}

#[tokio::test]
async fn a_credential_is_listed_without_its_secret() {
    let server = server().await;
    let tenant = server.sender().await;
    let path = format!("/v1/apps/{}/credentials", tenant.id);
    let listed = server.get(&tenant, &path).await;
    assert_eq!(listed["credentials"][0]["provider"], "null");
    assert_eq!(listed["credentials"][0]["state"], "ok");
    let removed = server.send(&tenant, Method::DELETE, &format!("{path}/null")).read().await;
    assert_eq!(removed.status, 204);
    assert_eq!(server.get(&tenant, &path).await["credentials"], json!([]));
}

/// Encodes a credential as the body of a request: alone in JSON, inside its record in other formats.
fn written(credential: &Value, format: &str) -> Vec<u8> {
    let record = json!({"credential": credential});
    match format {
        "application/json" => credential.to_string().into_bytes(),
        "application/xml" => {
            let inside = format!("<credential>{credential}</credential>");
            format!("<PutCredential xmlns=\"urn:stentor:v1\">{inside}</PutCredential>").into_bytes()
        }
        _ => Schema::get()
            .write("PutCredentialRequest", record.as_object().expect("a record"))
            .expect("a message"),
    }
}

#[tokio::test]
async fn a_credential_is_put_in_each_format() {
    let server = server().await;
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials", tenant.id);
    let put = async |format: &str, credential: Value| {
        let request = server.send(&tenant, Method::PUT, &format!("{path}/gateway"));
        request.header("content-type", format).body(written(&credential, format)).read().await
    };
    for (format, quota) in
        [("application/json", 601), ("application/xml", 602), ("application/x-protobuf", 603)]
    {
        let done = put(format, json!({"quota": quota})).await;
        assert_eq!(done.status, 204, "{format}: {done:?}");
        let listed = server.get(&tenant, &path).await;
        assert_eq!(listed["credentials"][0]["summary"]["quota_per_minute"], quota, "{format}");
        let refused = put(format, json!({"quoat": 1})).await.refusal();
        assert_eq!(refused, (422, "invalid_field".to_owned(), Some("quoat".to_owned())), "{format}");
        let refused = put(format, json!("no object")).await.refusal();
        assert_eq!((refused.0, refused.1.as_str()), (400, "invalid_request"), "{format}");
    }
}

#[tokio::test]
async fn a_credential_that_cannot_be_used_is_refused_by_field_and_never_repeated() {
    let server = server().await;
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials/apns", tenant.id);
    let body = json!({"key_p8": "hush-hush", "key_id": "K", "team_id": "T", "bundle_id": "b"});
    let refused = server.send(&tenant, Method::PUT, &path).json(&body).read().await;
    assert_eq!(refused.refusal().1, "invalid_field");
    assert!(!refused.body.to_string().contains("hush-hush"), "{refused:?}");
    let unknown = json!({"key_p8": "x", "key_id": "K", "team_id": "T", "bundle_id": "b", "topick": 1});
    let refused = server.send(&tenant, Method::PUT, &path).json(&unknown).read().await;
    assert_eq!(refused.refusal().2.as_deref(), Some("topick"));
}

#[tokio::test]
async fn health_readiness_version_and_metrics_need_no_key() {
    let server = server().await;
    assert_eq!(server.open(Method::GET, "/healthz").read().await.body, json!({"status": "ok"}));
    let ready = server.open(Method::GET, "/readyz").read().await;
    assert_eq!((ready.status, ready.text("store")), (200, "ok".to_owned()));
    assert!(ready.body["getting_ready"].is_boolean(), "{}", ready.body);
    assert!(!server.open(Method::GET, "/version").read().await.text("version").is_empty());
    let metrics = server.open(Method::GET, "/metrics").read().await;
    let text = metrics.body.as_str().expect("text").to_owned();
    for name in [
        "stentor_messages_accepted_total 0",
        "stentor_queue_oldest_age_seconds",
        "stentor_unsettled_deliveries",
        "stentor_rows_damaged_total 0",
        "process_resident_memory_bytes",
    ] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
}

#[tokio::test]
async fn status_tells_the_operator_what_every_part_does() {
    let server = server().await;
    let status = server.root(Method::GET, "/v1/status").read().await;
    assert_eq!(status.status, 200, "{status:?}");
    let providers = status.body["providers"].as_array().expect("a list");
    assert_eq!(providers.len(), stentor_providers::all().count());
    assert!(status.body["limits"]["max_unsettled_deliveries"].is_u64());
    assert!(status.body["recovery"]["chunks"].is_u64());
}

#[tokio::test]
async fn a_server_that_has_its_store_alone_is_the_one_node() {
    let server = server().await;
    let listed = server.root(Method::GET, "/v1/nodes").read().await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let nodes = listed.body["nodes"].as_array().expect("a list");
    let roles = ["api", "scheduler", "producer", "consumer", "gateway"];
    assert_eq!((nodes.len(), &nodes[0]["roles"]), (1, &json!(roles)));
    assert_eq!((&nodes[0]["answers"], &nodes[0]["fires"]), (&json!(true), &json!(true)));
    let status = server.root(Method::GET, "/v1/status").read().await;
    assert_eq!(nodes[0]["instance"], status.body["instance"]);
    let tenant = server.sender().await;
    assert_eq!(server.send(&tenant, Method::GET, "/v1/nodes").read().await.refusal().0, 403);
}

#[tokio::test]
async fn what_was_kept_is_there_after_a_drained_restart() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.sender().await;
    let device = server.device(&tenant, "token-1").await;
    let folder = server.stop().await;
    let again = durable_server(folder).await;
    let shown = again.get(&tenant, &format!("/v1/devices/{device}")).await;
    assert_eq!(shown["state"], "active");
    let body = json!({"target": "everyone", "notification": {"title": "x"}});
    let sent = again.post(&tenant, "/v1/messages", body).await;
    let ledger = again.ended(&tenant, sent["campaign"].as_str().expect("an id")).await;
    assert_eq!(ledger["totals"]["accepted"], 1);
    again.stop().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let config = crate::harness::config(server.folder.path(), stentor_server::config::Engine::Sqlite);
    let error = stentor_node::build(config).await.err().expect("refused");
    assert!(error.to_string().contains("in use by another server"), "{error}");
}

#[tokio::test]
async fn the_chosen_address_is_written_where_scripts_find_it() {
    let server = server().await;
    let written = std::fs::read_to_string(server.folder.path().join("listen.addr")).expect("written");
    assert_eq!(format!("http://{}", written.trim()), server.url);
}

#[tokio::test]
async fn a_reload_is_answered_by_looking_at_the_credentials_again() {
    let server = server().await;
    server.reload.send(()).await.expect("the server listens");
    server.reload.send(()).await.expect("and goes on listening");
    assert_eq!(server.open(Method::GET, "/healthz").read().await.status, 200);
}

#[tokio::test]
async fn http2_without_tls_is_served_on_the_same_port() {
    let server = server().await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let answer = client.get(format!("{}/healthz", server.url)).send().await.expect("an answer");
    assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));
}

#[tokio::test]
async fn more_requests_than_allowed_are_refused_with_retry_after() {
    let server = server_with(|config| config.api.requests_max_count = 1).await;
    let tenant = server.tenant().await;
    let begin = || {
        let (to_body, body) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
        let stream =
            futures_util::stream::unfold(body, |mut body| async move { Some((body.recv().await?, body)) });
        let slow = server
            .send(&tenant, Method::POST, "/v1/devices")
            .header("content-type", "application/json")
            .body(reqwest::Body::wrap_stream(stream));
        (to_body, tokio::spawn(slow.read()))
    };
    let (mut to_body, mut slow) = begin();
    let refused = loop {
        let read = server.send(&tenant, Method::GET, "/v1/devices").read().await;
        if read.status != 200 {
            break read;
        }
        // It may have come while the other request had the only place, and was refused itself.
        if slow.is_finished() {
            (to_body, slow) = begin();
        }
    };
    to_body.send(Ok(b"{".to_vec())).await.expect("taken");
    assert_eq!(refused.refusal().1, "unavailable");
    assert_eq!(refused.headers["retry-after"], "1");
    drop(to_body);
    assert_eq!(slow.await.expect("answered").refusal().1, "invalid_request");
    assert_eq!(server.send(&tenant, Method::GET, "/v1/devices").read().await.status, 200);
}

/// A clock that stands still.
struct Still(Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

#[tokio::test]
async fn each_start_has_a_number_of_its_own_whatever_the_clock_says() {
    let mut folder = tempfile::tempdir().expect("a folder");
    let mut numbers = Vec::new();
    for hour in [9, 9, 2, 2, 1, 9] {
        let now = Timestamp::from_millis(1_800_000_000_000 + hour * 3_600_000);
        let server = durable_server_at(Arc::new(Still(now)), folder).await;
        let status = server.root(Method::GET, "/v1/status").read().await;
        numbers.push(u64::from_str_radix(&status.text("instance"), 16).expect("a number"));
        folder = server.stop().await;
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[tokio::test]
async fn a_credential_that_another_server_has_removed_is_not_listed() {
    let store = Arc::new(SqliteStore::temporary().expect("a store"));
    let server = server_on_store(Arc::clone(&store), |_| {}).await;
    let tenant = server.tenant().await;
    let path = format!("/v1/apps/{}/credentials", tenant.id);
    let put = server.send(&tenant, Method::PUT, &format!("{path}/null")).json(&json!({})).read().await;
    assert_eq!(put.status, 204, "{put:?}");
    let app = tenant.id.parse().expect("an id");
    store.change(Change::DeleteCredential(app, ProviderKind::Null), None).await.expect("removed");
    assert_eq!(server.get(&tenant, &path).await["credentials"], json!([]));
}
