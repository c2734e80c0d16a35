//! Frames that make a request.

use super::Connection;
use super::MAX_BLOCK_BYTES;
use crate::frames::field::Field;
use crate::frames::frame::{Breach, Frame};
use crate::frames::host::{Admission, Host, RequestBody};
use crate::frames::streams::StreamPhase;
use stentor_http2_codec::frame::{self, ErrorCode, WINDOW_DEFAULT_BYTES, flag, kind};

const PRIORITY_BYTES: usize = 5;
const STATUS_FIELDS_TOO_LARGE: u16 = 431;
const UNDECODABLE: Breach =
    Breach::Connection(ErrorCode::COMPRESSION_ERROR, "a header block that cannot be decoded");
const BEFORE_HEADERS: Breach =
    Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a frame on a stream that is not open");

impl<H: Host> Connection<H> {
    pub(super) fn take_headers(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        let mut block = frame.unpadded()?;
        if frame.has(flag::PRIORITY) {
            let short = Breach::Connection(ErrorCode::FRAME_SIZE_ERROR, "a frame of the wrong size");
            block = block.get(PRIORITY_BYTES..).ok_or(short)?;
        }
        if frame.has(flag::END_HEADERS) {
            return self.take_block(frame.header.stream, frame.header.flags, block);
        }
        self.unfinished = Some((frame.header.stream, frame.header.flags));
        self.block.clear();
        self.block.extend_from_slice(block);
        Ok(())
    }

    pub(super) fn take_continuation(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        let Some((stream, flags)) = self.unfinished.filter(|(stream, _)| *stream == frame.header.stream)
        else {
            return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a continuation of nothing"));
        };
        // Blocks without an end, or without bytes, only keep a server busy (CERT VU#421644).
        if self.block.len() + frame.payload.len() > MAX_BLOCK_BYTES || frame.payload.is_empty() {
            return Err(Breach::Connection(ErrorCode::ENHANCE_YOUR_CALM, "a header block above any use"));
        }
        self.block.extend_from_slice(frame.payload);
        if !frame.has(flag::END_HEADERS) {
            return Ok(());
        }
        self.unfinished = None;
        // Taken out for the call and put back: its buffer serves again.
        let block = std::mem::take(&mut self.block);
        let taken = self.take_block(stream, flags, &block);
        self.block = block;
        // The breach belongs to the stream of the block, which is this frame's as well.
        taken
    }

    /// Processes a whole header block, which opens a stream or ends its request.
    fn take_block(&mut self, id: u32, flags: u8, block: &[u8]) -> Result<(), Breach> {
        if id.is_multiple_of(2) {
            return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a request on a stream of ours"));
        }
        // New streams have greater ids (RFC 9113, section 5.1.1): this block ends a request that was opened.
        if id <= self.last_stream {
            return self.take_trailers(id, flags, block);
        }
        self.last_stream = id;
        let open = self.open_streams() + self.unsent;
        let in_excess = self.limit.is_exceeded_by(open + 1);
        let place = self.streams.open(id, self.sending.first_window);
        let stream = self.streams.at(place);
        match self.host.admit(&mut stream.draft, in_excess) {
            Admission::Take => {}
            turned_away => return self.turn_away(id, turned_away, block),
        }
        // A rejected stream must not be covered by a GOAWAY's last stream id.
        self.last_taken = id;
        let (host, draft, head) = (&mut self.host, &mut stream.draft, &mut stream.head);
        let visited = self.decoder.decode(block, &mut |field: Field<'_>| {
            head.see(&field);
            host.field(draft, &field);
        });
        visited.map_err(|_| UNDECODABLE)?;
        // A malformed request ends its stream, not the connection (RFC 9113, section 8.1.1).
        if stream.head.is_malformed() {
            return Err(Breach::Stream(ErrorCode::PROTOCOL_ERROR));
        }
        if flags & flag::END_STREAM != 0 { self.answer(id, place, &[]) } else { Ok(()) }
    }

    /// Decodes a header block only to keep the tables in step.
    fn turn_away(&mut self, id: u32, admission: Admission, block: &[u8]) -> Result<(), Breach> {
        self.streams.close(id);
        self.decoder.decode(block, &mut |_: Field<'_>| {}).map_err(|_| UNDECODABLE)?;
        match admission {
            Admission::Reset(code) => Err(Breach::Stream(code)),
            Admission::Ignore | Admission::Take => {
                self.remember_reset(id);
                Ok(())
            }
        }
    }

    fn take_trailers(&mut self, id: u32, flags: u8, block: &[u8]) -> Result<(), Breach> {
        // Decoded in every case: the tables of both sides must stay in step.
        let mut pseudo = false;
        let visited =
            self.decoder.decode(block, &mut |field: Field<'_>| pseudo |= field.name.first() == Some(&b':'));
        visited.map_err(|_| UNDECODABLE)?;
        let Some(place) = self.streams.place(id) else { return self.take_for_closed(id) };
        if self.streams.at(place).phase != StreamPhase::Request {
            return Err(Breach::Stream(ErrorCode::STREAM_CLOSED));
        }
        // Trailers end the request and have no pseudo-header fields (RFC 9113, section 8.1).
        if pseudo || flags & flag::END_STREAM == 0 {
            return Err(Breach::Stream(ErrorCode::PROTOCOL_ERROR));
        }
        self.answer(id, place, &[])
    }

    pub(super) fn take_data(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        let chunk = frame.unpadded()?;
        // Padding counts too (RFC 9113, section 6.9.1), and so does data for closed streams.
        let used = frame.payload.len() as u32;
        let too_much = Breach::Connection(ErrorCode::FLOW_CONTROL_ERROR, "more data than the window allows");
        self.receive_window = self.receive_window.checked_sub(used).ok_or(too_much)?;
        let Some(place) = self.streams.place(frame.header.stream) else {
            return if self.is_idle(frame.header.stream) {
                Err(BEFORE_HEADERS)
            } else {
                self.take_for_closed(frame.header.stream)
            };
        };
        let stream = self.streams.at(place);
        if stream.phase != StreamPhase::Request {
            return Err(Breach::Stream(ErrorCode::STREAM_CLOSED));
        }
        let window = stream.receive_window.checked_sub(used);
        stream.receive_window = window.ok_or(Breach::Stream(ErrorCode::FLOW_CONTROL_ERROR))?;
        if frame.has(flag::END_STREAM) {
            return self.answer(frame.header.stream, place, chunk);
        }
        // Of a body that is too large nothing more is kept, but the peer may send it to its end.
        if stream.body_bytes + chunk.len() as u64 <= H::MAX_BODY_BYTES as u64 {
            stream.body.extend_from_slice(chunk);
        }
        stream.body_bytes += chunk.len() as u64;
        let used = WINDOW_DEFAULT_BYTES - stream.receive_window;
        if used >= WINDOW_DEFAULT_BYTES / 2 {
            stream.receive_window = WINDOW_DEFAULT_BYTES;
            frame::write_number(kind::WINDOW_UPDATE, frame.header.stream, used, &mut self.out);
        }
        Ok(())
    }

    /// Handles a frame for a closed stream: after our reset it may have been in flight already.
    fn take_for_closed(&self, id: u32) -> Result<(), Breach> {
        if self.reset.contains(&id) { Ok(()) } else { Err(Breach::Stream(ErrorCode::STREAM_CLOSED)) }
    }

    /// Answers a whole request. The last piece of its body is used directly from the read buffer.
    fn answer(&mut self, id: u32, place: usize, last: &[u8]) -> Result<(), Breach> {
        let stream = self.streams.at(place);
        stream.body_bytes += last.len() as u64;
        if !stream.head.fits(stream.body_bytes) {
            return Err(Breach::Stream(ErrorCode::PROTOCOL_ERROR));
        }
        // The limit of a header list is advisory: a request that exceeds it gets a response (RFC 9113, section 10.5.1).
        if stream.head.list_bytes() > self.max_header_list_bytes {
            self.scratch.status(STATUS_FIELDS_TOO_LARGE);
            self.send_now(id, place);
            return Ok(());
        }
        let body = if stream.body_bytes > H::MAX_BODY_BYTES as u64 {
            RequestBody::TooLarge
        } else if stream.body.is_empty() {
            RequestBody::Whole(last)
        } else {
            stream.body.extend_from_slice(last);
            RequestBody::Whole(&stream.body)
        };
        let when = self.host.answer(&mut stream.draft, body, &mut self.scratch);
        self.send(id, place, when);
        Ok(())
    }
}
