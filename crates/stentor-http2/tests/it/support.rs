//! Shared helpers of the tests: batches, limits, and access to replies.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use stentor_http2::{Client, Endpoint, Fault, Keep, Limits, Reply, Request, RequestBatch, Response, Roots};

/// Limits short enough for a test, without slow start by silence.
pub(crate) fn quick() -> Limits {
    Limits {
        max_connections: 4,
        connect_timeout_ms: 2_000,
        request_timeout_ms: 10_000,
        ping_interval_ms: 5_000,
        slow_start_inflight_requests: 0,
        ..Limits::default()
    }
}

/// A client without TLS to a port of this machine.
pub(crate) fn client(port: u16, limits: Limits) -> Client {
    client_that_halts(port, limits, |_| false)
}

pub(crate) fn client_that_halts(port: u16, limits: Limits, halts: fn(&Response) -> bool) -> Client {
    let roots = Roots::Pem(Bytes::new());
    let endpoint = Endpoint { roots, cleartext: true, ..Endpoint::new("127.0.0.1", port) };
    Client::that_halts(&endpoint, limits, halts).expect("usable endpoint")
}

/// Requests, of which number i has the body `i`.
pub(crate) fn requests(count: usize) -> Vec<Request> {
    let request = |index: usize| Request {
        path: PathAndQuery::try_from(format!("/{index}")).expect("a path"),
        headers: Vec::new(),
        body: Bytes::from(index.to_string()),
    };
    (0..count).map(request).collect()
}

/// A batch of these requests, whose responses are kept.
pub(crate) fn batch_of(requests: Vec<Request>) -> RequestBatch {
    let (constant, requests) = (Vec::new(), Arc::new(requests));
    RequestBatch { constant, path: None, requests, start_within: None, keep: Keep::All, repeated: false }
}

/// A batch in which request i has the body `i`.
pub(crate) fn batch(count: usize) -> RequestBatch {
    batch_of(requests(count))
}

/// Fails the test if it hangs.
pub(crate) async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), work).await.expect("ends in time")
}

pub(crate) fn statuses(replies: &[Reply]) -> Vec<u16> {
    let status = |reply: &Reply| match reply {
        Reply::Answered(response) => response.status,
        Reply::NotSent(_) => 0,
        Reply::Unanswered(_) => 1,
    };
    replies.iter().map(status).collect()
}

pub(crate) fn fault(reply: &Reply) -> &Fault {
    match reply {
        Reply::NotSent(fault) | Reply::Unanswered(fault) => fault,
        Reply::Answered(response) => panic!("answered {}", response.status),
    }
}
