//! Frames in, frames out: valid and invalid behaviour of a peer, and the reaction to each.

mod framing;

use super::*;
use crate::frames::answer::When;
use crate::frames::rig::*;
use std::time::Duration;
use stentor_http2_codec::frame::{ErrorCode, PREFACE, WINDOW_DEFAULT_BYTES, flag, kind};

fn goaway_code(frames: &[WrittenFrame]) -> Option<u32> {
    frames.iter().find(|frame| frame.kind == kind::GOAWAY).map(|frame| frame.number(4))
}

fn resets(frames: &[WrittenFrame]) -> Vec<(u32, u32)> {
    frames
        .iter()
        .filter(|frame| frame.kind == kind::RST_STREAM)
        .map(|frame| (frame.stream, frame.number(0)))
        .collect()
}

fn answered(frames: &[WrittenFrame]) -> Vec<u32> {
    let last = |frame: &&WrittenFrame| {
        matches!(frame.kind, kind::HEADERS | kind::DATA) && frame.flags & flag::END_STREAM != 0
    };
    frames.iter().filter(last).map(|frame| frame.stream).collect()
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let mut connection = Connection::new(Recorder::default(), LIMITS);
    let first = said(&mut connection);
    assert!(first[0].is(kind::SETTINGS, 0) && first[0].payload.starts_with(&[0, 3, 0, 0, 0, 3]));
    assert!(first[1].is(kind::WINDOW_UPDATE, 0));
    let hello = [
        PREFACE.as_slice(),
        &raw(kind::SETTINGS, 0, 0, &[0, 0x77, 0, 0, 0, 1]),
        &raw(kind::PING, 0, 0, b"12345678"),
    ];
    let frames = exchange(&mut connection, &hello.concat());
    assert_eq!(
        read_frames(
            &[raw(kind::SETTINGS, flag::ACK, 0, &[]), raw(kind::PING, flag::ACK, 0, b"12345678")].concat()
        ),
        frames
    );
}

/// One request in every variant of framing.
fn dressed_up() -> Vec<u8> {
    let (a, b, c) = (post(&literal("x-a", "1")), literal("x-b", "2"), literal("x-c", "3"));
    let padded = [&[4][..], &[0x80, 0, 0, 0, 9], &a, &[0; 4]].concat();
    [
        PREFACE.to_vec(),
        raw(kind::SETTINGS, 0, 0, &[]),
        raw(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, &padded),
        raw(kind::CONTINUATION, 0, 1, &b),
        raw(kind::CONTINUATION, flag::END_HEADERS, 1, &c),
        raw(kind::PRIORITY, 0, 3, &[0, 0, 0, 1, 7]),
        raw(kind::DATA, flag::PADDED, 1, &[&[3][..], b"hello ", &[0; 3]].concat()),
        raw(0xbb, 0xff, 1, b"a frame of a kind that nobody knows"),
        raw(kind::DATA, flag::PADDED, 1, &[0]),
        raw(kind::DATA, 0, 1, b"world"),
        raw(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &literal("x-trailer", "4")),
    ]
    .concat()
}

#[test]
fn a_request_is_the_same_however_it_is_padded_continued_and_cut() {
    let bytes = dressed_up();
    for size in [1, 2, 3, 7, 10, 64, bytes.len()] {
        let host = Recorder::default();
        let mut connection = Connection::new(host.clone(), LIMITS);
        let mut inbox = Vec::new();
        for piece in bytes.chunks(size) {
            inbox.extend_from_slice(piece);
            let used = connection.receive(&inbox, Instant::now());
            inbox.drain(..used);
        }
        assert_eq!(answered(&said(&mut connection)), [1], "in pieces of {size}");
        let [seen] = &host.requests()[..] else { panic!("one request") };
        assert_eq!(seen.body.as_deref(), Some(b"hello world".as_slice()));
        let names: Vec<_> = seen.fields.iter().skip(3).map(|(name, _)| name.as_slice()).collect();
        assert_eq!(names, [b"x-a", b"x-b", b"x-c"]);
    }
}

#[test]
fn each_breach_ends_the_connection_with_its_code() {
    let (protocol, flow, size) =
        (ErrorCode::PROTOCOL_ERROR, ErrorCode::FLOW_CONTROL_ERROR, ErrorCode::FRAME_SIZE_ERROR);
    let setting =
        |name: u8, value: u32| raw(kind::SETTINGS, 0, 0, &[&[0, name][..], &value.to_be_bytes()].concat());
    let headers = |flags, payload: &[u8]| raw(kind::HEADERS, flags, 1, payload);
    let window = |stream, more: u32| raw(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    let breaches = [
        ("a frame above 16 KiB", protocol_of(&[0, 0x40, 1, kind::DATA, 0, 0, 0, 0, 1]), size),
        ("data on stream 0", raw(kind::DATA, 0, 0, b"x"), protocol),
        ("data on an idle stream", raw(kind::DATA, 0, 1, b"x"), protocol),
        ("headers on stream 0", raw(kind::HEADERS, flag::END_HEADERS, 0, &post(&[])), protocol),
        ("headers on a stream of ours", raw(kind::HEADERS, flag::END_HEADERS, 2, &post(&[])), protocol),
        ("headers that cannot be decoded", headers(flag::END_HEADERS, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        ("a priority cut off", headers(flag::END_HEADERS | flag::PRIORITY, &[0; 4]), size),
        ("padding above the frame", headers(flag::END_HEADERS | flag::PADDED, &[4, 0, 0, 0]), protocol),
        ("padding without its length", headers(flag::END_HEADERS | flag::PADDED, &[]), size),
        (
            "a frame inside a header block",
            [headers(0, &post(&[])), raw(kind::PING, 0, 0, &[0; 8])].concat(),
            protocol,
        ),
        (
            "a continuation of another stream",
            [headers(0, &post(&[])), raw(kind::CONTINUATION, 4, 3, &[0x84])].concat(),
            protocol,
        ),
        ("a continuation of nothing", raw(kind::CONTINUATION, flag::END_HEADERS, 1, &post(&[])), protocol),
        ("a reset of an idle stream", raw(kind::RST_STREAM, 0, 1, &[0; 4]), protocol),
        ("a reset of the wrong size", raw(kind::RST_STREAM, 0, 1, &[0; 3]), size),
        ("a promise", raw(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0; 4]), protocol),
        ("a ping on a stream", raw(kind::PING, 0, 1, &[0; 8]), protocol),
        ("a ping of the wrong size", raw(kind::PING, 0, 0, &[0; 7]), size),
        ("a priority on stream 0", raw(kind::PRIORITY, 0, 0, &[0; 5]), protocol),
        ("settings on a stream", raw(kind::SETTINGS, 0, 1, &[]), protocol),
        ("settings of the wrong size", raw(kind::SETTINGS, 0, 0, &[0; 5]), size),
        ("an acknowledgement that says more", raw(kind::SETTINGS, flag::ACK, 0, &[0; 6]), size),
        ("push neither on nor off", setting(2, 2), protocol),
        ("a window above the largest", setting(4, 0x8000_0000), flow),
        ("frames below the smallest", setting(5, 16_383), protocol),
        ("frames above the largest", setting(5, 1 << 24), protocol),
        ("a goaway on a stream", raw(kind::GOAWAY, 0, 1, &[0; 8]), protocol),
        ("a goaway cut off", raw(kind::GOAWAY, 0, 0, &[0; 7]), size),
        ("a window update of nothing", window(0, 0), protocol),
        ("a window update of an idle stream", window(1, 1), protocol),
        ("a window update above the largest", window(0, 0x7fff_ffff), flow),
        ("a header block without end", endless_block(), ErrorCode::ENHANCE_YOUR_CALM),
    ];
    for (what, bytes, code) in breaches {
        let mut connection = greeted(Recorder::default());
        let frames = exchange(&mut connection, &[&bytes[..], &request(5)].concat());
        assert_eq!(goaway_code(&frames), Some(code.0), "{what}: {frames:?}");
        assert_eq!(connection.end(), End::Closing, "{what}");
        assert!(answered(&frames).is_empty(), "{what}: nothing is read behind it");
    }
}

fn protocol_of(header: &[u8; 9]) -> Vec<u8> {
    header.to_vec()
}

fn endless_block() -> Vec<u8> {
    let mut bytes = raw(kind::HEADERS, 0, 1, &post(&[]));
    for _ in 0..5 {
        bytes.extend(raw(kind::CONTINUATION, 0, 1, &[0x84; 16 * 1024]));
    }
    bytes
}

#[test]
fn who_does_not_greet_is_not_served() {
    for hello in [b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), [PREFACE.as_slice(), &request(1)].concat()] {
        let mut connection = Connection::new(Recorder::default(), LIMITS);
        let frames = exchange(&mut connection, &hello);
        assert_eq!(goaway_code(&frames), Some(ErrorCode::PROTOCOL_ERROR.0));
        assert!(!connection.has_greeted());
    }
}

#[test]
fn a_malformed_request_is_reset_and_the_next_one_answered() {
    let blocks = [
        ("no path", vec![0x83, 0x87]),
        ("an empty path", [&[0x83, 0x87][..], &literal(":path", "")].concat()),
        ("an empty path alone", literal(":path", "")),
        ("two paths", post(&[0x84])),
        ("a pseudo field behind a regular one", [&[0x83, 0x87][..], &literal("a", "b"), &[0x84]].concat()),
        ("a response's field", post(&[0x88])),
        ("an upper-case name", post(&literal("A", "b"))),
        ("a line break in a value", post(&literal("a", "b\r\nc"))),
        ("a connection's field", post(&literal("transfer-encoding", "chunked"))),
        ("te with more than trailers", post(&literal("te", "gzip"))),
        ("a length that is none", post(&literal("content-length", "1a"))),
        ("a length that is not kept", post(&literal("content-length", "5"))),
        ("two lengths", post(&[literal("content-length", "0"), literal("content-length", "1")].concat())),
    ];
    for (what, block) in blocks {
        let host = Recorder::default();
        let mut connection = greeted(host.clone());
        let bad = raw(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block);
        let frames = exchange(&mut connection, &[bad, request(3)].concat());
        assert_eq!(resets(&frames), [(1, ErrorCode::PROTOCOL_ERROR.0)], "{what}");
        assert_eq!((answered(&frames), host.requests().len()), (vec![3], 1), "{what}");
    }
}

#[test]
fn a_request_with_too_many_fields_is_told_so() {
    let many: Vec<u8> = (0..30).flat_map(|_| literal("x-long", &"v".repeat(600))).collect();
    let host = Recorder::default();
    let mut connection = greeted(host.clone());
    let (first, rest) = many.split_at(10_000);
    let bytes = [
        raw(kind::HEADERS, flag::END_STREAM, 1, &post(first)),
        raw(kind::CONTINUATION, flag::END_HEADERS, 1, rest),
    ]
    .concat();
    let frames = exchange(&mut connection, &bytes);
    assert_eq!((answered(&frames), host.requests().len()), (vec![1], 0));
    assert_eq!(frames[0].payload, b"\x08\x03431");
}

#[test]
fn streams_above_the_limit_are_refused_once_the_peer_knows_it() {
    let open = |ids: std::ops::Range<u32>| ids.flat_map(|id| opening(id * 2 + 1)).collect::<Vec<_>>();
    let mut connection = greeted(Recorder::default());
    assert_eq!(exchange(&mut connection, &open(0..5)), [], "not acknowledged yet");
    let frames = exchange(&mut connection, &[raw(kind::SETTINGS, flag::ACK, 0, &[]), open(5..6)].concat());
    assert_eq!(resets(&frames), [(11, ErrorCode::REFUSED_STREAM.0)]);
    // Frames in flight for the refused stream change nothing, and three responses make room for one more.
    let late = [raw(kind::DATA, flag::END_STREAM, 11, b"x"), raw(kind::RST_STREAM, 0, 11, &[0; 4])].concat();
    assert_eq!(exchange(&mut connection, &late), []);
    let ends: Vec<u8> = (0..3).flat_map(|id| raw(kind::DATA, flag::END_STREAM, id * 2 + 1, b"")).collect();
    assert_eq!(answered(&exchange(&mut connection, &ends)), [1, 3, 5]);
    assert_eq!(exchange(&mut connection, &opening(13)), []);
}

#[test]
fn answers_that_nobody_can_have_seen_yet_count_as_open() {
    let mut connection = greeted(Recorder::default());
    exchange(&mut connection, &raw(kind::SETTINGS, flag::ACK, 0, &[]));
    let frames = exchange(&mut connection, &[1, 3, 5, 7].map(request).concat());
    assert_eq!((answered(&frames), resets(&frames)), (vec![1, 3, 5], vec![(7, ErrorCode::REFUSED_STREAM.0)]));
    assert_eq!(answered(&exchange(&mut connection, &request(9))), [9]);
}

#[test]
fn the_peer_may_send_on_as_windows_are_used_up() {
    let host = Recorder::default();
    let mut connection = greeted(host.clone());
    exchange(&mut connection, &opening(1));
    let (mut window, mut sent) = (i64::from(WINDOW_DEFAULT_BYTES), 0);
    while sent < 200_000 {
        assert!(window >= 16_000, "the window is opened in time");
        for frame in exchange(&mut connection, &raw(kind::DATA, 0, 1, &[7; 16_000])) {
            assert!(frame.is(kind::WINDOW_UPDATE, 1));
            window += i64::from(frame.number(0));
        }
        sent += 16_000;
        window -= 16_000;
    }
    assert_eq!(answered(&exchange(&mut connection, &raw(kind::DATA, flag::END_STREAM, 1, &[]))), [1]);
    assert_eq!(host.requests()[0].body.as_ref().map(Vec::len), Some(sent));
}

#[test]
fn the_window_of_the_connection_is_opened_in_bulk() {
    let mut connection = greeted(Recorder::default());
    let mut updates = Vec::new();
    for id in 0..600 {
        let whole =
            [opening(id * 2 + 1), raw(kind::DATA, flag::END_STREAM, id * 2 + 1, &[0; 16_000])].concat();
        let frames = exchange(&mut connection, &whole);
        updates.extend(
            frames.iter().filter(|frame| frame.is(kind::WINDOW_UPDATE, 0)).map(|frame| frame.number(0)),
        );
    }
    assert_eq!(updates, [525 * 16_000], "one for more than half of 16 MiB");
}

#[test]
fn more_than_the_window_of_the_connection_is_a_breach() {
    let mut connection = greeted(Recorder::default());
    let mut bytes = Vec::new();
    for id in 0..1100 {
        bytes.extend(
            [opening(id * 2 + 1), raw(kind::DATA, flag::END_STREAM, id * 2 + 1, &[0; 16_384])].concat(),
        );
    }
    // All in one read: the peer cannot have seen a window update in between.
    let frames = exchange(&mut connection, &bytes);
    assert_eq!(goaway_code(&frames), Some(ErrorCode::FLOW_CONTROL_ERROR.0));
}

#[test]
fn an_answer_is_sent_as_far_as_windows_allow() {
    let host = Recorder { reply: b"0123456789".to_vec(), ..Recorder::default() };
    let mut connection = greeted(host);
    let small = |bytes: u32| raw(kind::SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
    let bodies = |frames: &[WrittenFrame], id| -> Vec<u8> {
        frames
            .iter()
            .filter(|frame| frame.is(kind::DATA, id))
            .flat_map(|frame| frame.payload.clone())
            .collect()
    };
    let frames = exchange(&mut connection, &[small(4), request(1), request(3)].concat());
    assert_eq!((bodies(&frames, 1), answered(&frames)), (b"0123".to_vec(), vec![]));
    let frames = exchange(&mut connection, &raw(kind::WINDOW_UPDATE, 0, 3, &[0, 0, 0, 9]));
    assert_eq!((bodies(&frames, 3), answered(&frames)), (b"456789".to_vec(), vec![3]));
    assert_eq!(bodies(&exchange(&mut connection, &small(0)), 1), b"", "now four below nothing");
    assert_eq!(bodies(&exchange(&mut connection, &small(5)), 1), b"4");
    let frames = exchange(&mut connection, &small(1000));
    assert_eq!((bodies(&frames, 1), answered(&frames)), (b"56789".to_vec(), vec![1]));
}

#[test]
fn a_peer_that_wants_a_smaller_table_is_told_once_that_none_is_used() {
    let mut connection = greeted(Recorder::default());
    let smaller = raw(kind::SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 100]);
    let frames = exchange(&mut connection, &[smaller.clone(), request(1), request(3)].concat());
    let blocks: Vec<_> =
        frames.iter().filter(|frame| frame.kind == kind::HEADERS).map(|frame| &frame.payload[..]).collect();
    assert_eq!(blocks, [&[0x20, 0x88][..], &[0x88]]);
    let frames = exchange(&mut connection, &[smaller, request(5)].concat());
    assert_eq!(frames[1].payload, [0x88]);
}

#[test]
fn answers_leave_when_they_are_due_and_in_that_order() {
    let start = Instant::now();
    let after = |ms| When::At(start + Duration::from_millis(ms));
    // From the last: stream 1 is due after 30 ms, 3 after 10, 5 after 20, 7 after 20.
    let whens = vec![after(20), after(20), after(10), after(30)];
    let mut connection = greeted(Recorder { whens, ..Recorder::default() });
    assert_eq!(exchange(&mut connection, &[1, 3, 5, 7].map(request).concat()), []);
    let mut leave = |ms| {
        connection.send_due(start + Duration::from_millis(ms));
        answered(&said(&mut connection))
    };
    assert!(leave(9).is_empty());
    assert_eq!(leave(10), [3]);
    assert_eq!(leave(20), [5, 7]);
    assert_eq!(leave(40), [1]);
}

#[test]
fn who_gives_a_waiting_answer_up_does_not_get_it() {
    let due = Instant::now() + Duration::from_secs(1);
    let mut connection =
        greeted(Recorder { whens: vec![When::At(due), When::At(due)], ..Recorder::default() });
    let frames = exchange(
        &mut connection,
        &[request(1), request(3), raw(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat(),
    );
    assert_eq!(frames, []);
    connection.send_due(due);
    assert_eq!(answered(&said(&mut connection)), [3]);
}

#[test]
fn what_is_released_leaves_and_what_is_due_later_stays() {
    let later = When::At(Instant::now() + Duration::from_secs(1));
    let whens = vec![When::Released, later, When::Released];
    let mut connection = greeted(Recorder { whens, ..Recorder::default() });
    assert_eq!(exchange(&mut connection, &[1, 3, 5].map(request).concat()), []);
    connection.obey(Order::Release);
    assert_eq!(answered(&said(&mut connection)), [1, 5]);
}

#[test]
fn a_draining_connection_answers_what_is_open_and_ends() {
    let mut connection = greeted(Recorder::default());
    exchange(&mut connection, &opening(1));
    connection.obey(Order::Leave {
        code: ErrorCode::NO_ERROR,
        debug: b"bye".to_vec(),
        then: GoAwayEnd::Drain,
    });
    let frames = said(&mut connection);
    assert_eq!(
        (frames[0].kind, frames[0].number(0), &frames[0].payload[8..]),
        (kind::GOAWAY, 1, b"bye".as_slice())
    );
    assert_eq!(connection.end(), End::Draining);
    assert_eq!(answered(&exchange(&mut connection, &raw(kind::DATA, flag::END_STREAM, 1, &[]))), [1]);
    assert_eq!(connection.end(), End::Closing);
}

#[test]
fn a_stop_ends_a_connection_that_drains() {
    let mut connection = greeted(Recorder::default());
    exchange(&mut connection, &opening(1));
    for then in [GoAwayEnd::Drain, GoAwayEnd::Close] {
        connection.obey(Order::Leave { code: ErrorCode::NO_ERROR, debug: Vec::new(), then });
    }
    assert_eq!(said(&mut connection).len(), 1, "the peer has its GOAWAY already");
    assert_eq!(connection.end(), End::Closing);
}

#[test]
fn an_answer_that_waits_keeps_to_the_windows_that_came_meanwhile() {
    let due = Instant::now() + Duration::from_secs(1);
    let host =
        Recorder { reply: b"0123456789".to_vec(), whens: vec![When::At(due); 2], ..Recorder::default() };
    let mut connection = greeted(host);
    let small = |bytes: u32| raw(kind::SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
    let widen = |id, more: u32| raw(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
    exchange(&mut connection, &[small(9), widen_early(1), request(3), small(4), widen(1, 3)].concat());
    connection.send_due(due);
    let frames = said(&mut connection);
    let sent: Vec<_> =
        frames.iter().filter(|frame| frame.kind == kind::DATA).map(|frame| &frame.payload[..]).collect();
    assert_eq!(sent, [b"01234567".as_slice(), b"0123"], "4 with 1 and 3 more, and 4");
    assert_eq!(answered(&exchange(&mut connection, &[widen(3, 6), widen(1, 2)].concat())), [3, 1]);
}

/// A request with a stream window widened by one before the request is whole.
fn widen_early(id: u32) -> Vec<u8> {
    let end = raw(kind::DATA, flag::END_STREAM, id, b"");
    [opening(id), raw(kind::WINDOW_UPDATE, 0, id, &[0, 0, 0, 1]), end].concat()
}

#[test]
fn a_window_above_the_largest_ends_a_stream_that_waits_and_no_other() {
    let due = Instant::now() + Duration::from_secs(1);
    let mut connection = greeted(Recorder { whens: vec![When::At(due); 2], ..Recorder::default() });
    let wide = raw(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff]);
    let frames = exchange(&mut connection, &[request(1), request(3), wide].concat());
    assert_eq!(resets(&frames), [(1, ErrorCode::FLOW_CONTROL_ERROR.0)]);
    connection.send_due(due);
    assert_eq!(answered(&said(&mut connection)), [3]);
    let settings = raw(kind::SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    let all = [request(5), raw(kind::WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]), settings].concat();
    let mut connection = greeted(Recorder { whens: vec![When::At(due)], ..Recorder::default() });
    assert_eq!(goaway_code(&exchange(&mut connection, &all)), Some(ErrorCode::FLOW_CONTROL_ERROR.0));
}
