//! Foreign servers in processes of their own: each request gets its own response, exactly once.

mod process;

use std::sync::atomic::Ordering;

use stentor_http2::{Client, Limits, Reply, Request, Response};

use crate::foreign::process::{Foreign, Kind, Options, numbers};
use crate::server;
use crate::support::{batch_of, client, quick, requests, within};

const REQUESTS: usize = 3_000;
/// Every n-th request has a large body.
const LARGE_EVERY: usize = 500;
/// More than any initial window of the servers or of this client.
const LARGE_BYTES: usize = 300_000;
/// Requests on a connection after which a server ends it.
const LEAVE_AFTER: usize = 300;

const CONNECTIONS: usize = 4;

/// As many connections as the few streams on each make useful, and room for the large bodies. The timeouts are long, because these tests do
/// not measure time.
fn limits() -> Limits {
    Limits {
        max_connections: CONNECTIONS,
        initial_inflight_requests: 200,
        connect_timeout_ms: 30_000,
        request_timeout_ms: 60_000,
        late_timeout_ms: 60_000,
        ping_interval_ms: 60_000,
        max_reply_body_bytes: 2 * LARGE_BYTES,
        max_resends: 50,
        ..quick()
    }
}

/// Requests with distinct bodies, some of them large.
fn mixed() -> Vec<Request> {
    let mut requests = requests(REQUESTS);
    for (index, request) in requests.iter_mut().enumerate().filter(|(index, _)| index % LARGE_EVERY == 7) {
        request.body = format!("{index} ").bytes().cycle().take(LARGE_BYTES).collect::<Vec<u8>>().into();
    }
    requests
}

fn answered(reply: &Reply) -> &Response {
    let Reply::Answered(response) = reply else { panic!("{reply:?}") };
    assert!(response.status == 200 && !response.truncated, "{response:?}");
    response
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.header(name).expect("the header").to_str().expect("text")
}

/// Sends requests and checks that each response holds the body of its own request.
async fn echoed(client: &Client) -> Vec<Reply> {
    let sent = mixed();
    let replies = within(120, client.send(batch_of(sent.clone()))).await;
    for (request, reply) in sent.iter().zip(&replies) {
        let same = answered(reply).body() == request.body;
        assert!(same, "{} got the answer of another: {reply:?}", request.path);
    }
    replies
}

/// Checks the headers, long and short, that our own servers derive from each request.
fn derived(replies: &[Reply]) {
    for (index, reply) in replies.iter().enumerate() {
        let (response, path) = (answered(reply), format!("/{index}"));
        assert_eq!(header(response, "x-path"), path);
        assert_eq!(header(response, "x-long"), path.repeat(200));
    }
}

/// Queries one of our own servers for the number of processed requests, of connections, and of failures or resets.
async fn totals(client: &Client) -> [usize; 3] {
    let mut ask = requests(1);
    ask[0].path = "/totals".parse().expect("a path");
    let replies = within(20, client.send(batch_of(ask))).await;
    let text = String::from_utf8_lossy(answered(&replies[0]).body()).into_owned();
    numbers(&text)
}

/// A server with few streams and small windows: no request is rejected and none sent twice.
async fn keeps_to_the_limits(kind: Kind) {
    for tls in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let options = Options { tls, max_streams: 10, window_bytes: 16_383, leave_after: 0, plain: false };
        let Some(server) = Foreign::start(kind, &options).await else { return };
        assert_eq!(server.negotiates().await, tls.version);
        let client = server.client(limits());
        let replies = echoed(&client).await;
        let stats = client.stats();
        assert_eq!(
            (stats.connects, stats.goaways, stats.resets, stats.resends),
            (CONNECTIONS as u64, 0, 0, 0)
        );
        if kind == Kind::Nghttpd {
            replies
                .iter()
                .for_each(|reply| assert!(header(answered(reply), "server").starts_with("nghttpd")));
        } else {
            derived(&replies);
            // The connection that only checked the version of TLS may be counted or not.
            let [processed, connections, failed] = totals(&client).await;
            assert_eq!((processed, failed), (REQUESTS, 0));
            assert!((CONNECTIONS..=CONNECTIONS + 1).contains(&connections), "{connections} connections");
        }
        within(20, client.close()).await;
    }
}

/// A server that ends each connection with a GOAWAY: exactly the requests that it had not processed are sent again.
async fn follows_goaways(kind: Kind) {
    for tls in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let options =
            Options { tls, max_streams: 50, window_bytes: 65_535, leave_after: LEAVE_AFTER, plain: false };
        let Some(server) = Foreign::start(kind, &options).await else { return };
        let client = server.client(limits());
        derived(&echoed(&client).await);
        let [processed, connections, failed] = totals(&client).await;
        assert_eq!((processed, failed), (REQUESTS, 0));
        let stats = client.stats();
        assert!(connections >= REQUESTS / LEAVE_AFTER / 2, "{connections} connections {stats:?}");
        assert!(stats.goaways as usize >= REQUESTS / LEAVE_AFTER / 2, "{stats:?}");
        within(20, client.close()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nghttpd_gets_no_more_than_it_allows_and_answers_each_request() {
    keeps_to_the_limits(Kind::Nghttpd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nghttpd_without_a_header_table_and_with_padding_answers_each_request() {
    let tls = &rustls::version::TLS13;
    let options = Options { tls, max_streams: 100, window_bytes: 65_535, leave_after: 0, plain: true };
    let Some(server) = Foreign::start(Kind::Nghttpd, &options).await else { return };
    let client = server.client(limits());
    echoed(&client).await;
    assert_eq!((client.stats().resets, client.stats().resends), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_go_gets_no_more_than_it_allows_and_answers_each_request() {
    keeps_to_the_limits(Kind::Go).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_go_processes_each_request_once_though_it_leaves_again_and_again() {
    follows_goaways(Kind::Go).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn netty_gets_no_more_than_it_allows_and_answers_each_request() {
    keeps_to_the_limits(Kind::Netty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn netty_processes_each_request_once_though_it_leaves_again_and_again() {
    follows_goaways(Kind::Netty).await;
}

/// Pushes, one in a hundred to a dead token.
fn pushes() -> Vec<Request> {
    let push = |index: usize, request: &mut Request| {
        let kind = if index.is_multiple_of(100) { "dead" } else { "0000" };
        request.path = format!("/3/device/{kind}{index:060x}").parse().expect("a path");
        request.body = format!(r#"{{"aps":{{"alert":"{index}"}}}}"#).into();
    };
    let mut requests = requests(REQUESTS);
    requests.iter_mut().enumerate().for_each(|(index, request)| push(index, request));
    requests
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushys_mock_of_apns_gets_each_push_once_and_its_refusals_are_read() {
    for tls in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let options = Options { tls, max_streams: 10, window_bytes: 65_535, leave_after: 0, plain: false };
        let Some(mut server) = Foreign::start(Kind::Mock, &options).await else { return };
        assert_eq!(server.negotiates().await, tls.version);
        let client = server.client(limits());
        for (index, reply) in within(120, client.send(batch_of(pushes()))).await.iter().enumerate() {
            let Reply::Answered(response) = reply else { panic!("{index}: {reply:?}") };
            let body = String::from_utf8_lossy(response.body());
            let dead = response.status == 410 && body.contains(r#""reason":"Unregistered""#);
            let right =
                if index.is_multiple_of(100) { dead } else { response.status == 200 && body.is_empty() };
            assert!(right && !response.truncated, "{index}: {response:?} {body}");
            assert_eq!(header(response, "apns-id").len(), 36);
        }
        assert_eq!(server.pushes().await, [REQUESTS - REQUESTS / 100, REQUESTS / 100, REQUESTS]);
        assert_eq!((client.stats().resets, client.stats().resends), (0, 0));
        within(20, client.close()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_of_the_h2_crate_processes_each_request_once_though_it_leaves_again_and_again() {
    let (port, processed) = server::start_leaving(LEAVE_AFTER).await;
    let client = client(port, limits());
    echoed(&client).await;
    assert_eq!(processed.load(Ordering::Relaxed), REQUESTS);
    let stats = client.stats();
    assert!(stats.goaways as usize >= REQUESTS / LEAVE_AFTER / 2 && stats.resets == 0, "{stats:?}");
}
