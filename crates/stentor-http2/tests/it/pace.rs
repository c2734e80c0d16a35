//! The number of requests in flight, seen from outside.

use stentor_http2::Limits;

use crate::frames::{Peer, listen};
use crate::support::{batch, client, quick, statuses, within};

#[tokio::test]
async fn no_more_are_in_flight_than_the_limit_which_grows_with_answers() {
    let (listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 4, max_inflight_requests: 64, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        let first = peer.requests(4).await;
        assert_eq!(client.stats().inflight, 4);
        for (stream, _) in first {
            peer.answer(stream).await;
        }
        peer.serve().await.len()
    };
    let sender = async {
        let replies = client.send(batch(500)).await;
        client.close().await;
        replies
    };
    let (replies, _) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!(statuses(&replies), [200; 500]);
    assert!((5..=64).contains(&client.stats().inflight_limit), "{:?}", client.stats());
}

#[tokio::test]
async fn slowing_down_halves_the_limit_that_stats_show() {
    let (_listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 100, ..quick() };
    let client = client(port, limits);
    client.slow_down();
    assert_eq!(client.stats().inflight_limit, 50);
}
