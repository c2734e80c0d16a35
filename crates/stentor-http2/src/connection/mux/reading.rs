//! Processing of the peer's frames.

use stentor_http2_codec::frame::{
    self, ErrorCode, FRAME_HEADER_BYTES, FrameHeader, PAYLOAD_DEFAULT_MAX_BYTES, flag, kind,
};
use stentor_http2_codec::hpack::Malformed;

use super::{CONNECTION_WINDOW_BYTES, Ended, Mux, Open, Plain, UNREAD_MAX_BYTES};
use crate::batch::Reply;
use crate::connection::peer::SettingsChange;
use crate::connection::violation::Violation;
use crate::fault::Fault;
use crate::gather::Gather;
use crate::response::{PLAIN_STATUS, Response};

/// Ratio of the largest header block to the largest kept headers. A longer block is an error.
const BLOCK_MAX_FACTOR: usize = 4;
/// Bytes of pending replies to the peer's frames. More means that the peer sends requests for replies and never reads.
const ANSWERS_MAX_BYTES: usize = 1_024 * 1_024;

/// A header block without its end.
pub(super) struct Block {
    stream: u32,
    flags: u8,
    bytes: Vec<u8>,
}

impl Mux {
    /// Processes every whole frame; returns the number of bytes used.
    pub(crate) fn receive(&mut self, plain: &[u8]) -> Result<usize, Violation> {
        let mut used = 0;
        while let Some(head) = FrameHeader::read(&plain[used..]) {
            // This client announces no other size, so a larger frame is an error (RFC 9113, section 4.2).
            if head.length > PAYLOAD_DEFAULT_MAX_BYTES {
                return Err(Violation(ErrorCode::FRAME_SIZE_ERROR, "a frame is too large"));
            }
            let start = used + FRAME_HEADER_BYTES;
            let Some(payload) = plain.get(start..start + head.length) else { break };
            self.frame(head, payload)?;
            used = start + head.length;
        }
        if self.out.len() > ANSWERS_MAX_BYTES {
            return Err(Violation(
                ErrorCode::ENHANCE_YOUR_CALM,
                "the peer demands more replies than it reads",
            ));
        }
        Ok(used)
    }

    fn frame(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        // No frame of any stream may interrupt a block, because the table's order depends on it (RFC 9113, section 6.10).
        if self.block.is_some() && head.kind != kind::CONTINUATION {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a header block is interrupted"));
        }
        if !self.peer.is_known && head.kind != kind::SETTINGS {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "the first frame is no SETTINGS"));
        }
        match head.kind {
            kind::HEADERS => self.headers(head, payload),
            kind::DATA => self.data(head, payload),
            kind::CONTINUATION => self.continuation(head, payload),
            kind::RST_STREAM => self.reset_by_peer(head, payload),
            kind::SETTINGS => self.settings(head, payload),
            kind::PING => self.ping_of_peer(head, payload),
            kind::GOAWAY => self.goaway(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload),
            kind::PRIORITY if payload.len() != 5 => {
                Err(Violation(ErrorCode::FRAME_SIZE_ERROR, "a PRIORITY frame has a wrong size"))
            }
            kind::PUSH_PROMISE => Err(Violation(ErrorCode::PROTOCOL_ERROR, "the peer pushes unasked")),
            // Unknown kinds are ignored (RFC 9113, section 4.1).
            _ => Ok(()),
        }
    }

    /// Rejects frames on streams that were never opened.
    fn known(&self, stream: u32) -> Result<(), Violation> {
        if stream == 0 || stream.is_multiple_of(2) || stream >= self.streams.next_id() {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a frame is on a stream that was never opened"));
        }
        Ok(())
    }

    fn headers(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        self.known(head.stream)?;
        let mut block = unpadded(head, payload)?;
        if head.has(flag::PRIORITY) {
            block = block
                .get(5..)
                .ok_or(Violation(ErrorCode::FRAME_SIZE_ERROR, "a HEADERS frame is too short"))?;
        }
        if head.has(flag::END_HEADERS) {
            return self.answer(head.stream, head.flags, block);
        }
        self.block = Some(Block { stream: head.stream, flags: head.flags, bytes: block.to_vec() });
        Ok(())
    }

    fn continuation(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        let block = self.block.as_mut().filter(|block| block.stream == head.stream);
        let block = block.ok_or(Violation(ErrorCode::PROTOCOL_ERROR, "a CONTINUATION continues nothing"))?;
        block.bytes.extend_from_slice(payload);
        // Empty parts are rejected too: they add nothing to the length and could continue for ever.
        if block.bytes.len() > self.keep_header_bytes * BLOCK_MAX_FACTOR || payload.is_empty() {
            return Err(Violation(ErrorCode::ENHANCE_YOUR_CALM, "a header block has no end"));
        }
        if head.has(flag::END_HEADERS)
            && let Some(Block { stream, flags, bytes }) = self.block.take()
        {
            self.answer(stream, flags, &bytes)?;
        }
        Ok(())
    }

    /// Processes the head of a response, or its trailers.
    fn answer(&mut self, stream: u32, flags: u8, block: &[u8]) -> Result<(), Violation> {
        let batch = self.streams.get_mut(stream).map(|open| open.batch);
        let keep_all = batch.is_some_and(|batch| self.keeps_all(batch));
        let excerpt = batch.and_then(|batch| self.excerpt(batch));
        let mut gather = Gather::new(keep_all, self.keep_header_bytes);
        // Also for ended streams: the table must stay in step with the peer's.
        self.decoder.decode(block, &mut gather).map_err(|Malformed(what)| compression(what))?;
        let ends = flags & flag::END_STREAM != 0;
        let Some(open) = self.streams.get_mut(stream) else { return Ok(()) };
        match gather.status {
            _ if gather.invalid => self.refuse_answer(stream),
            // Trailers.
            None if open.status != 0 && ends => self.complete(stream),
            None => self.refuse_answer(stream),
            Some(_) if open.status != 0 => self.refuse_answer(stream),
            Some(100..200) if ends => self.refuse_answer(stream),
            Some(100..200) => {}
            Some(status) => {
                open.status = status;
                if keep_all || !(200..300).contains(&status) {
                    self.kept.entry(stream).or_default().headers = match excerpt {
                        Some(excerpt) => excerpt.headers(gather.headers),
                        None => gather.headers,
                    };
                }
                if ends {
                    self.complete(stream);
                }
            }
        }
        Ok(())
    }

    fn data(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        self.known(head.stream)?;
        let body = unpadded(head, payload)?;
        // Also for ended streams: the bytes they used of the connection's window are returned all the same.
        self.return_window(payload.len() as u32)?;
        let Some(open) = self.streams.get_mut(head.stream) else { return Ok(()) };
        if open.status == 0 {
            self.refuse_answer(head.stream);
            return Ok(());
        }
        // Counted with the padding, which could otherwise continue without end.
        open.received_bytes = open.received_bytes.saturating_add(payload.len() as u32);
        let (received, batch) = (open.received_bytes as usize, open.batch);
        if !self.kept.is_empty() {
            self.keep_body(head.stream, batch, body);
        }
        if head.has(flag::END_STREAM) {
            self.complete(head.stream);
        } else if received > self.drain_body_bytes {
            self.reset(head.stream, ErrorCode::CANCEL);
            self.end(head.stream, Fault::Reset("its body has no end".into()));
        }
        Ok(())
    }

    /// Keeps a part of a body, as far as the limits permit.
    fn keep_body(&mut self, stream: u32, batch: u32, body: &[u8]) {
        let unread_max = if self.excerpt(batch).is_some() { UNREAD_MAX_BYTES } else { usize::MAX };
        let Some(content) = self.kept.get_mut(&stream) else { return };
        let room = self.keep_body_bytes.saturating_sub(content.body.len());
        let room = room.min(unread_max.saturating_sub(self.unread_bytes));
        let fitting = &body[..body.len().min(room)];
        content.is_cut |= fitting.len() < body.len();
        content.body.extend_from_slice(fitting);
        self.unread_bytes += fitting.len();
    }

    /// Counts bytes as read, and widens the peer's window once half of it is used.
    fn return_window(&mut self, bytes: u32) -> Result<(), Violation> {
        self.unreturned_bytes += bytes;
        if self.unreturned_bytes > CONNECTION_WINDOW_BYTES {
            return Err(Violation(
                ErrorCode::FLOW_CONTROL_ERROR,
                "the peer overflows the connection's window",
            ));
        }
        if self.unreturned_bytes >= CONNECTION_WINDOW_BYTES / 2 {
            let bytes = std::mem::take(&mut self.unreturned_bytes);
            self.widen_window(bytes);
        }
        Ok(())
    }

    /// Ends a stream with a complete response.
    fn complete(&mut self, stream: u32) {
        let Some(open) = self.streams.remove(stream) else { return };
        if self.blocked.remove(stream) {
            // The response came before the end of the request: the rest of the request body is not needed.
            self.reset(stream, ErrorCode::CANCEL);
        }
        let content = self.take_kept(stream, open.batch);
        if content.is_none() && open.status == PLAIN_STATUS {
            let Open { batch, index, opened_ms, .. } = open;
            self.plainly_ended.push(Plain { batch, index, opened_ms });
            return;
        }
        let truncated = content.as_ref().is_some_and(|content| content.is_cut);
        let reply = Reply::Answered(Response::new(open.status, truncated, content));
        self.ended.push(Ended { open, reply });
    }

    /// Resets a stream with a malformed response.
    fn refuse_answer(&mut self, stream: u32) {
        self.reset(stream, ErrorCode::PROTOCOL_ERROR);
        self.end_with(stream, Reply::Unanswered(Fault::Reset("its answer is no HTTP".into())));
    }

    fn reset_by_peer(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        self.known(head.stream)?;
        let code = exactly(payload, 4).and_then(|payload| frame::number(payload, 0));
        let code =
            ErrorCode(code.ok_or(Violation(ErrorCode::FRAME_SIZE_ERROR, "a RST_STREAM has a wrong size"))?);
        let Some(open) = self.streams.get_mut(head.stream) else { return Ok(()) };
        let answered = open.status != 0;
        self.counts.resets += 1;
        let reply = match code {
            ErrorCode::REFUSED_STREAM => Reply::NotSent(Fault::Refused),
            _ => Reply::Unanswered(Fault::Reset(code.to_string().into())),
        };
        // A response that has begun counts as one, independent of the stream's end.
        if answered {
            self.end(head.stream, Fault::Refused);
        } else {
            self.end_with(head.stream, reply);
        }
        Ok(())
    }

    fn settings(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "SETTINGS are on a stream"));
        }
        let settings = frame::settings(payload).filter(|_| !head.has(flag::ACK) || payload.is_empty());
        let settings =
            settings.ok_or(Violation(ErrorCode::FRAME_SIZE_ERROR, "SETTINGS have a wrong size"))?;
        if head.has(flag::ACK) {
            return Ok(());
        }
        self.peer.is_known = true;
        // In the frame's order: of repeated values the last one applies (RFC 9113, section 6.5.3).
        for (id, value) in settings {
            match self.peer.apply(id, value)? {
                SettingsChange::None => {}
                SettingsChange::HeaderTable(bytes) => self.encoder.limit(bytes),
                SettingsChange::StreamWindows(bytes) => self.blocked.shift_windows(bytes),
            }
        }
        // The acknowledgement precedes `pump`, whose output may depend on the windows of the new settings.
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], &mut self.out);
        self.blocked.pump(&mut self.peer, &mut self.out);
        Ok(())
    }

    fn ping_of_peer(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a PING is on a stream"));
        }
        if payload.len() != 8 {
            return Err(Violation(ErrorCode::FRAME_SIZE_ERROR, "a PING has a wrong size"));
        }
        if !head.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, payload, &mut self.out);
        }
        Ok(())
    }

    fn goaway(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a GOAWAY is on a stream"));
        }
        let (Some(last), Some(code)) = (frame::number(payload, 0), frame::number(payload, 4)) else {
            return Err(Violation(ErrorCode::FRAME_SIZE_ERROR, "a GOAWAY is too short"));
        };
        // A later GOAWAY may only lower the last stream (RFC 9113, section 6.8).
        let last = frame::without_reserved_bit(last).min(self.peer.goes_after.unwrap_or(u32::MAX));
        self.counts.goaways += u64::from(self.peer.goes_after.is_none());
        // Must precede the end of the streams: requests that are queued again must not be opened here.
        self.peer.goes_after = Some(last);
        for stream in self.streams.above(last) {
            self.end_with(stream, Reply::NotSent(Fault::GoAway(ErrorCode(code).to_string().into())));
        }
        Ok(())
    }

    fn window_update(&mut self, head: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        let bytes = exactly(payload, 4).and_then(|payload| frame::number(payload, 0));
        let bytes =
            bytes.ok_or(Violation(ErrorCode::FRAME_SIZE_ERROR, "a WINDOW_UPDATE has a wrong size"))?;
        let bytes = frame::without_reserved_bit(bytes);
        if head.stream == 0 {
            // For stream 0 it is an error of the connection; otherwise it ends only the stream (section 6.9.1).
            self.peer.widen(bytes)?;
        } else {
            self.known(head.stream)?;
            if bytes == 0 || !self.blocked.widen(head.stream, bytes) {
                self.reset(head.stream, ErrorCode::FLOW_CONTROL_ERROR);
                let fault = Fault::Reset("its window is out of bounds".into());
                self.end(head.stream, fault);
            }
        }
        self.blocked.pump(&mut self.peer, &mut self.out);
        Ok(())
    }
}

/// Removes the padding.
fn unpadded(head: FrameHeader, payload: &[u8]) -> Result<&[u8], Violation> {
    frame::unpadded(head, payload).map_err(|(code, what)| Violation(code, what))
}

fn exactly(payload: &[u8], bytes: usize) -> Option<&[u8]> {
    (payload.len() == bytes).then_some(payload)
}

const fn compression(what: &'static str) -> Violation {
    Violation(ErrorCode::COMPRESSION_ERROR, what)
}
