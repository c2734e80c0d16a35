//! A request is independent of the frames that carry it.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The style in which a frame is written.
#[derive(Clone, Debug)]
struct FrameStyle {
    /// Bytes of padding, if it is padded.
    padding: Option<u8>,
    priority: bool,
    /// Bytes written before the frame, in places that allow any frame.
    before: Vec<u8>,
}

fn any_style() -> impl Strategy<Value = FrameStyle> {
    let meaningless = prop_oneof![
        4 => Just(Vec::new()),
        1 => Just(raw(kind::PRIORITY, 0, 3, &[0, 0, 0, 1, 7])),
        1 => Just(raw(0xbb, 0xff, 1, b"unknown")),
        1 => Just(raw(kind::SETTINGS, 0, 0, &[0, 0x77, 0, 0, 0, 1])),
        1 => Just(raw(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        1 => Just(raw(kind::DATA, 0, 1, &[])),
    ];
    (prop::option::of(any::<u8>()), any::<bool>(), meaningless)
        .prop_map(|(padding, priority, before)| FrameStyle { padding, priority, before })
}

/// A frame with its padding, and with a priority if it has headers.
fn styled(kind: u8, mut flags: u8, style: &FrameStyle, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(padding) = style.padding {
        flags |= flag::PADDED;
        bytes.push(padding);
    }
    if kind == kind::HEADERS && style.priority {
        flags |= flag::PRIORITY;
        bytes.extend([0x80, 0, 0, 0, 9]);
    }
    bytes.extend_from_slice(payload);
    bytes.extend(std::iter::repeat_n(0, usize::from(style.padding.unwrap_or(0))));
    raw(kind, flags, 1, &bytes)
}

/// Cuts bytes into pieces of these lengths, in turn.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        let (piece, rest) = bytes.split_at(bytes.len().min(*length));
        pieces.push(piece);
        bytes = rest;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// A block in a HEADERS frame and as many CONTINUATION frames as it takes.
fn block(fields: &[u8], end: u8, style: &FrameStyle, lengths: &[usize]) -> Vec<u8> {
    let pieces = pieces(fields, lengths);
    let mut bytes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let whole = if at + 1 == pieces.len() { flag::END_HEADERS } else { 0 };
        match at {
            0 => bytes.extend(styled(kind::HEADERS, end | whole, style, piece)),
            _ => bytes.extend(raw(kind::CONTINUATION, whole, 1, piece)),
        }
    }
    bytes
}

proptest! {
    #[test]
    fn whatever_frames_a_request_comes_in_it_is_the_same(
        body in vec(any::<u8>(), 0..3_000),
        values in vec("[a-z]{0,300}", 0..6),
        trailers in any::<bool>(),
        dresses in vec(any_style(), 1..6),
        blocks in vec(1..200_usize, 1..5),
        data in vec(prop_oneof![1..50_usize, 1..2_000_usize], 1..5),
        cuts in vec(1..700_usize, 1..8),
    ) {
        let fields: Vec<u8> = values.iter().flat_map(|value| literal("x-value", value)).collect();
        let mut style = dresses.iter().cycle();
        let mut bytes = [PREFACE.to_vec(), raw(kind::SETTINGS, 0, 0, &[])].concat();
        bytes.extend(block(&post(&fields), 0, style.next().unwrap(), &blocks));
        let parts = pieces(&body, &data);
        for (at, part) in parts.iter().enumerate() {
            let style = style.next().unwrap();
            let end = if at + 1 == parts.len() && !trailers { flag::END_STREAM } else { 0 };
            bytes.extend_from_slice(&style.before);
            bytes.extend(styled(kind::DATA, end, style, part));
        }
        if trailers {
            bytes.extend(block(&literal("x-trailer", "4"), flag::END_STREAM, style.next().unwrap(), &blocks));
        }
        let host = Recorder::default();
        let mut connection = Connection::new(host.clone(), LIMITS);
        let mut inbox = Vec::new();
        for piece in pieces(&bytes, &cuts) {
            inbox.extend_from_slice(piece);
            let used = connection.receive(&inbox, Instant::now());
            inbox.drain(..used);
        }
        prop_assert_eq!(answered(&said(&mut connection)), [1]);
        let requests = host.requests();
        prop_assert_eq!(requests.len(), 1);
        prop_assert_eq!(requests[0].body.as_deref(), Some(&body[..]));
        let seen: Vec<_> = requests[0].fields[3..].iter().map(|(_, value)| value.as_slice()).collect();
        prop_assert_eq!(seen, values.iter().map(|value| value.as_bytes()).collect::<Vec<_>>());
    }
}
