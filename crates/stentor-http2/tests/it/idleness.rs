//! Idle connections, and connections that died silently.

use std::time::Duration;

use stentor_http2::{Client, Fault, Limits};
use tokio::time::Instant;

use crate::frames::{Peer, listen};
use crate::server;
use crate::support::{batch, client, fault, quick, statuses, within};

/// Sends some requests, nothing for a while, and ten at once; returns the duration of the latter.
async fn burst_after(client: &Client, before: usize, idle: Duration) -> Duration {
    assert_eq!(statuses(&client.send(batch(before)).await), vec![200; before]);
    tokio::time::sleep(idle).await;
    let begun = Instant::now();
    assert_eq!(statuses(&client.send(batch(10)).await), [200; 10]);
    begun.elapsed()
}

#[tokio::test]
async fn r4_a_black_hole_is_found_by_ping() {
    let (listener, port) = listen().await;
    let limits =
        Limits { ping_interval_ms: 100, ping_timeout_ms: 100, request_timeout_ms: 60_000, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        peer.requests(2).await;
        peer
    };
    let begun = Instant::now();
    let (replies, _silent) = within(20, async { tokio::join!(client.send(batch(2)), server) }).await;
    replies.iter().for_each(|reply| assert_eq!(fault(reply), &Fault::DeadConnection));
    assert_eq!(statuses(&replies), [1, 1]);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_slow_peer_that_answers_pings_is_waited_for() {
    let (listener, port) = listen().await;
    let limits = Limits { ping_interval_ms: 20, ping_timeout_ms: 200, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let seen = peer.requests(1).await;
        // Answers PINGs while it delays its response.
        let thinking = tokio::time::timeout(Duration::from_millis(600), peer.next()).await;
        assert!(thinking.is_err(), "{thinking:?}");
        peer.answer(seen[0].0).await;
        peer
    };
    let (replies, _peer) = within(20, async { tokio::join!(client.send(batch(1)), server) }).await;
    assert_eq!(statuses(&replies), [200]);
}

#[tokio::test]
async fn r4_after_long_idleness_a_dead_connection_is_replaced_before_anything_is_lost() {
    let (listener, port) = listen().await;
    let limits = Limits { probe_after_idle_ms: 50, ping_timeout_ms: 60_000, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut first = Peer::accept(&listener, 100).await;
        let one = first.requests(1).await;
        first.answer(one[0].0).await;
        // From here on the first connection is half open: it neither reads nor writes.
        let mut second = Peer::accept(&listener, 100).await;
        let rest = second.requests(10).await;
        for (stream, _) in &rest {
            second.answer(*stream).await;
        }
        (first, second)
    };
    let sender = burst_after(&client, 1, Duration::from_millis(100));
    let (took, _peers) = within(20, async { tokio::join!(sender, server) }).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn r4_a_burst_after_little_more_than_a_second_costs_nothing_though_every_connection_is_half_open() {
    const CONNECTIONS: usize = 3;
    let (listener, port) = listen().await;
    // The default limits otherwise; all permitted connections are open.
    let client = client(port, Limits { max_connections: CONNECTIONS, ..Limits::default() });
    let server = async {
        let mut half_open = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut peer = Peer::accept(&listener, 1).await;
            let one = peer.requests(1).await;
            half_open.push((peer, one[0].0));
        }
        for (peer, stream) in &mut half_open {
            peer.answer(*stream).await;
        }
        let mut fresh = Peer::accept(&listener, 100).await;
        for (stream, _) in fresh.requests(10).await {
            fresh.answer(stream).await;
        }
        (half_open, fresh)
    };
    let sender = burst_after(&client, CONNECTIONS, Duration::from_millis(1_100));
    let (took, _peers) = within(20, async { tokio::join!(sender, server) }).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_lives_is_used_again_after_idleness_and_no_other_is_opened() {
    let port = server::start(server::echo).await;
    let client = client(port, Limits { probe_after_idle_ms: 20, max_connections: 64, ..quick() });
    for _ in 0..15 {
        assert_eq!(statuses(&within(20, client.send(batch(1))).await), [200]);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    // A machine that stalls for a fifth of a second may cost one.
    assert!(client.stats().connects <= 2, "{:?}", client.stats());
}
