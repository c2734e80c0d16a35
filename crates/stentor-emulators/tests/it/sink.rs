//! The sink, as clients that were not made for it see it: over TLS and in the clear, in bulk and late.

use crate::frames::{GOAWAY, Raw};
use crate::rig::{ALERT, Client, finish, hex, to_token};
use http::Request;
use reqwest::{Certificate, Version};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stentor_emulators::policy::AnswerLatency;
use stentor_emulators::{
    ObserverConfig, ObserverTotals, RunningSink, SinkConfig, SinkEmulator, SinkLogConfig, TlsConfig,
};

async fn sink(config: SinkConfig) -> RunningSink {
    let observer = Some(ObserverConfig::default());
    SinkEmulator::start(SinkConfig { observer, ..config }).await.unwrap()
}

fn plaintext() -> SinkConfig {
    SinkConfig { tls: TlsConfig::Plaintext, ..SinkConfig::default() }
}

fn client(sink: &RunningSink) -> reqwest::ClientBuilder {
    let ca = Certificate::from_pem(sink.ca_pem().unwrap().as_bytes()).unwrap();
    reqwest::Client::builder().tls_certs_only([ca])
}

fn accepted(sink: &RunningSink) -> (u64, u64, u64) {
    let ObserverTotals { tokens, accepted, tokens_accepted_twice, .. } = sink.totals().unwrap();
    (tokens, accepted, tokens_accepted_twice)
}

#[tokio::test]
async fn a_foreign_client_sends_to_both_services_and_gets_an_access_token_over_tls() {
    let sink = sink(SinkConfig::default()).await;
    let url = format!("https://localhost:{}", sink.addr().port());
    for (client, version) in [
        (client(&sink).build().unwrap(), Version::HTTP_2),
        (client(&sink).http1_only().build().unwrap(), Version::HTTP_11),
    ] {
        let post = |path: &str| client.post(format!("{url}{path}"));
        let push = post(&format!("/3/device/{}", hex(1))).header("apns-id", "my-own").body(ALERT);
        let reply = push.send().await.unwrap();
        assert_eq!((reply.status().as_u16(), reply.version()), (200, version));
        assert_eq!(reply.headers()["apns-id"], "my-own");
        let reply = post(&format!("/3/device/{}", hex(2).to_uppercase())).body(ALERT).send().await.unwrap();
        assert_eq!(reply.headers()["apns-id"].len(), 36);
        let reply = post("/v1/projects/my-app/messages:send").json(&to_token("abc")).send().await.unwrap();
        let name = reply.json::<Value>().await.unwrap()["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("projects/my-app/messages/"), "{name}");
        let reply = post("/v1/projects/p/messages:send").json(&json!({"message": {}})).send().await.unwrap();
        assert_eq!(reply.status(), 400);
        let grant: Value = post("/token").body("grant_type=x").send().await.unwrap().json().await.unwrap();
        assert_eq!((&grant["token_type"], &grant["expires_in"]), (&json!("Bearer"), &json!(3599)));
    }
    assert_eq!(accepted(&sink), (3, 6, 3), "each token twice, once in either version");
    assert_eq!(sink.counts(&hex(2)).accepted, 2);
    assert_eq!(sink.requests(), 10);
    sink.stop().await;
}

#[tokio::test]
async fn ten_thousand_pushes_at_once_are_counted_one_by_one() {
    let sink = sink(plaintext()).await;
    let mut client = Client::connect(sink.addr()).await;
    let mut open = Vec::new();
    for number in 0..10_000 {
        open.push(client.start_push(&hex(number)).await.unwrap());
        if open.len() == 1000 {
            for response in open.drain(..) {
                assert_eq!(finish(response).await.unwrap().status, 200);
            }
        }
    }
    assert_eq!(accepted(&sink), (10_000, 10_000, 0));
}

#[tokio::test]
async fn large_bodies_and_replies_pass_the_windows_of_a_foreign_client() {
    let sink = sink(plaintext()).await;
    let client = Client::connect(sink.addr()).await;
    let body = serde_json::to_vec(&json!({"message": {
        "data": {"padding": "x".repeat(30_000)}, "token": "behind-all-of-it",
    }}));
    let body = body.unwrap();
    for _ in 0..1000 {
        let request: Request<()> = client.request("/v1/projects/p/messages:send").body(()).unwrap();
        let mut ready = client.send.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(request, false).unwrap();
        stream.send_data(body.clone().into(), true).unwrap();
        assert_eq!(finish(response).await.unwrap().status, 200);
    }
    assert_eq!(sink.counts("behind-all-of-it").accepted, 1000);
}

#[tokio::test]
async fn a_token_that_is_sent_to_twice_shows() {
    let sink = sink(plaintext()).await;
    let mut client = Client::connect(sink.addr()).await;
    for number in [1, 2, 2, 3] {
        client.push(&hex(number)).await.unwrap();
    }
    assert_eq!(accepted(&sink), (3, 4, 1));
}

#[tokio::test]
async fn late_answers_leave_in_time_and_all_together() {
    let latency = Some(AnswerLatency::Fixed { ms: 200.0 });
    let sink = sink(SinkConfig { latency, ..plaintext() }).await;
    let mut client = Client::connect(sink.addr()).await;
    let start = Instant::now();
    let mut open = Vec::new();
    for number in 0..500 {
        open.push(client.start_push(&hex(number)).await.unwrap());
    }
    for response in open {
        assert_eq!(finish(response).await.unwrap().status, 200);
    }
    assert_eq!(accepted(&sink).1, 500);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(took < Duration::from_secs(20), "not one after the other: {took:?}");
}

#[tokio::test]
async fn pushes_are_counted_when_they_arrive_however_late_the_answer() {
    let latency = Some(AnswerLatency::Fixed { ms: 3_600_000.0 });
    let sink = sink(SinkConfig { latency, ..plaintext() }).await;
    let mut raw = Raw::connect(sink.addr()).await;
    raw.push(1, &hex(1)).await;
    raw.ping().await;
    assert_eq!(accepted(&sink), (1, 1, 0));
}

#[tokio::test]
async fn a_sink_that_stops_says_so() {
    let sink = sink(plaintext()).await;
    let mut raw = Raw::connect(sink.addr()).await;
    raw.push(1, &hex(1)).await;
    raw.read_stream(1).await;
    let (_, frames) = tokio::join!(sink.stop(), raw.read_to_end());
    let last = frames.last().unwrap();
    assert_eq!((last.kind, last.number(), &last.payload[4..]), (GOAWAY, 1, [0; 4].as_slice()));
}

#[tokio::test]
async fn answers_to_chosen_devices_are_noted_with_their_time_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("answers");
    let log = Some(SinkLogConfig { path: path.clone(), token_prefix: hex(7)[..60].to_owned() });
    let sink = sink(SinkConfig { log, ..SinkConfig::default() }).await;
    let (url, client) = (format!("https://localhost:{}", sink.addr().port()), client(&sink).build().unwrap());
    let micros = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let before = micros();
    let other = "f".repeat(64);
    for token in [hex(7), other] {
        client.post(format!("{url}/3/device/{token}")).body(ALERT).send().await.unwrap();
    }
    let noted = std::fs::read_to_string(path).unwrap();
    let (token, at) = noted.trim_end().split_once(' ').unwrap();
    assert_eq!(token, hex(7), "{noted}");
    assert!((before..=micros()).contains(&at.parse().unwrap()), "{noted}");
    sink.stop().await;
}
