//! The number of requests in flight, observed from outside.

use stentor_http2::{Client, Fault, Limits, Reply, RequestBatch};

use crate::frames::{Peer, listen};
use crate::support::{batch, client, client_that_halts, quick, statuses, within};

/// Sends `count` requests and closes the client after the replies.
async fn send_all(client: &Client, count: usize) -> Vec<Reply> {
    let replies = client.send(batch(count)).await;
    client.close().await;
    replies
}

/// Answers the requests in `first` and all that follow; returns the number of the latter.
async fn answer_all(mut peer: Peer, first: Vec<(u32, String)>) -> usize {
    for (stream, _) in first {
        peer.answer(stream).await;
    }
    peer.serve().await.len()
}

#[tokio::test]
async fn no_more_are_in_flight_than_the_limit_which_grows_with_answers() {
    let (listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 4, max_inflight_requests: 64, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        let first = peer.requests(4).await;
        assert_eq!(client.stats().inflight, 4);
        answer_all(peer, first).await
    };
    let (replies, _) = within(20, async { tokio::join!(send_all(&client, 500), server) }).await;
    assert_eq!(statuses(&replies), [200; 500]);
    assert!((5..=64).contains(&client.stats().inflight_limit), "{:?}", client.stats());
}

#[tokio::test]
async fn a_peer_that_has_not_answered_yet_gets_more_and_no_more_than_silence_allows() {
    let (listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 10, slow_start_inflight_requests: 35, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        let silent = peer.requests(35).await;
        assert_eq!((client.stats().inflight, client.stats().inflight_limit), (35, 35));
        answer_all(peer, silent).await
    };
    let (replies, seen) = within(20, async { tokio::join!(send_all(&client, 500), server) }).await;
    assert_eq!((statuses(&replies), seen), (vec![200; 500], 465));
}

#[tokio::test]
async fn slowing_down_halves_the_limit_that_stats_show() {
    let (_listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 100, ..quick() };
    let client = client(port, limits);
    client.slow_down();
    assert_eq!(client.stats().inflight_limit, 50);
}

fn was_told_to_wait(reply: &Reply) -> bool {
    matches!(reply, Reply::NotSent(Fault::Halted(word)) if word.response().status == 429)
}

#[tokio::test]
async fn after_the_word_to_wait_only_those_are_seen_that_were_in_flight() {
    let (listener, port) = listen().await;
    let limits = Limits { initial_inflight_requests: 100, ..quick() };
    let client = client_that_halts(port, limits, |response| response.status == 429);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        let first = peer.requests(100).await;
        for (stream, _) in first {
            peer.answer_with(stream, "429").await;
        }
        peer.serve().await
    };
    let sender = async {
        let (large, small) = tokio::join!(client.send(batch(20_000)), client.send(batch(1)));
        let late = client.send(batch(3)).await;
        client.close().await;
        (large, small, late)
    };
    let ((large, small, late), seen) = within(20, async { tokio::join!(sender, server) }).await;
    // Fewer than ten such responses do not halt the client, and each makes room for another request or two.
    assert!(seen.len() <= 2 * 9, "{} came after the word", seen.len());
    let halted = [&large, &small].into_iter().flatten().filter(|reply| was_told_to_wait(reply)).count();
    assert_eq!(halted, 20_001 - 100 - seen.len());
    assert!(late.iter().all(was_told_to_wait), "nor what was handed over a little later: {late:?}");
}

#[tokio::test]
async fn answers_to_what_failed_before_are_no_word_to_wait() {
    let (listener, port) = listen().await;
    let client = client_that_halts(port, quick(), |response| response.status == 429);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        for (stream, _) in peer.requests(50).await {
            peer.answer_with(stream, "429").await;
        }
        peer.serve().await.len()
    };
    let sender = async {
        let repeated = RequestBatch { repeated: true, ..batch(50) };
        assert_eq!(statuses(&client.send(repeated).await), [429; 50]);
        let replies = client.send(batch(20)).await;
        client.close().await;
        replies
    };
    let (replies, seen) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!((statuses(&replies), seen), (vec![200; 20], 20));
}

#[tokio::test]
async fn a_while_after_the_word_to_wait_requests_go_again() {
    let (listener, port) = listen().await;
    let client = client_that_halts(port, quick(), |response| response.status == 429);
    let server = async {
        let mut peer = Peer::accept(&listener, 1_000).await;
        for (stream, _) in peer.requests(10).await {
            peer.answer_with(stream, "429").await;
        }
        peer.serve().await.len()
    };
    let sender = async {
        assert_eq!(statuses(&client.send(batch(10)).await), [429; 10]);
        let mut replies = client.send(batch(1)).await;
        while was_told_to_wait(&replies[0]) {
            tokio::task::yield_now().await;
            replies = client.send(batch(1)).await;
        }
        client.close().await;
        replies
    };
    let (replies, seen) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!((statuses(&replies), seen), (vec![200], 1));
}
