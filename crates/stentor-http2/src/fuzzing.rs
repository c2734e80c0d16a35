//! Entry point for fuzz targets: bytes from a peer on a connection with open requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};
use stentor_http2_codec::frame::{FRAME_HEADER_BYTES, FrameHeader, PAYLOAD_LIMIT_BYTES, flag, kind};
use stentor_http2_codec::hpack::{Decoder, OwnedField};
use tokio::time::Instant;

use crate::batch::{Keep, Request, RequestBatch};
use crate::connection::mux::Mux;
use crate::connection::violation::Violation;
use crate::fault::Fault;
use crate::gather::Gather;
use crate::limits::Limits;
use crate::work::{Run, Work};

/// Sizes of the request bodies, in turn: small, larger than a hostile window, larger than a frame.
const BODIES_BYTES: [usize; 3] = [1, 100, 20_000];
/// Requests opened at the beginning.
const FIRST_COUNT: usize = BODIES_BYTES.len();
/// Total number of requests. The others are opened after input from the peer that causes a reply, such as SETTINGS.
const REQUESTS_COUNT: usize = 24;
/// Headers of every request, and the length of their values in bytes.
const CONSTANT: [(&str, usize); 2] = [("authorization", 900), ("constant", 40)];

/// Feeds `bytes` from a peer in pieces of `piece` bytes. Checks that every request has ended exactly once, and that the peer could decode
/// every header block.
///
/// # Panics
///
/// If a check fails, which is the purpose of a fuzz target.
pub fn hear(bytes: &[u8], piece: usize, keep: Keep) {
    let mut connection = FuzzedConnection::begin(keep);
    for part in bytes.chunks(piece.max(1)) {
        match connection.hear(part) {
            Err(_) => break,
            Ok(answers) if answers => connection.open(1),
            Ok(_) => {}
        }
    }
    connection.end();
}

/// A connection, and the necessary parts of its peer.
struct FuzzedConnection {
    mux: Mux,
    /// Requests that are not opened yet.
    rest: Run,
    /// Received bytes that do not form a whole frame.
    held: Vec<u8>,
    ended: Vec<u32>,
    /// The peer's header table.
    decoder: Decoder<()>,
}

impl FuzzedConnection {
    fn begin(keep: Keep) -> Self {
        let mut mux = Mux::new(&Limits::default());
        let mut settings = Vec::new();
        stentor_http2_codec::frame::write(kind::SETTINGS, 0, 0, &[], &mut settings);
        let _ = mux.receive(&settings);
        mux.note_taken(mux.out.len());
        mux.out.clear();
        let mut connection =
            Self { mux, rest: requests(keep), held: Vec::new(), ended: Vec::new(), decoder: Decoder::new() };
        connection.open(FIRST_COUNT);
        connection
    }

    /// Opens up to `count` more streams, as far as the peer permits.
    fn open(&mut self, count: usize) {
        let mut run = self.rest.split(count.min(self.mux.room(REQUESTS_COUNT)));
        let batch = self.mux.enlist(&run.work, run.len() as u32);
        self.mux.open(batch, &mut run, 0, usize::MAX, |_, fault| panic!("{fault}"));
        assert_eq!(run.len(), 0, "the buffer has no bounds here");
        self.mux.let_go(batch, 0);
        self.write();
    }

    /// Processes input from the peer; returns true if it caused a reply.
    fn hear(&mut self, part: &[u8]) -> Result<bool, Violation> {
        self.held.extend_from_slice(part);
        let used = self.mux.receive(&self.held)?;
        self.held.drain(..used);
        let answers = !self.mux.out.is_empty();
        self.write();
        self.collect();
        Ok(answers)
    }

    /// Takes the output and reads it as the peer does.
    fn write(&mut self) {
        let out = std::mem::take(&mut self.mux.out);
        self.mux.note_taken(out.len());
        assert!(self.mux.peer.window_bytes >= 0, "more was written than the peer takes");
        let mut rest = &out[..];
        while let Some(head) = FrameHeader::read(rest) {
            assert!(head.length <= PAYLOAD_LIMIT_BYTES);
            let (payload, after) = rest[FRAME_HEADER_BYTES..].split_at(head.length);
            if head.kind == kind::HEADERS {
                assert!(head.has(flag::END_HEADERS), "the block is smaller than any frame");
                self.read(payload);
            }
            rest = after;
        }
        assert!(rest.is_empty(), "whole frames only");
    }

    /// Decodes a header block as the peer does.
    fn read(&mut self, block: &[u8]) {
        let mut seen = Gather::new(true, usize::MAX);
        self.decoder.decode(block, &mut seen).expect("well-formed");
        assert_eq!(
            self.decoder.table_bytes(),
            self.mux.table_bytes(),
            "the peer knows the size of the table"
        );
        for (name, bytes) in CONSTANT {
            assert_eq!(seen.headers.get(name).map(HeaderValue::len), Some(bytes), "{name}");
        }
    }

    fn collect(&mut self) {
        let (mut ended, mut plain) = (Vec::new(), Vec::new());
        self.mux.take_ended(&mut ended, &mut plain);
        let others = ended.iter().map(|one| (one.open.batch, one.open.index));
        for (batch, index) in others.chain(plain.iter().map(|one| (one.batch, one.index))) {
            self.ended.push(index);
            self.mux.let_go(batch, 1);
        }
    }

    /// Ends the connection; returns the number of opened requests.
    fn end(mut self) -> u32 {
        self.mux.end_all(&Fault::Closed);
        self.collect();
        self.ended.sort_unstable();
        let opened = self.rest.from;
        assert!(self.ended.iter().copied().eq(0..opened), "of {opened} ended: {:?}", self.ended);
        assert!(self.mux.is_at_rest(), "something of them is left");
        opened
    }
}

fn requests(keep: Keep) -> Run {
    let request = |length: &usize| Request {
        path: PathAndQuery::from_static("/"),
        headers: Vec::new(),
        body: Bytes::from(vec![b'b'; *length]),
    };
    let requests: Vec<Request> = BODIES_BYTES.iter().cycle().take(REQUESTS_COUNT).map(request).collect();
    let header = |(name, bytes): (&'static str, usize)| {
        let value = HeaderValue::try_from("v".repeat(bytes)).expect("printable");
        (HeaderName::from_static(name), value)
    };
    let constant = CONSTANT.map(header).to_vec();
    let batch = RequestBatch {
        constant,
        path: None,
        requests: Arc::new(requests),
        start_within: None,
        keep,
        repeated: false,
    };
    let method = OwnedField { name: b":method".to_vec(), value: b"POST".to_vec(), repeats: true };
    let work = Work::new(batch, &[method], Instant::now() + Duration::from_secs(60));
    Run { to: work.count, work, from: 0, resends: 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use stentor_http2_codec::frame::setting;

    fn settings(id: u16, value: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let entry = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        stentor_http2_codec::frame::write(kind::SETTINGS, 0, 0, &entry, &mut out);
        out
    }

    #[test]
    fn a_peer_that_answers_one_request_and_leaves_ends_them_all() {
        hear(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88], 3, Keep::Refusals);
    }

    #[test]
    fn requests_go_on_behind_settings_that_shrink_and_grow_everything() {
        let mut connection = FuzzedConnection::begin(Keep::All);
        for (id, value) in [
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::HEADER_TABLE_SIZE, 100),
            (setting::INITIAL_WINDOW_SIZE, 0),
            (setting::HEADER_TABLE_SIZE, 1 << 20),
            (setting::MAX_FRAME_SIZE, 1 << 20),
            (setting::INITIAL_WINDOW_SIZE, 1 << 20),
        ] {
            assert!(connection.hear(&settings(id, value)).expect("good settings"));
            connection.open(1);
        }
        assert_eq!(connection.end(), FIRST_COUNT as u32 + 6);
    }

    #[test]
    fn a_peer_that_allows_no_stream_gets_no_more_until_it_does() {
        let mut connection = FuzzedConnection::begin(Keep::All);
        for most in [0, 1, 3] {
            connection.hear(&settings(setting::MAX_CONCURRENT_STREAMS, most)).expect("good settings");
            connection.open(1);
        }
        assert_eq!(connection.rest.from, FIRST_COUNT as u32);
        connection.hear(&settings(setting::MAX_CONCURRENT_STREAMS, 4)).expect("good settings");
        connection.open(2);
        assert_eq!(connection.end(), FIRST_COUNT as u32 + 1);
    }

    fn any_setting() -> impl Strategy<Value = (u16, u32)> {
        let table = prop_oneof![Just(0), 0..5_000_u32, Just(u32::MAX)];
        let window = prop_oneof![Just(0), 0..100_000_u32, Just((1 << 31) - 1)];
        let frame = prop_oneof![Just(16_384), 16_384..30_000_u32, Just((1 << 24) - 1)];
        let streams = prop_oneof![1 => Just(0), 4 => 0..40_u32, 1 => Just(u32::MAX)];
        prop_oneof![
            3 => table.prop_map(|bytes| (setting::HEADER_TABLE_SIZE, bytes)),
            3 => window.prop_map(|bytes| (setting::INITIAL_WINDOW_SIZE, bytes)),
            1 => frame.prop_map(|bytes| (setting::MAX_FRAME_SIZE, bytes)),
            2 => streams.prop_map(|most| (setting::MAX_CONCURRENT_STREAMS, most)),
        ]
    }

    proptest! {
        #[test]
        fn the_peer_can_read_every_request_whatever_it_set_before(
            settings in prop::collection::vec((any_setting(), 0..3_usize), 1..40),
        ) {
            let mut connection = FuzzedConnection::begin(Keep::All);
            for ((id, value), count) in settings {
                prop_assert!(connection.hear(&self::settings(id, value)).expect("good settings"));
                connection.open(count);
            }
            connection.end();
        }
    }
}
