//! Shared parts of the frame tests: a recording host, and the frames of a peer, written and read.

use super::{Admission, Connection, ConnectionLimits, EncodedAnswer, Field, Host, RequestBody, When};
use std::sync::{Arc, Mutex};
use stentor_http2_codec::frame::{self, ErrorCode, PREFACE, flag, kind};
use stentor_http2_codec::hpack::write_literal;
use tokio::time::Instant;

pub(super) type RigFields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request as a host saw it; no body is one that was too large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) fields: RigFields,
    pub(super) body: Option<Vec<u8>>,
}

/// Gives every request the same response and records the requests.
#[derive(Clone, Default)]
pub(super) struct Recorder {
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
    pub(super) reply: Vec<u8>,
    /// The times of the responses, from the last on; at once when the list is empty.
    pub(super) whens: Vec<When>,
}

impl Recorder {
    pub(super) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Host for Recorder {
    type Draft = RigFields;
    type Waiting = ();

    const MAX_BODY_BYTES: usize = 300_000;

    fn admit(&mut self, draft: &mut RigFields, in_excess: bool) -> Admission {
        draft.clear();
        if in_excess { Admission::Reset(ErrorCode::REFUSED_STREAM) } else { Admission::Take }
    }

    fn field(&mut self, draft: &mut RigFields, field: &Field<'_>) {
        draft.push((field.name.to_vec(), field.value.to_vec()));
    }

    fn answer(&mut self, draft: &mut RigFields, body: RequestBody<'_>, answer: &mut EncodedAnswer) -> When {
        let body = match body {
            RequestBody::Whole(body) => Some(body.to_vec()),
            RequestBody::TooLarge => None,
        };
        self.seen.lock().unwrap().push(Seen { fields: draft.clone(), body });
        answer.status(200);
        answer.body().extend_from_slice(&self.reply);
        self.whens.pop().unwrap_or(When::Now)
    }

    fn waits(&mut self, _draft: &mut RigFields) {}

    fn leaves(&mut self, (): ()) {}
}

pub(super) const LIMITS: ConnectionLimits =
    ConnectionLimits { max_concurrent_streams: 3, max_header_list_bytes: 16 * 1024 };

/// A connection with a completed handshake and its output drained.
pub(super) fn greeted(host: Recorder) -> Connection<Recorder> {
    let mut connection = Connection::new(host, LIMITS);
    let hello = [PREFACE.as_slice(), &raw(kind::SETTINGS, 0, 0, &[])].concat();
    assert_eq!(connection.receive(&hello, Instant::now()), hello.len());
    connection.sent();
    connection
}

/// Feeds bytes and takes the frames written in return.
pub(super) fn exchange(connection: &mut Connection<Recorder>, bytes: &[u8]) -> Vec<WrittenFrame> {
    connection.receive(bytes, Instant::now());
    said(connection)
}

/// Takes the frames that a connection has written.
pub(super) fn said(connection: &mut Connection<Recorder>) -> Vec<WrittenFrame> {
    let frames = read_frames(connection.out());
    connection.sent();
    frames
}

/// One frame that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenFrame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl WrittenFrame {
    /// The number at some place of the payload.
    pub(super) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    pub(super) fn is(&self, kind: u8, stream: u32) -> bool {
        self.kind == kind && self.stream == stream
    }
}

pub(super) fn read_frames(mut bytes: &[u8]) -> Vec<WrittenFrame> {
    let mut frames = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        let stream = u32::from_be_bytes(header[5..].try_into().unwrap());
        let (payload, rest) = rest.split_at(length);
        frames.push(WrittenFrame { kind: header[3], flags: header[4], stream, payload: payload.to_vec() });
        bytes = rest;
    }
    frames
}

/// A frame's bytes.
pub(super) fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(kind, flags, stream, payload, &mut bytes);
    bytes
}

/// A header block of POST https / with further bytes behind it.
pub(super) fn post(more: &[u8]) -> Vec<u8> {
    [&[0x83, 0x87, 0x84], more].concat()
}

/// A whole request without a body.
pub(super) fn request(stream: u32) -> Vec<u8> {
    raw(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &post(&[]))
}

/// A request with its body still to come.
pub(super) fn opening(stream: u32) -> Vec<u8> {
    raw(kind::HEADERS, flag::END_HEADERS, stream, &post(&[]))
}

/// A literal field that no table keeps.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut block = Vec::new();
    write_literal(name.as_bytes(), value.as_bytes(), &mut block);
    block
}
