//! Responses: their order, their bodies, their limits.

use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderName, HeaderValue, Response};
use stentor_http2::{Limits, Reply, RequestBatch};

use crate::frames::listen;
use crate::server::{self, Tls};
use crate::support::{batch, batch_of, client, quick, requests, statuses, within};

fn bodies(replies: Vec<Reply>) -> Vec<String> {
    let body = |reply| match reply {
        Reply::Answered(response) => String::from_utf8(response.body().to_vec()).expect("text"),
        other => panic!("{other:?}"),
    };
    replies.into_iter().map(body).collect()
}

#[tokio::test]
async fn every_request_is_answered_in_its_place() {
    let port = server::start(server::echo).await;
    let client = client(port, quick());
    let replies = within(20, client.send(batch(3_000))).await;
    assert_eq!(bodies(replies), (0..3_000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(client.stats().inflight, 0);
    assert_eq!(client.stats().waiting, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_side_by_side_over_tls_get_their_own_answers() {
    let (listener, port) = listen().await;
    let tls = Tls::new(&["h2"]);
    tls.serve(listener);
    let client = tls.client(port, quick());
    let sizes = [1, 700, 0, 30, 2_000];
    let all = futures_util::future::join_all(sizes.map(|size| client.send(batch(size))));
    for (size, replies) in sizes.into_iter().zip(within(30, all).await) {
        assert_eq!(bodies(replies), (0..size).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn both_versions_of_tls_carry_requests_and_bodies_larger_than_a_record() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (listener, port) = listen().await;
        let tls = Tls::speaking(&["h2"], &[version]);
        tls.serve(listener);
        let mut requests = requests(300);
        requests[7].body = vec![b'x'; 50_000].into();
        let limits = Limits { max_reply_body_bytes: 100_000, ..quick() };
        let replies = bodies(within(30, tls.client(port, limits).send(batch_of(requests))).await);
        assert_eq!((replies[6].as_str(), replies[7].len(), replies.len()), ("6", 50_000, 300));
    }
}

#[tokio::test]
async fn constant_and_own_headers_arrive_and_reply_headers_come_back() {
    let port = server::start(|request, _, mut respond: SendResponse<Bytes>| {
        let seen = |name| request.headers()[name].clone();
        let head = Response::builder()
            .status(418)
            .header(
                "both",
                seen("same").to_str().expect("text").to_owned() + seen("own").to_str().expect("text"),
            )
            .header("path", request.uri().path());
        respond.send_response(head.body(()).expect("a head"), true).expect("open");
    })
    .await;
    let mut requests = requests(1);
    let pair = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    requests[0].headers = vec![pair("own", "b")];
    let batch = RequestBatch { constant: vec![pair("same", "a")], ..batch_of(requests) };
    let replies = within(20, client(port, quick()).send(batch)).await;
    let [Reply::Answered(response)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((response.status, response.header("both")), (418, Some(&HeaderValue::from_static("ab"))));
    assert_eq!(response.header("path"), Some(&HeaderValue::from_static("/0")));
    assert!(!response.truncated && response.body().is_empty());
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_read_to_its_end() {
    let port = server::start(|_, _, mut respond: SendResponse<Bytes>| {
        tokio::spawn(async move {
            let mut stream = respond.send_response(Response::new(()), false).expect("open");
            for piece in ["one ", "two ", "three"] {
                tokio::time::sleep(Duration::from_millis(20)).await;
                stream.send_data(Bytes::from_static(piece.as_bytes()), piece == "three").expect("open");
            }
        });
    })
    .await;
    let replies = within(20, client(port, quick()).send(batch(5))).await;
    assert_eq!(bodies(replies), ["one two three"; 5]);
}

#[tokio::test]
async fn an_oversized_body_is_cut_and_the_rest_is_drained() {
    let port = server::start(|_, _, mut respond: SendResponse<Bytes>| {
        let mut stream = respond.send_response(Response::new(()), false).expect("open");
        stream.send_data(Bytes::from(vec![b'x'; 40_000]), true).expect("open");
    })
    .await;
    let limits = Limits { max_reply_body_bytes: 1_000, ..quick() };
    let client = client(port, limits);
    for reply in within(20, client.send(batch(50))).await {
        let Reply::Answered(response) = reply else { panic!("{reply:?}") };
        assert_eq!((response.status, response.body().len(), response.truncated), (200, 1_000, true));
    }
    assert_eq!(client.stats().connects, 1);
}

#[tokio::test]
async fn an_endless_body_is_given_up_and_its_status_kept() {
    let port = server::start(|_, _, mut respond: SendResponse<Bytes>| {
        tokio::spawn(async move {
            let mut stream = respond.send_response(Response::new(()), false).expect("open");
            loop {
                stream.reserve_capacity(16_000);
                let granted = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                let Some(Ok(bytes)) = granted else { return };
                if stream.send_data(Bytes::from(vec![b'x'; bytes]), false).is_err() {
                    return;
                }
            }
        });
    })
    .await;
    let limits = Limits { max_reply_drain_bytes: 100_000, ..quick() };
    let replies = within(20, client(port, limits).send(batch(2))).await;
    assert_eq!(statuses(&replies), [200, 200]);
}

#[tokio::test]
async fn a_body_that_never_ends_leaves_its_status() {
    let port = server::start(|_, _, mut respond: SendResponse<Bytes>| {
        tokio::spawn(async move {
            let mut stream = respond.send_response(Response::new(()), false).expect("open");
            stream.send_data(Bytes::from_static(b"half"), false).expect("open");
            std::future::poll_fn(|cx| stream.poll_reset(cx)).await.expect("reset");
        });
    })
    .await;
    let limits = Limits { request_timeout_ms: 200, ..quick() };
    let replies = within(20, client(port, limits).send(batch(1))).await;
    let [Reply::Answered(response)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((response.body(), response.truncated), (&b"half"[..], true));
}
