//! SETTINGS that change while requests are under way.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use stentor_http2::{Fault, Limits, Reply, RequestBatch};
use tokio::time::Instant;

use crate::frames::{
    Event, HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, Peer, deserted_port, listen,
};
use crate::support::{batch, batch_of, client, quick, requests, statuses, within};

/// The window of a connection until it is widened.
const WINDOW_DEFAULT_BYTES: u32 = 65_535;
const FRAME_MIN_BYTES: usize = 16_384;

fn one_connection() -> Limits {
    Limits { max_connections: 1, ..quick() }
}

/// Requests with bodies of this size.
fn large(count: usize, bytes: usize) -> RequestBatch {
    let mut requests = requests(count);
    requests.iter_mut().for_each(|request| request.body = Bytes::from(vec![b'x'; bytes]));
    batch_of(requests)
}

#[tokio::test]
async fn a_frame_size_that_grows_and_shrinks_in_flight_is_obeyed_by_bodies_larger_than_it() {
    const BODY_BYTES: usize = 50_000;
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        peer.tell(&[(INITIAL_WINDOW_SIZE, 1 << 20)]).await;
        peer.widen(0, 1 << 20).await;
        let mut largest = Vec::new();
        for frame_bytes in [30_000, 1 << 20, FRAME_MIN_BYTES] {
            let (stream, body) = peer.requests(1).await.remove(0);
            assert_eq!((body.len(), peer.data.iter().sum::<usize>()), (BODY_BYTES, BODY_BYTES));
            largest.extend(peer.data.drain(..).max());
            peer.tell(&[(MAX_FRAME_SIZE, frame_bytes as u32)]).await;
            peer.answer(stream).await;
        }
        let (stream, _) = peer.requests(1).await.remove(0);
        largest.extend(peer.data.drain(..).max());
        peer.answer(stream).await;
        (largest, peer)
    };
    let sending = client.send(large(4, BODY_BYTES));
    let (replies, (largest, _peer)) = within(20, async { tokio::join!(sending, server) }).await;
    assert_eq!(statuses(&replies), [200; 4]);
    assert_eq!(largest, [FRAME_MIN_BYTES, 30_000, BODY_BYTES, FRAME_MIN_BYTES]);
}

#[tokio::test]
async fn a_body_that_waits_for_its_window_goes_on_in_frames_of_the_new_size() {
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept_mute(&listener).await;
        peer.tell(&[(MAX_FRAME_SIZE, 40_000), (INITIAL_WINDOW_SIZE, 40_000)]).await;
        peer.allow(1).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data, [40_000], "as large as frame and window");
        peer.tell(&[(MAX_FRAME_SIZE, FRAME_MIN_BYTES as u32)]).await;
        peer.widen(0, 1 << 20).await;
        peer.widen(1, 1 << 20).await;
        let (stream, body) = peer.requests(1).await.remove(0);
        peer.answer(stream).await;
        assert_eq!((body.len(), &peer.data[1..]), (60_000, &[FRAME_MIN_BYTES, 20_000 - FRAME_MIN_BYTES][..]));
        peer
    };
    let sending = client.send(large(1, 60_000));
    let (replies, _peer) = within(20, async { tokio::join!(sending, server) }).await;
    assert_eq!(statuses(&replies), [200]);
}

#[tokio::test]
async fn a_window_shrunk_below_zero_in_flight_stops_every_body_until_it_is_positive_again() {
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept_mute(&listener).await;
        peer.tell(&[(INITIAL_WINDOW_SIZE, 1_000)]).await;
        peer.allow(2).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data, [1_000, 1_000]);
        // Both windows are at -800 now, and the first at zero afterwards.
        peer.tell(&[(INITIAL_WINDOW_SIZE, 200)]).await;
        peer.widen(1, 800).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data.len(), 2, "nothing goes below zero nor at it");
        // The windows are now at 700 and at -100.
        peer.tell(&[(INITIAL_WINDOW_SIZE, 900)]).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data[2..], [700]);
        peer.widen(3, 101).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data[3..], [1]);
        peer.tell(&[(INITIAL_WINDOW_SIZE, 10_000)]).await;
        let ended = peer.requests(2).await;
        for (stream, body) in ended {
            assert_eq!(body.len(), 3_000);
            peer.answer(stream).await;
        }
        peer
    };
    let sending = client.send(large(2, 3_000));
    let (replies, _peer) = within(20, async { tokio::join!(sending, server) }).await;
    assert_eq!(statuses(&replies), [200; 2]);
}

#[tokio::test]
async fn new_settings_leave_the_window_of_the_connection_as_it_is() {
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        peer.tell(&[(INITIAL_WINDOW_SIZE, 1 << 20)]).await;
        peer.requests_until_acknowledged().await;
        assert_eq!(peer.data.iter().sum::<usize>(), WINDOW_DEFAULT_BYTES as usize);
        peer.widen(0, 100_000).await;
        let (stream, _) = peer.requests(1).await.remove(0);
        peer.answer(stream).await;
        peer
    };
    let sending = client.send(large(1, 100_000));
    let (replies, _peer) = within(20, async { tokio::join!(sending, server) }).await;
    assert_eq!(statuses(&replies), [200]);
}

#[tokio::test]
async fn a_table_of_headers_that_shrinks_and_grows_in_flight_is_announced_and_used_as_it_is() {
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept(&listener, 1).await;
        let (none, all) = ((HEADER_TABLE_SIZE, 0), (HEADER_TABLE_SIZE, 1 << 20));
        for settings in [&[][..], &[none], &[all], &[none, all], &[], &[]] {
            let (stream, _) = peer.requests(1).await.remove(0);
            peer.tell(settings).await;
            peer.answer(stream).await;
        }
        peer
    };
    let value = HeaderValue::from_static("a value that many requests share");
    let constant = vec![(HeaderName::from_static("authorization"), value)];
    let sending = client.send(RequestBatch { constant, ..batch(6) });
    let (replies, peer) = within(20, async { tokio::join!(sending, server) }).await;
    assert_eq!(statuses(&replies), [200; 6]);
    let sizes: Vec<usize> = peer.blocks.iter().map(Vec::len).collect();
    let [first, known, bare, renewed, emptied, known_again] = sizes[..] else { panic!("{sizes:?}") };
    assert!(known < first / 3, "one byte for each header that the table has: {sizes:?}");
    assert_eq!(peer.blocks[2][0], 0x20, "a table of no bytes is announced");
    assert!(bare > first, "everything in words: {sizes:?}");
    assert_eq!(peer.blocks[3][..3], [0x3f, 0xe1, 0x1f], "never more than 4096 bytes, which is ours");
    assert_eq!(
        peer.blocks[4][..4],
        [0x20, 0x3f, 0xe1, 0x1f],
        "the smallest size first, for it emptied the table"
    );
    assert_eq!((renewed, emptied, known_again), (first + 3, first + 4, known), "{sizes:?}");
}

#[tokio::test]
async fn r5_a_stream_limit_of_zero_holds_everything_back_until_it_is_lifted() {
    let (listener, port) = listen().await;
    let client = client(port, one_connection());
    let server = async {
        let mut peer = Peer::accept(&listener, 2).await;
        let open = peer.requests(2).await;
        peer.allow(0).await;
        for (stream, _) in open {
            peer.answer(stream).await;
        }
        assert_eq!(peer.requests_until_acknowledged().await, [0; 0]);
        peer.allow(1).await;
        let one = peer.requests(1).await;
        peer.answer(one[0].0).await;
        peer.allow(1_000).await;
        peer.serve().await.len()
    };
    let sender = async {
        let replies = client.send(batch(30)).await;
        client.close().await;
        replies
    };
    let (replies, rest) = within(20, async { tokio::join!(sender, server) }).await;
    assert_eq!((statuses(&replies), rest), (vec![200; 30], 27));
}

#[tokio::test]
async fn requests_to_a_peer_that_allows_no_stream_are_given_back_when_their_time_is_over() {
    let (listener, port) = listen().await;
    let client = client(port, Limits { queue_timeout_ms: 200, ..quick() });
    let server = async {
        let mut peer = Peer::accept(&listener, 0).await;
        while !matches!(peer.next().await, None | Some(Event::GoodBye)) {}
    };
    let begun = Instant::now();
    let replies = within(10, async {
        tokio::select! {
            replies = client.send(batch(3)) => replies,
            () = server => panic!("the client left"),
        }
    });
    let replies = replies.await;
    assert!(replies.iter().all(|reply| matches!(reply, Reply::NotSent(Fault::QueueTimeout))), "{replies:?}");
    assert!(begun.elapsed().as_millis() >= 200, "not before");
    assert_eq!((client.stats().waiting, client.stats().inflight), (0, 0));
}

#[tokio::test]
async fn requests_for_whom_no_connection_opens_are_given_back_when_their_time_is_over() {
    let (_socket, port) = deserted_port();
    let client = client(port, Limits { queue_timeout_ms: 100, ..quick() });
    // After some failures the backoff exceeds the queue timeout. Earlier, either may come first.
    within(20, async {
        let mut given_back = false;
        while !given_back {
            let replies = client.send(batch(1)).await;
            given_back = matches!(&replies[..], [Reply::NotSent(Fault::QueueTimeout)]);
        }
    })
    .await;
}
