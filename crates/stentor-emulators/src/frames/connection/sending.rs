//! Answers on their way out: at once, in their time, and as far as windows allow.

use super::Connection;
use crate::frames::answer::{Answer, When};
use crate::frames::frame::{
    DATA, END_HEADERS, END_STREAM, HEADERS, MAX_PAYLOAD_BYTES, RST_STREAM, write_header, write_number,
};
use crate::frames::host::Host;
use crate::frames::hpack;
use crate::frames::streams::Phase;
use tokio::time::Instant;

impl<H: Host> Connection<H> {
    /// Sends the answer in the scratch space, or keeps it until its time.
    pub(super) fn send(&mut self, id: u32, place: usize, when: When) {
        match when {
            When::Now => self.send_now(id, place),
            When::Released => self.keep(place),
            When::At(due) => {
                self.keep(place);
                let follows = self.dues.back().is_none_or(|(last, _)| *last <= due);
                let later = if follows {
                    self.dues.len()
                } else {
                    self.dues.partition_point(|(other, _)| *other <= due)
                };
                self.dues.insert(later, (due, id));
            }
        }
    }

    fn keep(&mut self, place: usize) {
        let stream = self.streams.at(place);
        std::mem::swap(&mut stream.answer, &mut self.scratch);
        stream.phase = Phase::Due;
    }

    /// Returns when the next answer is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.dues.front().map(|(due, _)| *due)
    }

    /// Sends the answers that are due.
    pub(crate) fn send_due(&mut self, now: Instant) {
        while let Some((_, id)) = self.dues.pop_front_if(|(due, _)| *due <= now) {
            self.send_kept(id);
        }
    }

    /// Sends everything that waits to be released.
    pub(super) fn release(&mut self) {
        let timed = self.dues.iter().map(|(_, id)| *id).collect::<std::collections::HashSet<_>>();
        let mut released = Vec::new();
        self.streams.for_each(|stream| {
            if stream.phase == Phase::Due && !timed.contains(&stream.id) {
                released.push(stream.id);
            }
        });
        released.sort_unstable();
        released.into_iter().for_each(|id| self.send_kept(id));
    }

    /// Sends a kept answer, unless the peer has given its stream up.
    fn send_kept(&mut self, id: u32) {
        let Some(place) = self.streams.place(id) else { return };
        let stream = self.streams.at(place);
        self.host.leaves(&mut stream.draft);
        std::mem::swap(&mut stream.answer, &mut self.scratch);
        self.send_now(id, place);
    }

    /// Sends the answer in the scratch space; what no window allows yet stays with the stream.
    pub(super) fn send_now(&mut self, id: u32, place: usize) {
        if let Some(code) = self.scratch.reset_code() {
            write_number(&mut self.out, RST_STREAM, id, code.0);
            self.remember_reset(id);
            self.closed(id);
            return;
        }
        self.write_headers(id);
        if self.scratch.body.is_empty() || self.write_body(id, place) {
            self.closed(id);
            return;
        }
        let stream = self.streams.at(place);
        std::mem::swap(&mut stream.answer, &mut self.scratch);
        stream.phase = Phase::Window;
        self.sending.blocked.push_back(id);
    }

    fn closed(&mut self, id: u32) {
        self.streams.close(id);
        self.unsent += 1;
    }

    fn write_headers(&mut self, id: u32) {
        let Answer { block, body } = &self.scratch;
        let end = if body.is_empty() { END_HEADERS | END_STREAM } else { END_HEADERS };
        let gives_up = std::mem::take(&mut self.sending.gives_up_table);
        write_header(&mut self.out, block.len() + usize::from(gives_up), HEADERS, end, id);
        if gives_up {
            self.sending.gave_up_table = true;
            hpack::write_empty_table(&mut self.out);
        }
        self.out.extend_from_slice(block);
    }

    /// Writes as much of the body in the scratch space as windows allow; tells whether that was the rest of it.
    fn write_body(&mut self, id: u32, place: usize) -> bool {
        let stream = self.streams.at(place);
        loop {
            let rest = &self.scratch.body[stream.sent_bytes..];
            let window = self.sending.window.min(stream.send_window).max(0);
            let chunk = &rest[..rest.len().min(window as usize).min(MAX_PAYLOAD_BYTES)];
            if chunk.is_empty() {
                return rest.is_empty();
            }
            let end = if chunk.len() == rest.len() { END_STREAM } else { 0 };
            write_header(&mut self.out, chunk.len(), DATA, end, id);
            self.out.extend_from_slice(chunk);
            stream.sent_bytes += chunk.len();
            stream.send_window -= chunk.len() as i64;
            self.sending.window -= chunk.len() as i64;
        }
    }

    /// Goes on with answers that waited for a window.
    pub(super) fn unblock(&mut self) {
        for _ in 0..self.sending.blocked.len() {
            let Some(id) = self.sending.blocked.pop_front() else { break };
            let Some(place) = self.streams.place(id) else { continue };
            let stream = self.streams.at(place);
            std::mem::swap(&mut stream.answer, &mut self.scratch);
            if self.write_body(id, place) {
                self.closed(id);
                continue;
            }
            let stream = self.streams.at(place);
            std::mem::swap(&mut stream.answer, &mut self.scratch);
            self.sending.blocked.push_back(id);
        }
    }
}
