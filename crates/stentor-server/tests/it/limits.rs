//! Limits of one app, one address or one slow caller on shared resources.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::harness::{Read, Reading, Server, Tenant, server, server_with};

/// A request with a body that has begun and ends only when the test ends it.
pub(crate) struct Unfinished {
    /// Dropping it ends the body, and does not abort the request.
    body: mpsc::Sender<Vec<u8>>,
    pub(crate) answer: JoinHandle<Read>,
}

impl Unfinished {
    pub(crate) fn begin(request: RequestBuilder, first: impl Into<Vec<u8>>) -> Self {
        let (to_body, body) = mpsc::channel(1);
        to_body.try_send(first.into()).expect("there is room for one");
        let pieces = futures_util::stream::unfold(body, |mut body| async move {
            Some((Ok::<_, std::io::Error>(body.recv().await?), body))
        });
        let answer = tokio::spawn(request.body(reqwest::Body::wrap_stream(pieces)).read());
        Self { body: to_body, answer }
    }

    /// Ends the body and returns the response.
    pub(crate) async fn end(self) -> Read {
        drop(self.body);
        self.answer.await.expect("answered")
    }
}

fn post(server: &Server, tenant: &Tenant, path: &str) -> RequestBuilder {
    let kind = if path.contains("import") { "application/x-ndjson" } else { "application/json" };
    server.send(tenant, Method::POST, path).header("content-type", kind)
}

/// Reads one metric.
pub(crate) async fn metric(server: &Server, name: &str) -> u64 {
    let text = server.open(Method::GET, "/metrics").read().await.body;
    let line =
        text.as_str().expect("text").lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse::<f64>().expect("a number") as u64
}

/// Waits until a metric has a value.
pub(crate) async fn until(server: &Server, name: &str, value: u64) {
    let patience = Instant::now() + Duration::from_secs(60);
    while metric(server, name).await != value {
        assert!(Instant::now() < patience, "{name} is {}, not {value}", metric(server, name).await);
    }
}

fn line(tenant: &str) -> String {
    format!("{{\"platform\":\"android\",\"token\":\"{tenant}\"}}\n")
}

#[tokio::test]
async fn one_apps_imports_leave_places_for_another_apps() {
    let server = server().await;
    let (greedy, other) = (server.tenant().await, server.tenant().await);
    let import = "/v1/devices/import";
    let mut held = Vec::new();
    for number in 1..=2 {
        held.push(Unfinished::begin(post(&server, &greedy, import), "\n"));
        until(&server, "stentor_imports_at_work", number).await;
    }
    let refused = post(&server, &greedy, import).body(line("x")).read().await;
    assert_eq!(
        (refused.refusal().1.as_str(), refused.headers["retry-after"].as_str()),
        ("rate_limited", "1")
    );
    let done = post(&server, &other, import).body(line("x")).read().await;
    assert_eq!((done.status, &done.body["created"]), (200, &json!(1)), "{done:?}");
    for upload in held {
        assert_eq!(upload.end().await.status, 200);
    }
    assert_eq!(post(&server, &greedy, import).body(line("x")).read().await.status, 200);
}

#[tokio::test]
async fn an_import_that_stops_gives_its_place_back_and_tells_what_was_kept() {
    let server = server_with(|config| {
        config.api.imports_max_count = 1;
        config.api.import_idle_timeout_seconds = 1;
    })
    .await;
    let tenant = server.tenant().await;
    let lines: String = (0..20_000).map(|number| line(&number.to_string())).collect();
    let upload = Unfinished::begin(post(&server, &tenant, "/v1/devices/import"), lines);
    let answer = upload.answer.await.expect("answered");
    assert_eq!(answer.refusal(), (408, "request_timeout".to_owned(), None));
    assert!(answer.text("hint").contains("lines were registered before"), "{answer:?}");
    let again = post(&server, &tenant, "/v1/devices/import").body(line("x")).read().await;
    assert_eq!(again.status, 200, "{again:?}");
}

#[tokio::test]
async fn unfinished_bodies_stay_within_their_bytes_and_one_app_within_its_share() {
    let server = server_with(|config| {
        config.api.body_max_bytes = 1_000;
        config.api.large_body_max_bytes = 1_000;
        config.api.bodies_max_bytes = 4_000;
    })
    .await;
    let (greedy, other) = (server.sender().await, server.sender().await);
    let mut held = Vec::new();
    for number in 1..=2 {
        held.push(Unfinished::begin(post(&server, &greedy, "/v1/messages"), vec![b' '; 900]));
        until(&server, "stentor_request_bodies_bytes", 900 * number).await;
    }
    let refused = Unfinished::begin(post(&server, &greedy, "/v1/messages"), vec![b' '; 900]);
    let refused = refused.answer.await.expect("answered");
    assert_eq!(
        (refused.refusal().1.as_str(), refused.headers["retry-after"].as_str()),
        ("rate_limited", "1")
    );
    let body = json!({"target": {"token": {"platform": "android", "provider": "null", "token": "t"}}, "data": {"k": "v".repeat(700)}});
    assert_eq!(server.send(&other, Method::POST, "/v1/messages").json(&body).read().await.status, 202);
    for number in 3..=4 {
        held.push(Unfinished::begin(post(&server, &other, "/v1/messages"), vec![b' '; 500]));
        until(&server, "stentor_request_bodies_bytes", 1_800 + 500 * (number - 2)).await;
    }
    assert!(metric(&server, "stentor_request_bodies_bytes").await <= 4_000);
    for request in held {
        assert_eq!(request.end().await.refusal().1, "invalid_request");
    }
    until(&server, "stentor_request_bodies_bytes", 0).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let server = server_with(|config| config.api.body_timeout_seconds = 1).await;
    let tenant = server.sender().await;
    let answer =
        Unfinished::begin(post(&server, &tenant, "/v1/messages"), "{").answer.await.expect("answered");
    assert_eq!(answer.refusal(), (408, "request_timeout".to_owned(), None));
    assert_eq!(answer.headers["retry-after"], "1");
    until(&server, "stentor_requests_at_work", 0).await;
}

#[tokio::test]
async fn one_apps_requests_leave_places_for_another_apps() {
    let server = server_with(|config| config.api.requests_max_count = 4).await;
    let (greedy, other) = (server.sender().await, server.sender().await);
    let mut held = Vec::new();
    for number in 1..=2 {
        held.push(Unfinished::begin(post(&server, &greedy, "/v1/messages"), "{"));
        until(&server, "stentor_requests_at_work", number).await;
    }
    let refused = server.send(&greedy, Method::GET, "/v1/devices").read().await;
    assert_eq!(
        (refused.refusal().1.as_str(), refused.headers["retry-after"].as_str()),
        ("rate_limited", "1")
    );
    assert_eq!(server.send(&other, Method::GET, "/v1/devices").read().await.status, 200);
    for request in held {
        assert_eq!(request.end().await.refusal().1, "invalid_request");
    }
}

#[tokio::test]
async fn without_a_key_a_body_is_not_read_and_no_place_is_taken() {
    let server = server_with(|config| {
        config.api.requests_max_count = 1;
        config.api.imports_max_count = 1;
    })
    .await;
    let tenant = server.tenant().await;
    let unknown = Tenant { id: tenant.id.clone(), key: format!("sk_{}", "x".repeat(43)) };
    for path in ["/v1/messages", "/v1/devices/import"] {
        let request = Unfinished::begin(post(&server, &unknown, path), "{");
        assert_eq!(request.answer.await.expect("answered").refusal().1, "unauthorized");
    }
    for name in ["requests_at_work", "request_bodies_bytes", "imports_at_work"] {
        assert_eq!(metric(&server, &format!("stentor_{name}")).await, 0, "{name}");
    }
    assert_eq!(server.send(&tenant, Method::GET, "/v1/devices").read().await.status, 200);
}

#[tokio::test]
async fn what_may_hold_many_names_may_be_longer_than_a_message() {
    let server = server().await;
    let tenant = server.sender().await;
    let users: Vec<String> = (0..1_000).map(|number| format!("{number:0>200}")).collect();
    assert_eq!(server.send(&tenant, Method::PUT, "/v1/groups/team").read().await.status, 200);
    let changed = server.post(&tenant, "/v1/groups/team/members", json!({"users": users})).await;
    assert_eq!(changed["changed"], 1_000);
    let long = json!({"target": "everyone", "data": {"k": "v".repeat(200_000)}});
    let refused = server.send(&tenant, Method::POST, "/v1/messages").json(&long).read().await;
    assert_eq!(refused.refusal().1, "payload_too_large");
}

#[tokio::test]
async fn a_supervisor_is_answered_whatever_else_comes_from_its_address() {
    let server = server_with(|config| config.api.nameless_requests_per_second_max_count = 1).await;
    let status_of = async |path| server.open(Method::GET, path).read().await.status;
    let mut refused = 0;
    for _ in 0..20 {
        refused += usize::from(status_of("/version").await == 429);
        assert_eq!((status_of("/healthz").await, status_of("/readyz").await), (200, 200));
    }
    assert!(refused > 10, "{refused}");
}

#[tokio::test]
async fn an_address_that_guesses_keys_is_told_to_wait_and_a_key_beside_it_is_not() {
    let server = server_with(|config| config.api.nameless_requests_per_second_max_count = 5).await;
    let tenant = server.tenant().await;
    for path in ["/v1/devices", "/gateway/v1/device", "/gateway/v1/messages"] {
        let mut statuses = Vec::new();
        for _ in 0..20 {
            statuses.push(server.with_key("sk_guessed", Method::GET, path).read().await.status);
        }
        assert_eq!(statuses.last(), Some(&429), "{path}: {statuses:?}");
        assert_eq!(server.send(&tenant, Method::GET, "/v1/devices").read().await.status, 200);
    }
}
