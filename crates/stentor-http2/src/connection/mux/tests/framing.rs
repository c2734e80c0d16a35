//! Responses are independent of their division into frames.

use super::*;

/// The style of a frame: its padding, its priority, and the bytes inserted before it where any frame may come.
type FrameStyle = (Option<u8>, bool, Vec<u8>);

fn any_style() -> impl Strategy<Value = FrameStyle> {
    let meaningless = prop_oneof![
        4 => Just(Vec::new()),
        1 => Just(frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 3, 7])),
        1 => Just(frame(0xbb, 0xff, 1, b"unknown")),
        1 => Just(settings(&[(setting::HEADER_TABLE_SIZE, 0), (0x77, 1)])),
        1 => Just(frame(kind::PING, 0, 0, &[7; 8])),
        1 => Just(frame(kind::DATA, 0, 3, b"of another stream")),
    ];
    (proptest::option::of(any::<u8>()), any::<bool>(), meaningless)
}

fn styled(kind: u8, mut flags: u8, (padding, priority, _): &FrameStyle, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(padding) = padding {
        flags |= flag::PADDED;
        bytes.push(*padding);
    }
    if kind == kind::HEADERS && *priority {
        flags |= flag::PRIORITY;
        bytes.extend([0, 0, 0, 0, 9]);
    }
    bytes.extend_from_slice(payload);
    bytes.extend(std::iter::repeat_n(0, usize::from(padding.unwrap_or(0))));
    frame(kind, flags, 1, &bytes)
}

/// Cuts bytes into pieces of these lengths, in turn; at least one.
fn pieces<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for length in lengths.iter().cycle() {
        let (piece, after) = rest.split_at(rest.len().min(*length));
        pieces.push(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// A block in a HEADERS frame and as many CONTINUATION frames as it takes.
fn block(fields: &[u8], ends: u8, style: &FrameStyle, lengths: &[usize]) -> Vec<u8> {
    let pieces = pieces(fields, lengths);
    let last = pieces.len() - 1;
    let piece = |(at, piece): (usize, &&[u8])| {
        let whole = if at == last { flag::END_HEADERS } else { 0 };
        match at {
            0 => styled(kind::HEADERS, ends | whole, style, piece),
            _ => frame(kind::CONTINUATION, whole, 1, piece),
        }
    };
    pieces.iter().enumerate().flat_map(piece).collect()
}

fn fields(status: &str, values: &[String]) -> Vec<u8> {
    let mut block = [&[0x08, 3][..], status.as_bytes()].concat();
    values.iter().for_each(|value| {
        stentor_http2_codec::hpack::write_literal(b"x-value", value.as_bytes(), &mut block)
    });
    block
}

proptest! {
    #[test]
    fn whatever_frames_an_answer_comes_in_it_is_the_same(
        status in prop_oneof![Just("200"), Just("404"), Just("503")],
        said in vec(any::<u8>(), 0..3_000),
        values in vec("[a-z]{0,300}", 0..6),
        (informs, trailers) in any::<(bool, bool)>(),
        dresses in vec(any_style(), 1..6),
        blocks in vec(1..200_usize, 1..5),
        data in vec(prop_oneof![1..50_usize, 1..2_000_usize], 1..5),
        cuts in vec(1..700_usize, 1..8),
    ) {
        let mut mux = talking(&[], &[1, 1], Keep::All);
        hear(&mut mux, &frame(kind::HEADERS, flag::END_HEADERS, 3, &[STATUS_200])).expect("good");
        let mut style = dresses.iter().cycle();
        let mut next = || style.next().expect("endless");
        let mut bytes = Vec::new();
        if informs {
            bytes.extend(block(&fields("103", &values), 0, next(), &blocks));
        }
        bytes.extend(block(&fields(status, &values), 0, next(), &blocks));
        let parts = pieces(&said, &data);
        for (at, part) in parts.iter().enumerate() {
            let style = next();
            let ends = if at + 1 == parts.len() && !trailers { flag::END_STREAM } else { 0 };
            bytes.extend_from_slice(&style.2);
            bytes.extend(styled(kind::DATA, ends, style, part));
        }
        if trailers {
            bytes.extend(block(b"\x00\x01t\x011", flag::END_STREAM, next(), &blocks));
        }
        let mut held = Vec::new();
        for piece in pieces(&bytes, &cuts) {
            held.extend_from_slice(piece);
            let used = mux.receive(&held).expect("good");
            held.drain(..used);
        }
        let ends = ends(&mut mux);
        let [(0, Reply::Answered(response))] = &ends[..] else { panic!("{ends:?}") };
        prop_assert_eq!(response.status.to_string(), status);
        prop_assert!(response.body() == said && !response.truncated, "{:?} of {}", response, said.len());
        let header = response.header("x-value").map(|value| value.as_bytes());
        prop_assert_eq!(header, values.first().map(|value| value.as_bytes()));
    }
}
