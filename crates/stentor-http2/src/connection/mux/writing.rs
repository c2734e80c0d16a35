//! Writing of requests.

use std::num::NonZeroU64;
use std::sync::Arc;

use stentor_http2_codec::frame::{self, FRAME_HEADER_BYTES, FrameHeader, flag, kind};
use stentor_http2_codec::hpack::Encoder;

use super::{Mux, OpenBatch};
use crate::batch::Requests;
use crate::connection::streams::Open;
use crate::fault::Fault;
use crate::line::Line;
use crate::work::{Run, Work};

/// Streams that one connection may open before it is replaced: ids end at 2^31.
const LAST_STREAM: u32 = (1 << 31) - 1 - 2 * 1_024;

/// Returns the stream id at which a connection for `max_requests` requests opens no more streams.
pub(super) fn last_stream(max_requests: u32) -> u32 {
    max_requests.max(1).saturating_mul(2).saturating_add(1).min(LAST_STREAM)
}

/// The encoded shared fields of one batch, valid while the header table does not change.
#[derive(Default)]
pub(super) struct Shared {
    /// The batch, and the generation of the table.
    of: Option<(u32, u64)>,
    pseudo: Vec<u8>,
    constant: Vec<u8>,
}

impl Shared {
    /// Clears the fields of a batch before its slot is reused.
    pub(super) fn forget(&mut self, batch: u32) {
        self.of = self.of.filter(|(of, _)| *of != batch);
    }

    /// Encodes the shared fields and enters the repeating ones into the table.
    fn enter(&mut self, batch: u32, work: &Work, encoder: &mut Encoder) {
        self.pseudo.clear();
        self.constant.clear();
        encoder.begin(&mut self.pseudo);
        work.pseudo.iter().for_each(|field| encoder.enter(field, &mut self.pseudo));
        work.constant.iter().for_each(|field| encoder.enter(field, &mut self.constant));
        self.of = Some((batch, encoder.generation()));
    }

    /// Encodes the shared fields against the current table.
    fn renew(&mut self, batch: u32, work: &Work, encoder: &Encoder) {
        self.pseudo.clear();
        self.constant.clear();
        work.pseudo.iter().for_each(|field| encoder.field(field, &mut self.pseudo));
        work.constant.iter().for_each(|field| encoder.field(field, &mut self.constant));
        self.of = Some((batch, encoder.generation()));
    }
}

impl Mux {
    /// Returns the number of streams that may be opened now, for a limit of `most` open ones.
    pub(crate) fn room(&self, most: usize) -> usize {
        let open = self.peer.is_known
            && self.peer.goes_after.is_none()
            && !self.is_spent()
            // While bodies wait for the connection's window, another request would only wait behind them.
            && (self.blocked.is_empty() || self.peer.window_bytes > 0);
        let most = self.slots(most).saturating_sub(self.streams.len());
        if open { most.min(self.unused_streams()) } else { 0 }
    }

    /// Returns how many streams may be open at once, `most` at most.
    pub(crate) fn slots(&self, most: usize) -> usize {
        most.min(self.peer.max_streams as usize)
    }

    /// Returns true if the stream ids are used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.unused_streams() == 0
    }

    fn unused_streams(&self) -> usize {
        // A client's stream ids are odd.
        (self.last_stream.saturating_sub(self.streams.next_id()) / 2) as usize
    }

    /// Reserves a slot for `count` requests of a batch.
    pub(crate) fn enlist(&mut self, work: &Arc<Work>, count: u32) -> u32 {
        let known =
            |place: &Option<OpenBatch>| place.as_ref().is_some_and(|held| Arc::ptr_eq(&held.work, work));
        let at = self.batches.iter().position(known);
        let at = at.or_else(|| self.batches.iter().position(Option::is_none));
        let at = at.unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() - 1
        });
        let held = self.batches[at].get_or_insert_with(|| OpenBatch { work: Arc::clone(work), open: 0 });
        held.open += count;
        at as u32
    }

    /// Writes requests from the front of a run while there is room in the buffer.
    ///
    /// A request that cannot be written is passed to `refused` with its fault; the others continue.
    pub(crate) fn open(
        &mut self,
        batch: u32,
        run: &mut Run,
        now_ms: u32,
        out_max_bytes: usize,
        mut refused: impl FnMut(u32, Fault),
    ) {
        let requests = run.work.requests();
        while run.len() > 0 && self.out.len() < out_max_bytes {
            let index = run.from;
            let open = Open {
                batch,
                index,
                resends: run.resends,
                is_late: false,
                status: 0,
                opened_ms: now_ms,
                received_bytes: 0,
                offset: self.offset(),
            };
            match requests.as_ref().map(|requests| self.write(open, &run.work, &**requests)) {
                Some(Ok(())) => self.streams.push(open),
                Some(Err(problem)) => refused(index, Fault::Request(problem.into())),
                None => refused(index, Fault::Abandoned),
            }
            // Must come last, so that a request still belongs to the run if its writing panics.
            run.from += 1;
        }
    }

    /// Returns the offset of the next byte in the connection's output.
    fn offset(&self) -> NonZeroU64 {
        NonZeroU64::new(self.taken_bytes + self.out.len() as u64).unwrap_or(NonZeroU64::MIN)
    }

    fn write(&mut self, open: Open, work: &Work, requests: &dyn Requests) -> Result<(), &'static str> {
        let (begins_at, mark) = (self.out.len(), self.encoder.mark());
        let resized = self.encoder.is_resized();
        if resized || self.shared.of != Some((open.batch, self.encoder.generation())) {
            self.shared.enter(open.batch, work, &mut self.encoder);
        }
        self.out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        self.out.extend_from_slice(&self.shared.pseudo);
        let mut line = Line::new(&mut self.out, begins_at, &self.shared.constant, work.has_path);
        requests.write(open.index as usize, &mut line);
        let stream = self.streams.next_id();
        let body_at = match line.end(stream) {
            Ok(body_at) => body_at,
            Err(problem) => {
                self.out.truncate(begins_at);
                // The entries of this request were never sent, and the peer's table must match ours.
                self.encoder.roll_back(mark);
                return Err(problem);
            }
        };
        self.finish(stream, begins_at, body_at);
        if resized || self.encoder.generation() != mark.generation() {
            // New table entries take one byte from the next request on.
            self.shared.renew(open.batch, work, &self.encoder);
        }
        Ok(())
    }

    /// Divides the request just written into frames within the peer's limits.
    fn finish(&mut self, stream: u32, begins_at: usize, body_at: Option<usize>) {
        let block_end = body_at.map_or(self.out.len(), |at| at - FRAME_HEADER_BYTES);
        let fits = block_end - begins_at - FRAME_HEADER_BYTES <= self.peer.max_payload_bytes;
        let Some(body_at) = body_at else {
            if !fits {
                self.cut_block(stream, begins_at, flag::END_STREAM);
            }
            return;
        };
        let length = self.out.len() - body_at;
        let window = self.peer.stream_window_bytes.min(self.peer.window_bytes);
        if fits && length <= self.peer.max_payload_bytes && length as i64 <= window {
            let head = FrameHeader { length, kind: kind::DATA, flags: flag::END_STREAM, stream };
            head.fill(&mut self.out, body_at - FRAME_HEADER_BYTES);
            self.peer.window_bytes -= length as i64;
            return;
        }
        let body = self.out.split_off(body_at);
        // This also removes the space for the frame's header: `pump` writes one for each part that the windows permit.
        self.out.truncate(block_end);
        if !fits {
            self.cut_block(stream, begins_at, 0);
        }
        self.blocked.push(stream, body, self.peer.stream_window_bytes);
        self.blocked.pump(&mut self.peer, &mut self.out);
    }

    /// Rewrites a header block that is too large for one frame as several frames.
    fn cut_block(&mut self, stream: u32, begins_at: usize, ends: u8) {
        let block = self.out.split_off(begins_at + FRAME_HEADER_BYTES);
        self.out.truncate(begins_at);
        let pieces = block.chunks(self.peer.max_payload_bytes);
        let last = pieces.len() - 1;
        for (at, piece) in pieces.enumerate() {
            let ended = if at == last { flag::END_HEADERS } else { 0 };
            let (kind, flags) =
                if at == 0 { (kind::HEADERS, ended | ends) } else { (kind::CONTINUATION, ended) };
            frame::write(kind, flags, stream, piece, &mut self.out);
        }
    }
}
