//! The pool: the number of connections, their replacement, and their limits.

use std::time::Duration;

use stentor_http2::{Fault, Limits, Reply};

use crate::frames::{Event, Peer, listen};
use crate::server;
use crate::support::{batch, batch_of, client, quick, requests, statuses, within};

#[tokio::test]
async fn r5_the_stream_limit_is_obeyed_down_to_one_and_back() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        // One at a time: the next comes only after the response.
        for _ in 0..5 {
            let one = peer.requests(1).await;
            peer.answer(one[0].0).await;
        }
        peer.allow(8).await;
        let mut open = peer.requests(8).await;
        peer.allow(2).await;
        for (stream, _) in open.drain(..6) {
            peer.answer(stream).await;
        }
        // Two are open and two are allowed: a PING's round trip shows that no further one came.
        peer.answer(open.remove(0).0).await;
        open.extend(peer.requests(1).await);
        assert_eq!(open.len(), 2);
        for (stream, _) in open {
            peer.answer(stream).await;
        }
        peer.serve().await.len()
    };
    let sender = async {
        let replies = client.send(batch(40)).await;
        client.close().await;
        replies
    };
    let (replies, rest) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!(statuses(&replies), [200; 40]);
    assert_eq!(rest, 40 - 5 - 8 - 1);
}

#[tokio::test]
async fn r5_a_stream_limit_lowered_in_flight_is_never_exceeded() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 50).await;
        let mut open: Vec<_> = peer.requests(50).await;
        peer.allow(3).await;
        let mut most = 0;
        let mut streams = 0;
        while let Some((stream, _)) = open.pop() {
            peer.answer(stream).await;
            streams += 1;
            if open.len() < 3 && streams + open.len() < 200 {
                open.extend(peer.requests(1).await);
                most = most.max(open.len());
            }
        }
        (most, streams)
    };
    let (replies, (most, streams)) =
        within(20, async { tokio::join!(client.send(batch(200)), server) }).await;
    assert_eq!(statuses(&replies), [200; 200]);
    assert_eq!((most, streams), (3, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r5_a_stream_limit_lowered_while_many_streams_are_being_opened_is_never_exceeded() {
    let (listener, port) = listen().await;
    let wide = Limits { initial_inflight_requests: 4_000, max_streams_per_connection: 4_000, ..quick() };
    let client = client(port, Limits { max_connections: 1, ..wide });
    let server = tokio::spawn(async move {
        let mut peer = Peer::accept(&listener, 4_000).await;
        let mut open: Vec<u32> = peer.requests(1).await.into_iter().map(|(stream, _)| stream).collect();
        peer.allow(1).await;
        // Unanswered until the new limit holds, so that any stream opened after its acknowledgement exceeds it.
        open.extend(peer.requests_until_acknowledged().await);
        while let Some(stream) = open.pop() {
            peer.answer(stream).await;
        }
        peer.serve().await
    });
    let replies = within(60, client.send(batch(4_000))).await;
    within(5, client.close()).await;
    assert_eq!(statuses(&replies), [200; 4_000]);
    within(5, server).await.expect("never exceeded");
}

#[tokio::test]
async fn a_small_batch_is_not_stuck_behind_a_large_one() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        peer.serve().await
    };
    let mut small = requests(1);
    small[0].body = "small".into();
    let small = batch_of(small);
    let sender = async {
        let (large, small) = tokio::join!(client.send(batch(100)), client.send(small));
        client.close().await;
        (large, small)
    };
    let ((large, small), order) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!((statuses(&large), statuses(&small)), (vec![200; 100], vec![200]));
    let place = order.iter().position(|body| body == "small").expect("served");
    assert!(place < 3, "served as number {place}");
}

#[tokio::test]
async fn another_connection_is_opened_when_all_streams_are_taken() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 3, ..quick() });
    let server = async {
        let mut peers = Vec::new();
        for _ in 0..3 {
            let mut peer = Peer::accept(&listener, 5).await;
            let open = peer.requests(5).await;
            peers.push((peer, open));
        }
        let stats = client.stats();
        for (peer, open) in &mut peers {
            for (stream, _) in open.drain(..) {
                peer.answer(stream).await;
            }
        }
        (stats, peers)
    };
    let (replies, (stats, _peers)) = within(20, async { tokio::join!(client.send(batch(15)), server) }).await;
    assert_eq!(statuses(&replies), [200; 15]);
    assert_eq!((stats.connections, stats.inflight, stats.waiting), (3, 15, 0));
}

#[tokio::test]
async fn a_connection_that_may_carry_one_request_is_replaced_after_it() {
    let (listener, port) = listen().await;
    let limits = Limits {
        max_connections: 3,
        max_streams_per_connection: 1,
        max_requests_per_connection: 1,
        initial_inflight_requests: 3,
        max_inflight_requests: 3,
        ..quick()
    };
    let client = client(port, limits);
    let server = async {
        let mut carried = Vec::new();
        for _ in 0..5 {
            // Three requests are in flight at once, each on its own connection, and each round opens new connections.
            let mut peers = Vec::new();
            for _ in 0..3 {
                let mut peer = Peer::accept(&listener, 100).await;
                let open = peer.requests(1).await;
                peers.push((peer, open));
            }
            for (mut peer, open) in peers {
                peer.answer(open[0].0).await;
                carried.push(1 + peer.serve().await.len());
            }
        }
        carried
    };
    let (replies, carried) = within(20, async { tokio::join!(client.send(batch(15)), server) }).await;
    assert_eq!((statuses(&replies), carried), (vec![200; 15], vec![1; 15]));
}

#[tokio::test]
async fn one_small_batch_after_another_uses_one_connection() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        peer.serve().await.len()
    };
    let sender = async {
        for _ in 0..20 {
            let replies = client.send(batch(3)).await;
            assert_eq!(statuses(&replies), [200; 3], "{replies:?} {:?}", client.stats());
        }
        client.close().await;
    };
    let ((), streams) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!((streams, client.stats().connects), (60, 1));
}

#[tokio::test]
async fn a_connection_that_has_just_been_used_is_not_taken_for_unused() {
    let port = server::start(|request, body, respond| {
        // Blocks the only thread until the client's clock has advanced, so that tick and response come together.
        std::thread::sleep(Duration::from_millis(10));
        server::echo(request, body, respond);
    })
    .await;
    let client = client(port, Limits { ping_interval_ms: 8, ..quick() });
    for _ in 0..30 {
        assert_eq!(statuses(&within(20, client.send(batch(1))).await), [200]);
    }
    assert_eq!(client.stats().connects, 1);
}

#[tokio::test]
async fn an_unused_connection_says_goodbye() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { idle_close_ms: 50, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 100).await;
        let one = peer.requests(1).await;
        peer.answer(one[0].0).await;
        peer.next().await
    };
    let (replies, end) = within(20, async { tokio::join!(client.send(batch(1)), server) }).await;
    assert_eq!((statuses(&replies), end), (vec![200], Some(Event::GoodBye)));
    assert_eq!(client.stats().connections, 0);
}

#[tokio::test]
async fn closing_waits_for_the_answers_that_are_due() {
    let (listener, port) = listen().await;
    let client = client(port, quick());
    let server = async {
        let mut peer = Peer::accept(&listener, 2).await;
        let open = peer.requests(2).await;
        let closing = client.close();
        let mut closing = std::pin::pin!(closing);
        assert!(futures_util::poll!(closing.as_mut()).is_pending());
        for (stream, _) in open {
            peer.answer(stream).await;
        }
        closing.await;
        peer
    };
    let (replies, _peer) = within(20, async { tokio::join!(client.send(batch(2)), server) }).await;
    assert_eq!(statuses(&replies), [200, 200]);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_never_sent() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        let first = peer.requests(1).await;
        (peer, first[0].0)
    };
    let mut abandoned = Box::pin(client.send(batch(5)));
    let (mut peer, stream) = within(20, async {
        tokio::select! {
            accepted = server => accepted,
            _ = &mut abandoned => panic!("nothing was answered"),
        }
    })
    .await;
    drop(abandoned);
    peer.answer(stream).await;
    let next = async {
        let open = peer.requests(1).await;
        peer.answer(open[0].0).await;
        open[0].1.clone()
    };
    let last = batch_of(requests(8).split_off(7));
    let (replies, body) = within(20, async { tokio::join!(client.send(last), next) }).await;
    assert_eq!((statuses(&replies), body.as_str()), (vec![200], "7"));
}

#[tokio::test]
async fn a_batch_that_is_cut_off_keeps_its_answers_and_sends_no_more() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { max_connections: 1, ..quick() });
    let (cut, cut_signal) = tokio::sync::oneshot::channel();
    let server = async {
        let mut peer = Peer::accept(&listener, 2).await;
        let open = peer.requests(2).await;
        peer.answer(open[0].0).await;
        // The third is opened in the place of the first, so the first response has been read.
        let third = peer.requests(1).await;
        cut.send(()).expect("still waited for");
        (peer, [open[1].0, third[0].0])
    };
    let sending = client.send_until(batch(5), async { cut_signal.await.expect("sent") });
    let (replies, (mut peer, open)) = within(20, async { tokio::join!(sending, server) }).await;
    let replies = replies.into_vec();
    assert!(matches!(replies[0], Reply::Answered(_)), "{replies:?}");
    assert!(
        replies[1..3].iter().all(|reply| matches!(reply, Reply::Unanswered(Fault::Abandoned))),
        "{replies:?}"
    );
    assert!(
        replies[3..].iter().all(|reply| matches!(reply, Reply::NotSent(Fault::Abandoned))),
        "{replies:?}"
    );
    drop(client);
    for stream in open {
        peer.answer(stream).await;
    }
    assert_eq!(within(20, peer.serve()).await, Vec::<String>::new());
}
