mod framing;

use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use proptest::collection::vec;
use proptest::prelude::*;
use stentor_http2_codec::frame::{FRAME_HEADER_BYTES, FrameHeader, flag};
use stentor_http2_codec::hpack::OwnedField;
use tokio::time::Instant;

use super::*;
use crate::batch::{EXCERPT_BODY_MAX_BYTES, Excerpt, Keep, Request, RequestBatch as Requests};
use crate::connection::violation::Violation;
use crate::response::PLAIN_STATUS;
use crate::work::Run;

const STATUS_200: u8 = 0x88;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(kind, flags, stream, payload, &mut out);
    out
}

fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat();
    frame(kind::SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

fn work(bodies: &[usize], keep: Keep) -> Run {
    let path = PathAndQuery::from_static("/x");
    let request = |length: &usize| Request {
        path: path.clone(),
        headers: Vec::new(),
        body: Bytes::from(vec![b'b'; *length]),
    };
    let requests: Vec<Request> = bodies.iter().map(request).collect();
    let work = with_keep(Arc::new(requests), keep);
    let to = work.count;
    Run { work, from: 0, to, resends: 0 }
}

fn with_requests(requests: impl crate::batch::Requests + 'static) -> Arc<Work> {
    with_keep(Arc::new(requests), Keep::All)
}

fn with_keep(requests: Arc<dyn crate::batch::Requests>, keep: Keep) -> Arc<Work> {
    let batch =
        Requests { constant: Vec::new(), path: None, requests, start_within: None, keep, repeated: false };
    let method = OwnedField { name: b":method".to_vec(), value: b"POST".to_vec(), repeats: true };
    Work::new(batch, &[method], Instant::now() + Duration::from_secs(60))
}

/// Creates a connection that has received these settings and opened one stream for each body.
fn talking(entries: &[(u16, u32)], bodies: &[usize], keep: Keep) -> Mux {
    let mut mux = Mux::new(&Limits::default());
    hear(&mut mux, &settings(entries)).expect("good settings");
    mux.out.clear();
    let mut run = work(bodies, keep);
    let batch = mux.enlist(&run.work, bodies.len() as u32);
    mux.open(batch, &mut run, 0, usize::MAX, |_, fault| panic!("{fault}"));
    mux
}

fn hear(mux: &mut Mux, bytes: &[u8]) -> Result<(), Violation> {
    assert_eq!(mux.receive(bytes)?, bytes.len());
    Ok(())
}

/// Splits the output into frames: kind, flags, stream, payload.
fn written(mux: &mut Mux) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let out = std::mem::take(&mut mux.out);
    mux.note_taken(out.len());
    let (mut rest, mut frames) = (&out[..], Vec::new());
    while let Some(head) = FrameHeader::read(rest) {
        let payload = rest[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + head.length].to_vec();
        frames.push((head.kind, head.flags, head.stream, payload));
        rest = &rest[FRAME_HEADER_BYTES + head.length..];
    }
    assert!(rest.is_empty());
    frames
}

/// Counts the body bytes written for a stream; the flag is true if its end was written.
fn body(frames: &[(u8, u8, u32, Vec<u8>)], stream: u32) -> (usize, bool) {
    let of_stream = frames.iter().filter(|(kind, _, id, _)| *kind == kind::DATA && *id == stream);
    of_stream.fold((0, false), |(bytes, ended), (_, flags, _, payload)| {
        (bytes + payload.len(), ended || flags & flag::END_STREAM != 0)
    })
}

fn ends(mux: &mut Mux) -> Vec<(u32, Reply)> {
    let (mut ended, mut plain) = (Vec::new(), Vec::new());
    mux.take_ended(&mut ended, &mut plain);
    let answer = || Reply::Answered(Response::new(PLAIN_STATUS, false, None));
    let plain = plain.into_iter().map(|plain| (plain.index, answer()));
    plain.chain(ended.into_iter().map(|ended| (ended.open.index, ended.reply))).collect()
}

fn answered(mux: &mut Mux) -> (u16, String, bool) {
    let ends = ends(mux);
    let [(_, Reply::Answered(response))] = &ends[..] else { panic!("{ends:?}") };
    (response.status, String::from_utf8_lossy(response.body()).into_owned(), response.truncated)
}

#[test]
fn nothing_is_opened_before_the_peer_s_settings() {
    let mut mux = Mux::new(&Limits::default());
    assert_eq!(mux.room(100), 0);
    hear(&mut mux, &settings(&[(setting::MAX_CONCURRENT_STREAMS, 7)])).expect("good settings");
    assert_eq!(mux.room(100), 7);
}

#[test]
fn padding_priority_and_continuation_are_taken_off() {
    let mut mux = talking(&[], &[1], Keep::All);
    // Two bytes of padding, five of priority, the status in two pieces of a literal.
    let headers = [2, 0, 0, 0, 0, 9, 0x08, 0x03, b'4', 0, 0];
    hear(&mut mux, &frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, &headers)).expect("good");
    hear(&mut mux, &frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"10")).expect("good");
    hear(&mut mux, &frame(kind::DATA, flag::PADDED, 1, b"\x03gone\0\0\0")).expect("good");
    hear(&mut mux, &frame(kind::DATA, flag::PADDED | flag::END_STREAM, 1, b"\x00!")).expect("good");
    assert_eq!(answered(&mut mux), (410, "gone!".into(), false));
}

#[test]
fn informational_heads_and_trailers_are_passed_over() {
    let mut mux = talking(&[], &[1], Keep::All);
    hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x08\x03103")).expect("good");
    hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, 1, &[STATUS_200])).expect("good");
    hear(&mut mux, &frame(kind::DATA, 0, 1, b"body")).expect("good");
    let trailers = flag::END_HEADERS | flag::END_STREAM;
    hear(&mut mux, &frame(kind::HEADERS, trailers, 1, b"\x00\x01t\x011")).expect("good");
    assert_eq!(answered(&mut mux), (200, "body".into(), false));
}

#[test]
fn a_success_that_nobody_wants_whole_keeps_nothing() {
    let mut mux = talking(&[], &[1, 1], Keep::Refusals);
    for (stream, head) in [(1, &b"\x08\x03200"[..]), (3, b"\x08\x03500")] {
        hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, stream, head)).expect("good");
        hear(&mut mux, &frame(kind::DATA, flag::END_STREAM, stream, b"body")).expect("good");
    }
    let bodies: Vec<(u16, Vec<u8>)> = ends(&mut mux)
        .into_iter()
        .map(|(_, reply)| match reply {
            Reply::Answered(response) => (response.status, response.body().to_vec()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(bodies, [(200, Vec::new()), (500, b"body".to_vec())]);
}

#[test]
fn a_body_goes_as_far_as_the_stream_s_window_lets_it_and_on_when_it_widens() {
    let mut mux = talking(&[(setting::INITIAL_WINDOW_SIZE, 10)], &[25], Keep::All);
    assert_eq!(body(&written(&mut mux), 1), (10, false));
    hear(&mut mux, &frame(kind::WINDOW_UPDATE, 0, 1, &5_u32.to_be_bytes())).expect("good");
    assert_eq!(body(&written(&mut mux), 1), (5, false));
    // New settings move every window, also below zero and back.
    hear(&mut mux, &settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).expect("good");
    hear(&mut mux, &frame(kind::WINDOW_UPDATE, 0, 1, &10_u32.to_be_bytes())).expect("good");
    assert_eq!(body(&written(&mut mux), 1), (0, false));
    hear(&mut mux, &settings(&[(setting::INITIAL_WINDOW_SIZE, 10)])).expect("good");
    assert_eq!(body(&written(&mut mux), 1), (10, true));
}

#[test]
fn a_connection_without_window_opens_no_more_streams() {
    let window = frame::WINDOW_DEFAULT_BYTES as usize;
    let mut mux = talking(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)], &[window + 1], Keep::All);
    assert_eq!(body(&written(&mut mux), 1), (window, false));
    assert_eq!(mux.room(100), 0);
    hear(&mut mux, &frame(kind::WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())).expect("good");
    assert_eq!(body(&written(&mut mux), 1), (1, true));
    assert_eq!(mux.room(100), 99);
}

#[test]
fn bodies_and_header_blocks_are_cut_to_the_frames_that_the_peer_takes() {
    let mut mux = talking(&[], &[40_000], Keep::All);
    let frames = written(&mut mux);
    assert!(frames.iter().all(|(.., payload)| payload.len() <= 16_384));
    assert_eq!(body(&frames, 1), (40_000, true));
    let mut run = work(&[1], Keep::All);
    let long = HeaderLine(vec![b'p'; 20_000]);
    run.work = with_requests(long);
    let batch = mux.enlist(&run.work, 1);
    mux.open(batch, &mut run, 0, usize::MAX, |_, fault| panic!("{fault}"));
    let kinds: Vec<(u8, u8)> = written(&mut mux).iter().map(|(kind, flags, ..)| (*kind, *flags)).collect();
    let expected =
        [(kind::HEADERS, 0), (kind::CONTINUATION, flag::END_HEADERS), (kind::DATA, flag::END_STREAM)];
    assert_eq!(kinds, expected);
}

/// One request with a header of this size.
struct HeaderLine(Vec<u8>);

impl crate::batch::Requests for HeaderLine {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, _: usize, line: &mut crate::line::Line<'_>) {
        line.path(&[b"/"]);
        line.header(&http::header::REFERER, &self.0);
        line.body(&[b"x"]);
    }
}

#[test]
fn a_request_that_cannot_be_written_is_refused_and_the_next_one_goes() {
    let mut mux = talking(&[], &[], Keep::All);
    let mut run = work(&[1], Keep::All);
    run.work = with_requests(HeaderLine(b"a\r\nb".to_vec()));
    let batch = mux.enlist(&run.work, 1);
    let mut refused = Vec::new();
    mux.open(batch, &mut run, 0, usize::MAX, |index, _| refused.push(index));
    assert_eq!((refused, written(&mut mux)), (vec![0], Vec::new()));
    let mut run = work(&[1], Keep::All);
    let batch = mux.enlist(&run.work, 1);
    mux.open(batch, &mut run, 0, usize::MAX, |_, fault| panic!("{fault}"));
    assert_eq!(body(&written(&mut mux), 1), (1, true));
}

#[test]
fn streams_above_the_last_one_of_a_goaway_were_not_processed() {
    let mut mux = talking(&[], &[1, 1, 1], Keep::All);
    written(&mut mux);
    let goaway = |last: u32| frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat());
    hear(&mut mux, &goaway((1 << 31) - 1)).expect("good");
    assert!(ends(&mut mux).is_empty());
    hear(&mut mux, &goaway(1)).expect("good");
    let ends = ends(&mut mux);
    assert_eq!(ends.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2]);
    assert!(ends.iter().all(|(_, reply)| matches!(reply, Reply::NotSent(Fault::GoAway(_)))));
    assert_eq!((mux.room(100), mux.streams.len()), (0, 1));
}

#[test]
fn what_was_never_taken_for_writing_was_not_sent() {
    let mut mux = talking(&[], &[1], Keep::All);
    written(&mut mux);
    let mut run = work(&[1], Keep::All);
    let batch = mux.enlist(&run.work, 1);
    mux.open(batch, &mut run, 0, usize::MAX, |_, fault| panic!("{fault}"));
    mux.end_all(&Fault::Timeout);
    let ends = ends(&mut mux);
    assert!(matches!(&ends[..], [(0, Reply::Unanswered(_)), (0, Reply::NotSent(_))]), "{ends:?}");
}

#[test]
fn an_answer_before_the_end_of_the_request_cancels_its_rest() {
    let mut mux = talking(&[(setting::INITIAL_WINDOW_SIZE, 1)], &[100], Keep::All);
    written(&mut mux);
    let flags = flag::END_HEADERS | flag::END_STREAM;
    hear(&mut mux, &frame(kind::HEADERS, flags, 1, b"\x08\x03413")).expect("good");
    assert_eq!(answered(&mut mux).0, 413);
    let resets = written(&mut mux);
    assert_eq!(resets, [(kind::RST_STREAM, 0, 1, ErrorCode::CANCEL.0.to_be_bytes().to_vec())]);
    hear(&mut mux, &frame(kind::WINDOW_UPDATE, 0, 1, &9_u32.to_be_bytes())).expect("good");
    assert!(written(&mut mux).is_empty());
}

const EXCERPT: Excerpt =
    Excerpt { headers: &["retry-after"], body: |body| body[..body.len().min(3)].to_vec() };

/// A header field without use of any table.
fn literal(name: &str, value: &[u8]) -> Vec<u8> {
    // Lengths of 127 and more go on in octets of seven bits each.
    let length = match value.len().checked_sub(127) {
        None => vec![value.len() as u8],
        Some(rest) => vec![0x7f, 0x80 | (rest & 0x7f) as u8, (rest >> 7) as u8],
    };
    [&[0, name.len() as u8], name.as_bytes(), &length, value].concat()
}

#[test]
fn of_a_long_refusal_only_the_excerpt_is_held_until_its_batch_ends() {
    let count = 200;
    let mut mux = talking(&[], &vec![1; count], Keep::Excerpts(EXCERPT));
    let block = [&[0x8e][..], &literal("retry-after", b"7"), &literal("x-page", &[b'p'; 15_000])].concat();
    for stream in (0..count as u32).map(|at| 2 * at + 1) {
        hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, stream, &block)).expect("good");
        hear(&mut mux, &frame(kind::DATA, flag::END_STREAM, stream, &[b'b'; 8_000])).expect("good");
    }
    let ends = ends(&mut mux);
    let responses = ends.iter().filter_map(|(_, reply)| match reply {
        Reply::Answered(response) => Some(response),
        _ => None,
    });
    let mut held = 0;
    for response in responses.clone() {
        let wait = response.header("retry-after").map(|value| value.as_bytes());
        assert_eq!((response.status, wait, response.body()), (500, Some(&b"7"[..]), &b"bbb"[..]));
        held += response.kept_bytes();
    }
    assert_eq!(responses.count(), count);
    assert!(held <= count * 32, "{held}");
    assert_eq!(mux.unread_bytes, 0);
}

#[test]
fn an_excerpt_that_is_long_itself_is_not_held() {
    let excerpt = Excerpt { body: <[u8]>::to_vec, ..EXCERPT };
    let mut mux = talking(&[], &[1], Keep::Excerpts(excerpt));
    let block = [&[0x8e][..], &literal("retry-after", &[b'1'; 129])].concat();
    hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, 1, &block)).expect("good");
    let body = [b'b'; EXCERPT_BODY_MAX_BYTES + 1];
    hear(&mut mux, &frame(kind::DATA, flag::END_STREAM, 1, &body)).expect("good");
    let ends = ends(&mut mux);
    let [(_, Reply::Answered(response))] = &ends[..] else { panic!("{ends:?}") };
    assert_eq!((response.status, response.kept_bytes(), response.truncated), (500, 0, true));
}

#[test]
fn answers_that_never_end_hold_no_more_than_a_connection_may() {
    let count = 300;
    let mut mux = talking(&[], &vec![1; count], Keep::Excerpts(EXCERPT));
    for stream in (0..count as u32).map(|at| 2 * at + 1) {
        hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x8e])).expect("good");
        hear(&mut mux, &frame(kind::DATA, 0, stream, &[b'b'; 8_000])).expect("good");
    }
    let held: usize = mux.kept.values().map(|content| content.body.len()).sum();
    assert_eq!((held, mux.unread_bytes), (UNREAD_MAX_BYTES, UNREAD_MAX_BYTES));
    mux.end_all(&Fault::Timeout);
    assert_eq!((mux.unread_bytes, ends(&mut mux).len()), (0, count));
}

#[test]
fn the_connection_s_window_is_given_back() {
    let mut mux = talking(&[], &[1], Keep::Refusals);
    written(&mut mux);
    hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, 1, &[STATUS_200])).expect("good");
    let data = frame(kind::DATA, 0, 1, &[0; 16_000]);
    let frames = CONNECTION_WINDOW_BYTES as usize / 2 / 16_000 + 1;
    (0..frames).for_each(|_| hear(&mut mux, &data).expect("good"));
    let updates: Vec<u32> = written(&mut mux)
        .iter()
        .filter(|(kind, ..)| *kind == kind::WINDOW_UPDATE)
        .filter_map(|(.., payload)| frame::number(payload, 0))
        .collect();
    assert_eq!(updates, [frames as u32 * 16_000]);
}

#[test]
fn what_breaks_the_protocol_is_told_by_its_code() {
    let header = |stream, block: &[u8]| frame(kind::HEADERS, flag::END_HEADERS, stream, block);
    let cases = [
        (header(2, &[STATUS_200]), ErrorCode::PROTOCOL_ERROR),
        (header(5, &[STATUS_200]), ErrorCode::PROTOCOL_ERROR),
        (header(0, &[STATUS_200]), ErrorCode::PROTOCOL_ERROR),
        (header(1, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        (frame(kind::HEADERS, flag::PADDED, 1, &[9, STATUS_200]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[STATUS_200]), ErrorCode::PROTOCOL_ERROR),
        (
            [frame(kind::HEADERS, 0, 1, &[]), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            ErrorCode::PROTOCOL_ERROR,
        ),
        (frame(kind::PUSH_PROMISE, 0, 1, &[0; 8]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::PING, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR),
        (frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]), ErrorCode::FRAME_SIZE_ERROR),
        (settings(&[(setting::INITIAL_WINDOW_SIZE, u32::MAX)]), ErrorCode::FLOW_CONTROL_ERROR),
        (settings(&[(setting::MAX_FRAME_SIZE, 100)]), ErrorCode::PROTOCOL_ERROR),
        (settings(&[(setting::ENABLE_PUSH, 1)]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), ErrorCode::PROTOCOL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]), ErrorCode::FLOW_CONTROL_ERROR),
        (frame(kind::RST_STREAM, 0, 1, &[0; 3]), ErrorCode::FRAME_SIZE_ERROR),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE_ERROR),
        (frame(kind::DATA, 0, 0, &[]), ErrorCode::PROTOCOL_ERROR),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], ErrorCode::FRAME_SIZE_ERROR),
    ];
    for (bytes, code) in cases {
        let mut mux = talking(&[], &[1], Keep::All);
        let refused = mux.receive(&bytes).expect_err("a violation");
        assert_eq!(refused.0, code, "{refused:?} for {bytes:?}");
    }
}

#[test]
fn a_peer_that_only_asks_is_given_up() {
    let mut mux = talking(&[], &[], Keep::All);
    let flood = frame(kind::PING, 0, 0, &[0; 8]).repeat(80_000);
    assert_eq!(mux.receive(&flood).expect_err("too much").0, ErrorCode::ENHANCE_YOUR_CALM);
}

#[test]
fn a_header_block_without_an_end_is_given_up() {
    let mut mux = talking(&[], &[1], Keep::All);
    hear(&mut mux, &frame(kind::HEADERS, 0, 1, &[])).expect("good so far");
    let more = frame(kind::CONTINUATION, 0, 1, &[STATUS_200; 1_000]);
    let refused = (0..1_000).find_map(|_| mux.receive(&more).err()).expect("has an end");
    assert_eq!(refused.0, ErrorCode::ENHANCE_YOUR_CALM);
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![Just(0), Just(1), Just(3), Just(5), 0..12_u32];
    let payload = prop_oneof![vec(any::<u8>(), 0..20), Just(vec![STATUS_200]), vec(Just(0), 0..9)];
    (0..11_u8, any::<u8>(), stream, payload)
        .prop_map(|(k, flags, stream, payload)| frame(k, flags, stream, &payload))
}

proptest! {
    #[test]
    fn whatever_comes_every_stream_ends_once(frames in vec(any_frame(), 0..60), cuts in vec(1_usize..40, 1..20)) {
        let mut mux = talking(&[], &[1, 100, 20_000], Keep::All);
        let bytes = frames.concat();
        let (mut held, mut at, mut cuts) = (Vec::new(), 0, cuts.into_iter().cycle());
        let mut seen = Vec::new();
        while at < bytes.len() {
            let next = (at + cuts.next().unwrap_or(1)).min(bytes.len());
            held.extend_from_slice(&bytes[at..next]);
            at = next;
            match mux.receive(&held) {
                Ok(used) => { held.drain(..used); }
                Err(_) => break,
            }
            written(&mut mux);
        }
        mux.end_all(&Fault::Closed);
        seen.extend(ends(&mut mux).into_iter().map(|(index, _)| index));
        seen.sort_unstable();
        prop_assert_eq!(seen, [0, 1, 2]);
        prop_assert!(mux.streams.is_empty() && mux.blocked.is_empty() && mux.kept.is_empty());
    }
}
