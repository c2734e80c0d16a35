//! HTTP/2 itself, without IO. Input: bytes from the peer. Output: bytes for the peer and ended streams.
//!
//! Requests are written back to back into one buffer and responses are parsed in place, so that a request costs neither a task nor an
//! allocation.

mod reading;
mod writing;

use std::collections::HashMap;
use std::sync::Arc;

use stentor_http2_codec::frame::{self, ErrorCode, PREFACE, kind, setting};
use stentor_http2_codec::hpack::{Decoder, Encoder};

use super::blocked::Blocked;
use super::peer::Peer;
use super::streams::{Open, Streams};
use crate::batch::{Excerpt, Reply};
use crate::buffer_pool::{self, BufferPool, Pooled};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::response::{Response, ResponseContent};
use crate::work::Work;

/// Window of the connection. Responses are read at once, so it only bounds the bytes under way.
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1_024 * 1_024;
/// Body bytes admitted beyond `max_reply_drain_bytes`, until the reset arrives at the peer.
const STREAM_WINDOW_SLACK_BYTES: u32 = 64 * 1_024;

/// Body bytes of incomplete responses that a connection keeps when only excerpts are wanted. Push services send far less; excess bytes are
/// cut.
const UNREAD_MAX_BYTES: usize = 1_024 * 1_024;

/// An ended stream, with the reply to its request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) open: Open,
    pub(crate) reply: Reply,
}

/// A stream that ended with a 200 without kept content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) batch: u32,
    pub(crate) index: u32,
    pub(crate) opened_ms: u32,
}

thread_local! {
    static ENDED: BufferPool<Ended> = const { BufferPool::new() };
    static PLAIN: BufferPool<Plain> = const { BufferPool::new() };
}

impl Pooled for Ended {
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R {
        ENDED.with(act)
    }
}

impl Pooled for Plain {
    fn with_pool<R>(act: impl FnOnce(&BufferPool<Self>) -> R) -> R {
        PLAIN.with(act)
    }
}

/// Counters since they were last taken.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MuxCounts {
    pub(crate) resets: u64,
    pub(crate) goaways: u64,
}

/// One connection's state.
pub(crate) struct Mux {
    encoder: Encoder,
    decoder: Decoder<()>,
    pub(crate) peer: Peer,
    pub(crate) streams: Streams,
    blocked: Blocked,
    /// The batches with open requests on this connection. An empty slot is free.
    batches: Vec<Option<OpenBatch>>,
    /// Kept content of incomplete responses, by stream.
    kept: HashMap<u32, Box<ResponseContent>>,
    /// Body bytes in `kept`.
    unread_bytes: usize,
    /// A header block that awaits CONTINUATION frames.
    block: Option<reading::Block>,
    shared: writing::Shared,
    /// Bytes for the peer that are not taken yet.
    pub(crate) out: Vec<u8>,
    /// Number of bytes taken before those in `out`.
    taken_bytes: u64,
    /// Bytes read since the connection's window was last widened.
    unreturned_bytes: u32,
    ended: Vec<Ended>,
    plainly_ended: Vec<Plain>,
    pub(crate) counts: MuxCounts,
    keep_body_bytes: usize,
    drain_body_bytes: usize,
    keep_header_bytes: usize,
    /// The stream id from which on no more streams are opened.
    last_stream: u32,
}

/// A batch with requests open on this connection.
struct OpenBatch {
    work: Arc<Work>,
    open: u32,
}

impl Mux {
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut mux = Self {
            encoder: Encoder::new(),
            decoder: Decoder::new(),
            peer: Peer::default(),
            streams: Streams::default(),
            blocked: Blocked::default(),
            batches: Vec::new(),
            kept: HashMap::new(),
            unread_bytes: 0,
            block: None,
            shared: writing::Shared::default(),
            out: Vec::new(),
            taken_bytes: 0,
            unreturned_bytes: 0,
            ended: Vec::new(),
            plainly_ended: Vec::new(),
            counts: MuxCounts::default(),
            keep_body_bytes: limits.max_reply_body_bytes,
            drain_body_bytes: limits.max_reply_drain_bytes,
            keep_header_bytes: limits.max_reply_header_bytes as usize,
            last_stream: writing::last_stream(limits.max_requests_per_connection),
        };
        mux.greet(limits);
        mux
    }

    fn greet(&mut self, limits: &Limits) {
        let drain = u32::try_from(self.drain_body_bytes).unwrap_or(u32::MAX);
        let window = drain.saturating_add(STREAM_WINDOW_SLACK_BYTES).min(frame::WINDOW_MAX_BYTES);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, window),
            (setting::MAX_HEADER_LIST_SIZE, limits.max_reply_header_bytes),
        ];
        // SETTINGS must be the first frame (RFC 9113, section 3.4). The connection's window is no setting; only WINDOW_UPDATE widens it.
        self.out.extend_from_slice(PREFACE);
        frame::write_settings(&settings, &mut self.out);
        self.widen_window(CONNECTION_WINDOW_BYTES - frame::WINDOW_DEFAULT_BYTES);
    }

    /// Records that all `bytes` of `out` were taken and may have been sent.
    pub(crate) fn note_taken(&mut self, bytes: usize) {
        self.taken_bytes += bytes as u64;
    }

    /// Moves the ended streams out, and keeps the memory of both vectors for later ones.
    pub(crate) fn take_ended(&mut self, ended: &mut Vec<Ended>, plainly: &mut Vec<Plain>) {
        // Swapped: the caller's vectors are empty and have capacity, which serves the next streams.
        std::mem::swap(&mut self.ended, ended);
        std::mem::swap(&mut self.plainly_ended, plainly);
    }

    /// Takes buffers from the pool for reading and writing.
    pub(crate) fn acquire_buffers(&mut self) {
        buffer_pool::acquire(&mut self.out);
        buffer_pool::acquire(&mut self.ended);
        buffer_pool::acquire(&mut self.plainly_ended);
    }

    /// Returns the buffers to the pool; without open streams it also shrinks the ring.
    pub(crate) fn release_buffers(&mut self) {
        buffer_pool::release(&mut self.out);
        buffer_pool::release(&mut self.ended);
        buffer_pool::release(&mut self.plainly_ended);
        if self.streams.is_empty() {
            self.streams.rest();
        }
    }

    /// Returns true if no request has left any state.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.streams.is_empty()
            && self.blocked.is_empty()
            && self.kept.is_empty()
            && self.batches.iter().all(Option::is_none)
    }

    /// Returns the current size limit of the peer's table of header fields.
    pub(crate) const fn table_bytes(&self) -> usize {
        self.encoder.table_bytes()
    }

    /// Returns the work of an open or just ended stream.
    pub(crate) fn work(&self, batch: u32) -> Option<&Arc<Work>> {
        Some(&self.batches.get(batch as usize)?.as_ref()?.work)
    }

    /// Records that `count` ended streams of a batch were filed.
    pub(crate) fn let_go(&mut self, batch: u32, count: u32) {
        let Some(place) = self.batches.get_mut(batch as usize) else { return };
        let Some(held) = place else { return };
        held.open = held.open.saturating_sub(count);
        if held.open == 0 {
            *place = None;
            self.shared.forget(batch);
        }
    }

    /// Sends a PING.
    pub(crate) fn ping(&mut self) {
        // Exactly eight bytes (RFC 9113, section 6.7).
        frame::write(kind::PING, 0, 0, b"stentor?", &mut self.out);
    }

    /// Writes GOAWAY to end the connection.
    pub(crate) fn say_goodbye(&mut self, code: ErrorCode) {
        // The peer opens no streams, so the last processed one is 0.
        frame::write_goaway(0, code, &[], &mut self.out);
    }

    /// Resets at most `most` streams opened at or before `opened_ms`, oldest first. Returns their number, and the number of those that
    /// count against the peer: neither marked as late nor failed before.
    pub(crate) fn expire(&mut self, opened_ms: u32, most: usize) -> (usize, usize) {
        let (mut late, mut speak) = (self.streams.older_than(opened_ms), 0);
        late.truncate(most);
        for id in &late {
            // Must precede `end`, which removes the stream.
            let open = self.streams.get_mut(*id).map(|open| (open.is_late, open.batch));
            let speaks = open.is_some_and(|(is_late, batch)| !is_late && !self.is_repeated(batch));
            speak += usize::from(speaks);
            self.reset(*id, ErrorCode::CANCEL);
            self.end(*id, Fault::Timeout);
        }
        (late.len(), speak)
    }

    /// Marks streams as late: those opened at or before `overtaken_ms`, and those opened at or before `old_ms` whose requests failed
    /// before. `excuse` and `forgive` limit the number of each.
    pub(crate) fn mark_late(
        &mut self,
        overtaken_ms: Option<u32>,
        old_ms: Option<u32>,
        excuse: impl FnOnce(usize) -> usize,
        forgive: impl FnOnce(usize) -> usize,
    ) {
        if let Some(overtaken_ms) = overtaken_ms {
            self.streams.mark_late(overtaken_ms, |_| true, excuse);
        }
        let batches = &self.batches;
        let is_repeated = |open: &Open| {
            let batch = batches.get(open.batch as usize).and_then(Option::as_ref);
            batch.is_some_and(|batch| batch.work.repeated)
        };
        if let Some(old_ms) = old_ms {
            self.streams.mark_late(old_ms, is_repeated, forgive);
        }
    }

    fn is_repeated(&self, batch: u32) -> bool {
        self.work(batch).is_some_and(|work| work.repeated)
    }

    /// Ends every stream after the loss of the connection.
    pub(crate) fn end_all(&mut self, fault: &Fault) {
        for id in self.streams.above(0) {
            self.end(id, fault.clone());
        }
    }

    fn reset(&mut self, stream: u32, code: ErrorCode) {
        frame::write_number(kind::RST_STREAM, stream, code.0, &mut self.out);
    }

    fn widen_window(&mut self, bytes: u32) {
        frame::write_number(kind::WINDOW_UPDATE, 0, bytes, &mut self.out);
    }

    /// Ends a stream with the part of its response that has come.
    fn end(&mut self, stream: u32, fault: Fault) {
        let Some(open) = self.streams.remove(stream) else { return };
        self.blocked.remove(stream);
        let content = self.take_kept(stream, open.batch);
        // A response that has begun counts as one. Without a response, the request may have been processed if its first byte was taken for
        // writing.
        let reply = if open.status != 0 {
            Reply::Answered(Response::new(open.status, true, content))
        } else if open.offset.get() < self.taken_bytes {
            Reply::Unanswered(fault)
        } else {
            Reply::NotSent(fault)
        };
        self.ended.push(Ended { open, reply });
    }

    /// Ends a stream with the given reply.
    fn end_with(&mut self, stream: u32, reply: Reply) {
        let Some(open) = self.streams.remove(stream) else { return };
        self.blocked.remove(stream);
        self.take_kept(stream, open.batch);
        self.ended.push(Ended { open, reply });
    }

    fn keeps_all(&self, batch: u32) -> bool {
        self.work(batch).is_none_or(|work| work.keep.keeps_all())
    }

    fn excerpt(&self, batch: u32) -> Option<Excerpt> {
        self.work(batch).and_then(|work| work.keep.excerpt())
    }

    /// Takes the kept content of an ended response, reduced to an excerpt if only that is wanted.
    fn take_kept(&mut self, stream: u32, batch: u32) -> Option<Box<ResponseContent>> {
        let mut content = if self.kept.is_empty() { None } else { self.kept.remove(&stream) }?;
        // Must precede the cut, which makes the body shorter than the counted bytes.
        self.unread_bytes -= content.body.len();
        if let Some(excerpt) = self.excerpt(batch) {
            excerpt.cut(&mut content);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests;
