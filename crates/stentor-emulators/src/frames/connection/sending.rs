//! Sending of responses: at once, when due, and as far as windows allow.

use super::{Connection, SendWindows};
use crate::frames::answer::{self, When};
use crate::frames::delayed_answers::DelayedAnswer;
use crate::frames::host::Host;
use crate::frames::streams::StreamPhase;
use stentor_http2_codec::frame::{self, FrameHeader, PAYLOAD_DEFAULT_MAX_BYTES, flag, kind};
use stentor_http2_codec::hpack::write_table_size;
use tokio::time::Instant;

impl<H: Host> Connection<H> {
    /// Sends the answer in the scratch space, or keeps it until its time.
    pub(super) fn send(&mut self, id: u32, place: usize, when: When) {
        match when {
            When::Now => self.send_now(id, place),
            When::Released => self.delay(id, place, None),
            When::At(due) => self.delay(id, place, Some(due)),
        }
    }

    fn delay(&mut self, id: u32, place: usize, due: Option<Instant>) {
        let stream = self.streams.at(place);
        // Kept as a difference: the first window may change while the answer waits.
        let widened = (stream.send_window - self.sending.first_window) as u32;
        let hosts = self.host.waits(&mut stream.draft);
        let span = self.delayed_bytes.put(&self.scratch);
        self.delayed.push(DelayedAnswer { id, widened, span, hosts, due });
        self.streams.close(id);
    }

    /// Returns when the next answer is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.delayed.next_due()
    }

    /// Sends the answers that are due.
    pub(crate) fn send_due(&mut self, now: Instant) {
        while let Some(waiting) = self.delayed.pop_due(now) {
            self.send_delayed(waiting);
        }
    }

    /// Sends all responses that wait for a release.
    pub(super) fn release(&mut self) {
        while let Some(waiting) = self.delayed.pop_unreleased() {
            self.send_delayed(waiting);
        }
    }

    fn send_delayed(&mut self, waiting: DelayedAnswer<H::Waiting>) {
        let DelayedAnswer { id, widened, span, hosts, .. } = waiting;
        self.host.leaves(hosts);
        // Taken out for the writing and put back: its bytes are read while the rest of the connection is written.
        let bytes = std::mem::take(&mut self.delayed_bytes);
        let (block, body) = bytes.read(&span);
        let window = self.sending.first_window + i64::from(widened);
        match self.write_answer(id, block, body, window) {
            SendProgress::Whole => self.unsent += 1,
            SendProgress::Blocked { window, sent_bytes } => {
                // Only now the stream needs a place again: nearly every answer fits into its window.
                let place = self.streams.open(id, window);
                self.block(id, place, body[sent_bytes..].to_vec());
            }
        }
        self.delayed_bytes = bytes;
        self.delayed_bytes.clear(&span);
    }

    /// Drops a delayed response, if there is one.
    pub(super) fn give_up(&mut self, id: u32) {
        if let Some(waiting) = self.delayed.take(id) {
            self.delayed_bytes.clear(&waiting.span);
        }
    }

    /// Sends the response in the scratch space. Bytes that no window allows yet stay with the stream.
    pub(super) fn send_now(&mut self, id: u32, place: usize) {
        let scratch = std::mem::take(&mut self.scratch);
        let window = self.streams.at(place).send_window;
        match self.write_answer(id, &scratch.block, &scratch.body, window) {
            SendProgress::Whole => self.closed(id),
            SendProgress::Blocked { window, sent_bytes } => {
                self.streams.at(place).send_window = window;
                self.block(id, place, scratch.body[sent_bytes..].to_vec());
            }
        }
        self.scratch = scratch;
    }

    fn block(&mut self, id: u32, place: usize, rest: Vec<u8>) {
        let stream = self.streams.at(place);
        stream.rest = rest;
        stream.phase = StreamPhase::Window;
        self.sending.blocked.push_back(id);
    }

    fn closed(&mut self, id: u32) {
        self.streams.close(id);
        self.unsent += 1;
    }

    /// Writes an answer as far as the connection's window and the stream's allow.
    fn write_answer(&mut self, id: u32, block: &[u8], body: &[u8], mut window: i64) -> SendProgress {
        if let Some(code) = answer::reset_code(block, body) {
            frame::write_number(kind::RST_STREAM, id, code.0, &mut self.out);
            self.remember_reset(id);
            return SendProgress::Whole;
        }
        self.sending.write_headers(&mut self.out, id, block, body.is_empty());
        let sent_bytes = self.sending.write_body(&mut self.out, id, body, &mut window);
        if sent_bytes == body.len() {
            SendProgress::Whole
        } else {
            SendProgress::Blocked { window, sent_bytes }
        }
    }

    /// Continues with responses that waited for a window.
    pub(super) fn unblock(&mut self) {
        // Each waiting stream gets one turn. If its rest still does not fit, it moves to the end.
        for _ in 0..self.sending.blocked.len() {
            let Some(id) = self.sending.blocked.pop_front() else { break };
            let Some(stream) = self.streams.find(id) else { continue };
            let sent = self.sending.write_body(&mut self.out, id, &stream.rest, &mut stream.send_window);
            stream.rest.drain(..sent);
            if stream.rest.is_empty() {
                self.closed(id);
            } else {
                self.sending.blocked.push_back(id);
            }
        }
    }
}

/// The progress of sending a response.
enum SendProgress {
    Whole,
    /// The stream's window, and the sent part of the body, both in bytes.
    Blocked {
        window: i64,
        sent_bytes: usize,
    },
}

impl SendWindows {
    fn write_headers(&mut self, out: &mut Vec<u8>, id: u32, block: &[u8], ends: bool) {
        let flags = if ends { flag::END_HEADERS | flag::END_STREAM } else { flag::END_HEADERS };
        let gives_up = std::mem::take(&mut self.gives_up_table);
        FrameHeader { length: block.len() + usize::from(gives_up), kind: kind::HEADERS, flags, stream: id }
            .write(out);
        if gives_up {
            self.gave_up_table = true;
            write_table_size(0, out);
        }
        out.extend_from_slice(block);
    }

    /// Writes as much of a body as windows allow, and returns the number of bytes.
    fn write_body(&mut self, out: &mut Vec<u8>, id: u32, body: &[u8], window: &mut i64) -> usize {
        let mut sent = 0;
        loop {
            let rest = &body[sent..];
            // A window may be below zero (RFC 9113, section 6.9.2).
            let allowed = self.window.min(*window).max(0);
            let chunk = &rest[..rest.len().min(allowed as usize).min(PAYLOAD_DEFAULT_MAX_BYTES)];
            if chunk.is_empty() {
                return sent;
            }
            let flags = if chunk.len() == rest.len() { flag::END_STREAM } else { 0 };
            frame::write(kind::DATA, flags, id, chunk, out);
            sent += chunk.len();
            *window -= chunk.len() as i64;
            self.window -= chunk.len() as i64;
        }
    }
}
