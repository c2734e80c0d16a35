//! Watches of ledgers and of health.

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::{Schema, frame, frames, read};
use crate::harness::{Reading as _, Server, Tenant, server};

const LEDGER: &str = "/stentor.v1.Campaigns/WatchLedger";
const HEALTH: &str = "/grpc.health.v1.Health/Watch";
const PATIENCE: Duration = Duration::from_secs(60);
/// Watches of one app: half of the 256 places.
const PLACES_OF_AN_APP_COUNT: usize = 128;

/// A client on one connection, and a campaign that does not begin in its time.
struct Watcher {
    client: Client,
    url: String,
    key: String,
    message: Vec<u8>,
}

impl Watcher {
    async fn of(server: &Server, tenant: &Tenant) -> Self {
        let tomorrow = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
        let message = json!({"target": "everyone", "data": {"k": "v"}, "send_at": tomorrow.to_string()});
        let sent = server.post(tenant, "/v1/messages", message).await;
        let request = json!({"campaign": sent["campaign"]});
        let message = Schema::get().write("WatchLedgerRequest", request.as_object().expect("an object"));
        let client = Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
        let (url, key) = (server.url.clone(), tenant.key.clone());
        Self { client, url, key, message: message.expect("written") }
    }

    async fn watch(&self, path: &str) -> Response {
        let message = if path == LEDGER { &self.message[..] } else { b"" };
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key);
        let request = request.header("content-type", "application/grpc").body(frame(message));
        request.send().await.expect("an answer")
    }
}

/// Reads a watch to its end; returns its messages and its status.
async fn ended(watched: Response) -> (Vec<Vec<u8>>, String) {
    let body = reqwest::Body::from(watched).collect().await.expect("a body");
    let status = body.trailers().expect("trailers")["grpc-status"].to_str().expect("text").to_owned();
    (frames(&body.to_bytes()), status)
}

#[tokio::test]
async fn a_server_that_ends_ends_the_watches() {
    let server = server().await;
    let tenant = server.sender().await;
    let watcher = Watcher::of(&server, &tenant).await;
    let (ledger, health) = (watcher.watch(LEDGER).await, watcher.watch(HEALTH).await);
    server.stop().await;
    let (books, status) = ended(ledger).await;
    assert_eq!((books.len(), status.as_str()), (1, "14"));
    assert_eq!(read("Ledger", &books[0])["state"], "scheduled");
    let (states, status) = ended(health).await;
    assert_eq!((states, status.as_str()), (vec![vec![0x08, 1]], "14"));
}

#[tokio::test]
async fn a_watch_ends_when_its_key_is_removed() {
    let server = server().await;
    let tenant = server.sender().await;
    let path = format!("/v1/apps/{}/keys", tenant.id);
    let other = server.root(Method::POST, &path).json(&json!({"name": "x", "scopes": ["send"]})).read().await;
    let mut watcher = Watcher::of(&server, &tenant).await;
    watcher.key = other.text("secret");
    let watched = watcher.watch(LEDGER).await;
    let id = other.body["id"].as_str().or(other.body["key"]["id"].as_str());
    let id = id.unwrap_or_else(|| panic!("{other:?}"));
    assert_eq!(server.root(Method::DELETE, &format!("{path}/{id}")).read().await.status, 204);
    let (books, status) = ended(watched).await;
    assert_eq!((books.len(), status.as_str()), (1, "16"));
}

#[tokio::test]
async fn one_app_takes_its_share_of_the_places_and_a_canceled_watch_gives_its_own_back() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.sender().await);
    let (watcher, neighbour) = (Watcher::of(&server, &tenant).await, Watcher::of(&server, &other).await);
    let mut watched = Vec::new();
    for _ in 0..PLACES_OF_AN_APP_COUNT {
        let response = watcher.watch(LEDGER).await;
        assert!(response.headers().get("grpc-status").is_none(), "{response:?}");
        watched.push(response);
    }
    assert_eq!(watcher.watch(LEDGER).await.headers()["grpc-status"], "8");
    assert!(neighbour.watch(LEDGER).await.headers().get("grpc-status").is_none());
    watched.pop();
    let patience = Instant::now() + PATIENCE;
    while watcher.watch(LEDGER).await.headers().contains_key("grpc-status") {
        assert!(Instant::now() < patience, "the place is never given back");
    }
}

#[tokio::test]
async fn nothing_is_told_of_a_campaign_of_another_app() {
    let server = server().await;
    let (tenant, other) = (server.sender().await, server.sender().await);
    let mut watcher = Watcher::of(&server, &tenant).await;
    watcher.key = other.key;
    let refused = watcher.watch(LEDGER).await;
    assert_eq!(refused.headers()["grpc-status"], "5");
    let body: Value = refused.bytes().await.expect("a body").to_vec().into();
    assert_eq!(body, json!([]));
}
