//! Faults, and the reply that each of them leads to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stentor_http2::{Endpoint, Fault, Limits, Line, Reply, Request, RequestBatch, Requests, Roots};

use crate::frames::{CANCEL, Event, INTERNAL_ERROR, Peer, REFUSED_STREAM, deserted_port, listen};
use crate::server::Tls;
use crate::support::{batch, client, fault, quick, requests, statuses, within};

fn numbers(range: std::ops::Range<usize>) -> BTreeSet<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn r5_streams_above_the_last_id_of_a_goaway_go_again_and_no_others() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut first = Peer::accept(&listener, 100).await;
        let seen = first.requests(10).await;
        first.go_away(seen[3].0).await;
        let mut second = Peer::accept(&listener, 100).await;
        let again = second.requests(6).await;
        for (stream, _) in &seen[..4] {
            first.answer(*stream).await;
        }
        for (stream, _) in &again {
            second.answer(*stream).await;
        }
        (seen, again, second)
    };
    let (replies, (seen, again, _second)) =
        within(20, async { tokio::join!(client.send(batch(10)), server) }).await;
    assert_eq!(statuses(&replies), [200; 10]);
    let unprocessed: BTreeSet<_> = seen[4..].iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(again.into_iter().map(|(_, body)| body).collect::<BTreeSet<_>>(), unprocessed);
    assert_eq!((client.stats().goaways, client.stats().resends), (1, 6));
}

#[tokio::test]
async fn a_request_that_waits_too_long_for_its_stream_is_never_sent() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, request_timeout_ms: 600, ..quick() });
    let late = RequestBatch { start_within: Some(Duration::from_millis(300)), ..batch(3) };
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        let seen = peer.requests(1).await;
        let mut more = 0;
        while let Some(event) = peer.next().await {
            if matches!(event, Event::Reset { code: CANCEL, .. }) {
                break;
            }
            more += u32::from(matches!(event, Event::Request { .. }));
        }
        (seen.len(), more)
    };
    let (replies, seen) = within(20, async { tokio::join!(client.send(late), server) }).await;
    assert_eq!(seen, (1, 0), "only the first request had a stream");
    let unsent = replies.iter().filter(|reply| matches!(reply, Reply::NotSent(Fault::QueueTimeout))).count();
    assert_eq!(unsent, 2);
}

#[tokio::test]
async fn what_is_late_is_waited_for_apart_from_what_was_answered() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let seen = peer.requests(10).await;
        for (stream, _) in &seen[1..9] {
            peer.answer(*stream).await;
        }
        (peer, seen)
    };
    let sending = client.start(batch(10));
    let forever = std::future::pending;
    let (part, (mut peer, seen)) = within(20, async { tokio::join!(sending.most(forever()), server) }).await;
    let part = part.expect("most are there");
    assert_eq!((part.missing, part.replies.others().count()), (vec![0, 9], 8));
    let late = async {
        peer.answer(seen[0].0).await;
        peer.reset(seen[9].0, REFUSED_STREAM).await;
        peer
    };
    let (replies, _peer) = within(20, async { tokio::join!(sending.all(forever()), late) }).await;
    assert!(
        matches!(&replies.into_vec()[9], Reply::NotSent(_)),
        "its request is forgotten and does not go again"
    );
}

#[tokio::test]
async fn a_slow_answer_on_a_connection_of_one_stream_is_waited_for_while_others_are_answered() {
    const REQUESTS: usize = 300;
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 4, late_timeout_ms: 100, ..quick() });
    let server = async {
        let mut slow = Peer::accept(&listener, 1).await;
        let (held, _) = slow.requests(1).await.remove(0);
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(Peer::accept(&listener, 1).await);
        }
        for _ in 0..REQUESTS / others.len() {
            for peer in &mut others {
                let (stream, _) = peer.requests(1).await.remove(0);
                peer.answer(stream).await;
            }
            // All of them together take ten times as long as a late request keeps its stream where most are late.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        slow.answer(held).await;
        (slow, others)
    };
    let (replies, _peers) =
        within(20, async { tokio::join!(client.send(batch(REQUESTS + 1)), server) }).await;
    assert_eq!(statuses(&replies), [200; REQUESTS + 1]);
    assert_eq!((client.stats().timeouts, client.stats().resends), (0, 0));
}

#[tokio::test]
async fn requests_that_are_overtaken_hold_back_no_others() {
    let (listener, port) = listen().await;
    let client =
        client(port, Limits { initial_inflight_requests: 100, max_inflight_requests: 100, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 10_000).await;
        for number in 0..1_000 {
            let (stream, _) = peer.requests(1).await.remove(0);
            if number % 6 > 0 {
                peer.answer(stream).await;
            }
            // A round of responses takes longer than the minimum age of a late request.
            if number % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        peer
    };
    let sending = client.start(batch(1_000));
    let never = std::future::pending();
    let (part, _peer) = within(20, async { tokio::join!(sending.most(never), server) }).await;
    // The peer's end shows that all requests came. If the machine stalls for the silence that ends `most`, some responses come after it.
    let missing = part.expect("most are there").missing.len();
    assert!((167..500).contains(&missing), "{missing} are missing");
    assert_eq!(client.stats().timeouts, 0);
}

#[tokio::test]
async fn requests_that_are_left_alone_in_flight_hold_back_no_others() {
    let (listener, port) = listen().await;
    let client =
        client(port, Limits { initial_inflight_requests: 100, max_inflight_requests: 100, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 10_000).await;
        // All of them at once: after the last response there is no room for a younger request.
        for number in 0..500 {
            let (stream, _) = peer.requests(1).await.remove(0);
            if number % 4 > 0 {
                peer.answer(stream).await;
            }
        }
        peer
    };
    let sending = client.start(batch(500));
    let never = std::future::pending();
    // The peer has seen all 500, though 125 are never answered and 100 may be in flight.
    let (part, _peer) = within(20, async { tokio::join!(sending.most(never), server) }).await;
    assert!(part.expect("most are there").missing.len() >= 125);
}

#[tokio::test]
async fn what_failed_before_and_is_silent_again_holds_back_no_others() {
    let (listener, port) = listen().await;
    let client =
        client(port, Limits { initial_inflight_requests: 100, max_inflight_requests: 100, ..quick() });
    let (sent_signal, all_sent) = tokio::sync::oneshot::channel();
    let server = async {
        let mut peer = Peer::accept(&listener, 10_000).await;
        peer.requests(100).await;
        sent_signal.send(()).expect("waited for");
        for (stream, _) in peer.requests(10).await {
            peer.answer(stream).await;
        }
        peer
    };
    let silent = client.start(RequestBatch { repeated: true, ..batch(100) });
    let fresh = async {
        all_sent.await.expect("sent");
        client.send(batch(10)).await
    };
    let (replies, _peer) = within(20, async { tokio::join!(fresh, server) }).await;
    assert_eq!(statuses(&replies), [200; 10]);
    drop(silent);
}

#[tokio::test]
async fn r5_a_goaway_without_a_close_retires_the_connection_and_awaits_its_streams() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { request_timeout_ms: 300, ..quick() });
    let server = async {
        let mut first = Peer::accept(&listener, 100).await;
        let seen = first.requests(3).await;
        first.go_away(seen[2].0).await;
        first.answer(seen[0].0).await;
        let mut resets = Vec::new();
        while let Some(event) = first.next().await {
            if let Event::Reset { stream, code: CANCEL } = event {
                resets.push(stream);
            }
        }
        (seen, resets)
    };
    let (replies, (seen, resets)) = within(20, async { tokio::join!(client.send(batch(3)), server) }).await;
    let answered: usize = seen[0].1.parse().expect("a number");
    for (index, reply) in replies.iter().enumerate() {
        match reply {
            Reply::Answered(_) => assert_eq!(index, answered),
            other => assert!(matches!(other, Reply::Unanswered(Fault::Timeout)), "{other:?}"),
        }
    }
    assert_eq!(resets, [seen[1].0, seen[2].0]);
    assert_eq!(client.stats().resends, 0);
}

#[tokio::test]
async fn r5_refused_streams_go_again() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        for (stream, _) in peer.requests(20).await {
            peer.reset(stream, REFUSED_STREAM).await;
        }
        peer.serve().await
    };
    let sender = async {
        let replies = client.send(batch(20)).await;
        client.close().await;
        replies
    };
    let (replies, seen) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!(statuses(&replies), [200; 20]);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), numbers(0..20));
    assert_eq!(client.stats().resets, 20);
}

#[tokio::test]
async fn a_stream_refused_again_and_again_is_given_back_unsent() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_resends: 3, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let mut count = 0;
        while let Some(event) = peer.next().await {
            if let Event::Request { stream, .. } = event {
                count += 1;
                peer.reset(stream, REFUSED_STREAM).await;
            }
        }
        count
    };
    let sender = async {
        let replies = client.send(batch(2)).await;
        client.close().await;
        replies
    };
    let (replies, count) = within(20, async { tokio::join!(sender, server) }).await;
    assert!(replies.iter().all(|reply| matches!(reply, Reply::NotSent(Fault::Refused))), "{replies:?}");
    assert_eq!(count, 2 * 4);
}

#[tokio::test]
async fn r5_a_stream_reset_otherwise_is_ambiguous_and_not_sent_again() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let seen = peer.requests(2).await;
        peer.reset(seen[0].0, INTERNAL_ERROR).await;
        peer.answer(seen[1].0).await;
        peer
    };
    let (replies, _peer) = within(20, async { tokio::join!(client.send(batch(2)), server) }).await;
    assert!(matches!(&replies[0], Reply::Unanswered(Fault::Reset(_))), "{replies:?}");
    assert_eq!(statuses(&replies[1..]), [200]);
    assert_eq!(client.stats().resends, 0);
}

#[tokio::test]
async fn a_stalled_stream_times_out_and_is_reset() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { request_timeout_ms: 200, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let seen = peer.requests(2).await;
        peer.answer(seen[1].0).await;
        let reset = peer.next().await;
        (seen, reset, peer)
    };
    let (replies, (seen, reset, _peer)) =
        within(20, async { tokio::join!(client.send(batch(2)), server) }).await;
    assert_eq!(statuses(&replies), [1, 200]);
    assert_eq!(fault(&replies[0]), &Fault::Timeout);
    assert_eq!(reset, Some(Event::Reset { stream: seen[0].0, code: CANCEL }));
    assert_eq!(client.stats().timeouts, 1);
}

#[tokio::test]
async fn a_connection_dropped_in_the_middle_leaves_every_request_with_a_reply() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut first = Peer::accept(&listener, 10).await;
        let seen = first.requests(10).await;
        for (stream, _) in &seen[..4] {
            first.answer(*stream).await;
        }
        let more = first.requests(4).await;
        drop(first);
        let lost: BTreeSet<_> = seen[4..].iter().chain(&more).map(|(_, body)| body.clone()).collect();
        let mut second = Peer::accept(&listener, 10).await;
        (lost, second.serve().await)
    };
    let sender = async {
        let replies = client.send(batch(100)).await;
        client.close().await;
        replies
    };
    let (replies, (lost, answered)) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!(replies.len(), 100);
    let unanswered: BTreeSet<_> = (0..100)
        .filter(|index| matches!(replies[*index], Reply::Unanswered(_)))
        .map(|index| index.to_string())
        .collect();
    assert_eq!(unanswered, lost, "exactly those that the dead connection had");
    assert_eq!(answered.len(), 100 - 4 - lost.len(), "none of them was sent again");
}

#[tokio::test]
async fn a_peer_without_http_2_is_named_as_such() {
    for alpn in [&["http/1.1"][..], &[]] {
        let (listener, port) = listen().await;
        let tls = Tls::new(alpn);
        tls.serve(listener);
        let replies = within(20, tls.client(port, quick()).send(batch(3))).await;
        assert_eq!(replies.len(), 3);
        replies.iter().for_each(|reply| assert_eq!(fault(reply), &Fault::Alpn));
    }
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_refused() {
    let (listener, port) = listen().await;
    Tls::new(&["h2"]).serve(listener);
    let replies = within(20, Tls::new(&["h2"]).client(port, quick()).send(batch(1))).await;
    assert!(matches!(&replies[0], Reply::NotSent(Fault::Tls(_))), "{replies:?}");
}

#[tokio::test]
async fn a_closed_port_leaves_requests_unsent() {
    let (_socket, port) = deserted_port();
    let client = client(port, quick());
    let replies = within(20, client.send(batch(5))).await;
    assert!(replies.iter().all(|reply| matches!(reply, Reply::NotSent(Fault::Connect(_)))), "{replies:?}");
    assert_eq!((replies.len(), client.stats().connect_failures), (5, 1));
}

#[tokio::test]
async fn a_peer_that_never_sends_settings_is_given_up() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { connect_timeout_ms: 200, ..quick() });
    let (replies, _peer) =
        within(20, async { tokio::join!(client.send(batch(2)), Peer::accept_mute(&listener)) }).await;
    replies.iter().for_each(|reply| assert_eq!(fault(reply), &Fault::ConnectTimeout));
    assert_eq!(statuses(&replies), [0, 0]);
}

#[tokio::test]
async fn a_request_that_waits_too_long_for_a_stream_is_not_sent() {
    let (listener, port) = listen().await;
    let limits = Limits { max_connections: 1, queue_timeout_ms: 100, request_timeout_ms: 300, ..quick() };
    let client = client(port, limits);
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        peer.requests(1).await;
        peer
    };
    let (replies, _peer) = within(20, async { tokio::join!(client.send(batch(3)), server) }).await;
    assert_eq!(statuses(&replies), [1, 0, 0]);
    assert_eq!(fault(&replies[2]), &Fault::QueueTimeout);
}

#[tokio::test]
async fn roots_without_a_certificate_are_refused_at_once() {
    let mut endpoint = Endpoint::new("localhost", 1);
    endpoint.roots = Roots::Pem("no certificate".into());
    let refused = stentor_http2::Client::new(&endpoint, quick()).err();
    assert!(matches!(refused, Some(Fault::Endpoint(_))), "{refused:?}");
}

#[tokio::test]
async fn a_closed_client_sends_nothing() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    within(5, client.close()).await;
    let replies = within(5, client.send(batch(2))).await;
    assert_eq!(statuses(&replies), [0, 0]);
    assert_eq!(fault(&replies[1]), &Fault::Closed);
    drop(listener);
}

#[tokio::test]
async fn closing_does_not_wait_for_the_next_try_to_connect() {
    let (_socket, port) = deserted_port();
    let client = client(port, quick());
    for _ in 0..6 {
        within(20, client.send(batch(1))).await;
    }
    // The next attempt is now more than a second away.
    let waiting = client.send(batch(1));
    let closing = async {
        tokio::task::yield_now().await;
        within(1, client.close()).await;
    };
    let (replies, ()) = tokio::join!(waiting, closing);
    assert_eq!(fault(&replies[0]), &Fault::Closed);
}

/// Requests, one of which panics while it is written.
struct Treacherous {
    requests: Vec<Request>,
    bad: usize,
}

impl Requests for Treacherous {
    fn count(&self) -> usize {
        self.requests.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        self.requests.write(index, line);
        assert_ne!(index, self.bad, "a test's own panic");
    }
}

#[tokio::test]
async fn a_panic_in_a_connections_loop_leaves_no_request_without_a_reply() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let requests = Arc::new(Treacherous { requests: requests(20), bad: 7 });
    let treacherous = RequestBatch { requests, ..batch(0) };
    let server = async {
        loop {
            let mut peer = Peer::accept(&listener, 100).await;
            while let Some(event) = peer.next().await {
                if let Event::Request { stream, .. } = event {
                    peer.answer(stream).await;
                }
            }
        }
    };
    let sending = async {
        let replies = client.send(treacherous).await;
        (replies, client.send(batch(3)).await)
    };
    let (replies, next) = within(20, async {
        tokio::select! { replies = sending => replies, () = server => unreachable!() }
    })
    .await;
    assert_eq!(statuses(&replies[..7]), [200; 7], "what was written before goes over another connection");
    assert!(replies[7..].iter().all(|reply| matches!(reply, Reply::NotSent(Fault::Lost(_)))));
    assert_eq!(statuses(&next), [200; 3], "the client goes on");
    assert_eq!(client.stats().inflight, 0);
}
