//! TLS on the API's own listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use reqwest::{Client, ClientBuilder, Method};
use serde_json::json;

use crate::harness::{Reading, Server, Tenant, server_with};

/// A certificate signed by itself, and its key, as PEM.
struct Made {
    cert: String,
    key: String,
}

impl Made {
    fn new() -> Self {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self { cert: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    fn trusted(&self) -> reqwest::Certificate {
        reqwest::Certificate::from_pem(self.cert.as_bytes()).expect("a certificate")
    }
}

/// Begins a client that trusts only these certificates.
fn trusting<'a>(made: impl IntoIterator<Item = &'a Made>) -> ClientBuilder {
    Client::builder().no_proxy().tls_certs_only(made.into_iter().map(Made::trusted))
}

/// Starts a server with the first certificate, and a client that trusts all of them.
async fn server(all: &[Made]) -> Server {
    let mut server = server_with(|config| {
        config.api.tls_cert_file = config.data_dir.join("cert.pem");
        config.api.tls_key_file = config.data_dir.join("key.pem");
        config.api.tls_check_interval_seconds = 1;
        std::fs::write(&config.api.tls_cert_file, &all[0].cert).expect("written");
        std::fs::write(&config.api.tls_key_file, &all[0].key).expect("written");
    })
    .await;
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    server.url = format!("https://localhost:{port}");
    server.client = trusting(all).build().expect("a client");
    server
}

/// Returns true if a new connection gets this certificate.
async fn shows(server: &Server, made: &Made) -> bool {
    let client = trusting([made]).build().expect("a client");
    client.get(format!("{}/healthz", server.url)).send().await.is_ok()
}

async fn until_shown(server: &Server, made: &Made) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !shows(server, made).await {
        assert!(Instant::now() < patience, "the certificate was never taken over");
    }
}

async fn metrics(server: &Server) -> String {
    server.open(Method::GET, "/metrics").read().await.body.as_str().expect("text").to_owned()
}

#[tokio::test]
async fn tls_is_served_from_files() {
    let server = server(&[Made::new()]).await;
    let answer = server.client.get(format!("{}/healthz", server.url)).send().await.expect("an answer");
    assert_eq!((answer.version(), answer.status().as_u16()), (reqwest::Version::HTTP_2, 200));
    let client = server.open(Method::GET, "/healthz").version(reqwest::Version::HTTP_11);
    assert_eq!(client.read().await.status, 200);
    assert!(metrics(&server).await.contains("stentor_tls_certificate_left_seconds "));
}

#[tokio::test]
async fn a_call_of_grpc_goes_over_tls_on_the_protocol_that_alpn_chose() {
    let server = server(&[Made::new()]).await;
    let call = server.open(Method::POST, "/grpc.health.v1.Health/Check").body(vec![0; 5]);
    let answer = call.header("content-type", "application/grpc").send().await.expect("an answer");
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    let body = reqwest::Body::from(answer).collect().await.expect("a body");
    assert_eq!(body.trailers().expect("trailers")["grpc-status"], "0");
    assert_eq!(body.to_bytes()[..], [0, 0, 0, 0, 2, 0x08, 1], "it serves");
}

#[tokio::test]
async fn a_bad_pair_is_refused_at_a_signal_and_the_former_stays_in_use() {
    let all = [Made::new(), Made::new()];
    let server = server(&all).await;
    let cert_file = server.folder.path().join("cert.pem");
    for (number, bad) in ["nonsense", &all[1].cert].into_iter().enumerate() {
        std::fs::write(&cert_file, bad).expect("written");
        server.reload.send(()).await.expect("the server listens");
        let metric = format!("stentor_tls_certificates_refused_total {}", number + 1);
        while !metrics(&server).await.contains(&metric) {}
        assert!(shows(&server, &all[0]).await && !shows(&server, &all[1]).await);
    }
    std::fs::write(server.folder.path().join("key.pem"), &all[1].key).expect("written");
    server.reload.send(()).await.expect("the server listens");
    until_shown(&server, &all[1]).await;
    assert!(!shows(&server, &all[0]).await, "the former is not shown any more");
}

/// Load during the changes of certificates: kept connections and fresh ones.
struct Load {
    over: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    workers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn begin(server: &Server, tenant: &Tenant, all: &[Made]) -> Self {
        let (finished, requests) = (Arc::new(AtomicBool::default()), Arc::new(AtomicU64::default()));
        let fresh = || trusting(all).pool_max_idle_per_host(0);
        let clients = [trusting(all), trusting(all).http1_only(), fresh(), fresh().http1_only()];
        let workers = clients.map(|client| {
            let client = client.build().expect("a client");
            let (finished, requests) = (finished.clone(), requests.clone());
            let (url, key) = (format!("{}/v1/devices", server.url), tenant.key.clone());
            tokio::spawn(async move {
                while !finished.load(Ordering::Relaxed) {
                    let token = format!("token-{}", requests.fetch_add(1, Ordering::Relaxed));
                    let body = json!({"platform": "android", "token": token});
                    let read = client.post(&url).bearer_auth(&key).json(&body).read().await;
                    assert_eq!(read.status, 201, "{read:?}");
                }
            })
        });
        Self { over: finished, asked: requests, workers: workers.into() }
    }

    /// Waits until this number of further requests have begun.
    async fn goes_on(&self, count: u64) {
        let from = self.asked.load(Ordering::Relaxed);
        while self.asked.load(Ordering::Relaxed) < from + count {
            assert!(self.workers.iter().all(|worker| !worker.is_finished()), "a request failed");
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.expect("no request failed");
        }
    }
}

#[tokio::test]
async fn r18_a_certificate_changes_under_load_without_a_restart_and_no_request_fails() {
    let all: Vec<Made> = (0..5).map(|_| Made::new()).collect();
    let server = server(&all).await;
    let tenant = server.tenant().await;
    let load = Load::begin(&server, &tenant, &all);
    for (number, made) in all.iter().enumerate().skip(1) {
        std::fs::write(server.folder.path().join("cert.pem"), &made.cert).expect("written");
        load.goes_on(20).await;
        std::fs::write(server.folder.path().join("key.pem"), &made.key).expect("written");
        // Every other change is found without a signal.
        if number % 2 == 0 {
            server.reload.send(()).await.expect("the server listens");
        }
        until_shown(&server, made).await;
        load.goes_on(20).await;
    }
    load.end().await;
    let text = metrics(&server).await;
    assert!(text.contains("stentor_tls_certificates_replaced_total 4"), "{text}");
    assert!(text.contains("stentor_tls_certificate_left_seconds "), "{text}");
}
