//! Frames about the connection and about streams as such.

use super::{CONNECTION_WINDOW_BYTES, Connection, MAX_RESET_STREAMS};
use crate::frames::frame::{Breach, Frame};
use crate::frames::host::Host;
use crate::frames::streams::StreamPhase;
use stentor_http2_codec::frame::{
    self, ErrorCode, PAYLOAD_DEFAULT_MAX_BYTES, PAYLOAD_LIMIT_BYTES, WINDOW_DEFAULT_BYTES, WINDOW_MAX_BYTES,
    flag, kind, setting,
};
use stentor_http2_codec::hpack::TABLE_DEFAULT_BYTES;

const WRONG_SIZE: Breach = Breach::Connection(ErrorCode::FRAME_SIZE_ERROR, "a frame of the wrong size");
const WRONG_STREAM: Breach =
    Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a frame on a stream that cannot have it");

impl<H: Host> Connection<H> {
    pub(super) fn take_settings(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.header.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.has(flag::ACK) {
            self.limit.acknowledge();
            return if frame.payload.is_empty() { Ok(()) } else { Err(WRONG_SIZE) };
        }
        for (id, value) in frame::settings(frame.payload).ok_or(WRONG_SIZE)? {
            self.take_setting(id, value)?;
        }
        // Acknowledged only when all values are in force (RFC 9113, section 6.5.3).
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], &mut self.out);
        // A wider initial window may unblock responses.
        self.unblock();
        Ok(())
    }

    fn take_setting(&mut self, name: u16, value: u32) -> Result<(), Breach> {
        let invalid = Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a setting that cannot be");
        match name {
            setting::HEADER_TABLE_SIZE => self.sending.limit_table(value),
            setting::ENABLE_PUSH if value > 1 => return Err(invalid),
            setting::MAX_FRAME_SIZE
                if !(PAYLOAD_DEFAULT_MAX_BYTES..=PAYLOAD_LIMIT_BYTES).contains(&(value as usize)) =>
            {
                return Err(invalid);
            }
            setting::INITIAL_WINDOW_SIZE => return self.change_first_window(value),
            _ => {}
        }
        Ok(())
    }

    /// Changes the first window of streams to come, and by as much the windows of those that are open.
    fn change_first_window(&mut self, bytes: u32) -> Result<(), Breach> {
        let breach = Breach::Connection(ErrorCode::FLOW_CONTROL_ERROR, "a window above the largest");
        if bytes > WINDOW_MAX_BYTES {
            return Err(breach);
        }
        // The change may leave a window below zero (RFC 9113, section 6.9.2).
        let change = i64::from(bytes) - self.sending.first_window;
        self.sending.first_window = i64::from(bytes);
        let mut widest = self.sending.first_window + i64::from(self.delayed.widest());
        self.streams.for_each(|stream| {
            stream.send_window += change;
            widest = widest.max(stream.send_window);
        });
        if widest > i64::from(WINDOW_MAX_BYTES) { Err(breach) } else { Ok(()) }
    }

    pub(super) fn take_ping(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.header.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.payload.len() != 8 {
            return Err(WRONG_SIZE);
        }
        if !frame.has(flag::ACK) {
            frame::write(kind::PING, flag::ACK, 0, frame.payload, &mut self.out);
        }
        Ok(())
    }

    pub(super) fn take_priority(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        match (frame.header.stream, frame.payload.len()) {
            (0, _) => Err(WRONG_STREAM),
            (_, 5) => Ok(()),
            // A stream that was never opened cannot be reset: the connection ends.
            _ if self.is_idle(frame.header.stream) => Err(WRONG_SIZE),
            _ => Err(Breach::Stream(ErrorCode::FRAME_SIZE_ERROR)),
        }
    }

    pub(super) fn take_goaway(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.header.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.payload.len() < 8 { Err(WRONG_SIZE) } else { Ok(()) }
    }

    pub(super) fn take_reset(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        frame.number()?;
        if frame.header.stream == 0 || self.is_idle(frame.header.stream) {
            return Err(WRONG_STREAM);
        }
        // The answer of a stream that is in no table may wait among the delayed ones.
        if !self.streams.close(frame.header.stream) {
            self.give_up(frame.header.stream);
        }
        Ok(())
    }

    pub(super) fn take_window_update(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        let increment = i64::from(frame::without_reserved_bit(frame.number()?));
        if frame.header.stream != 0 {
            return self.widen_stream(frame.header.stream, increment);
        }
        if increment == 0 {
            return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a window update of nothing"));
        }
        self.sending.window += increment;
        if self.sending.window > i64::from(WINDOW_MAX_BYTES) {
            return Err(Breach::Connection(ErrorCode::FLOW_CONTROL_ERROR, "a window above the largest"));
        }
        self.unblock();
        Ok(())
    }

    fn widen_stream(&mut self, id: u32, increment: i64) -> Result<(), Breach> {
        if self.is_idle(id) {
            return Err(WRONG_STREAM);
        }
        let Some(stream) = self.streams.find(id) else { return self.widen_waiting(id, increment) };
        if increment == 0 {
            return Err(Breach::Stream(ErrorCode::PROTOCOL_ERROR));
        }
        stream.send_window += increment;
        if stream.send_window > i64::from(WINDOW_MAX_BYTES) {
            return Err(Breach::Stream(ErrorCode::FLOW_CONTROL_ERROR));
        }
        if stream.phase == StreamPhase::Window {
            self.unblock();
        }
        Ok(())
    }

    /// Widens the window of a stream with a delayed response. For a closed stream it does nothing.
    fn widen_waiting(&mut self, id: u32, increment: i64) -> Result<(), Breach> {
        let Some(waiting) = self.delayed.find(id) else { return Ok(()) };
        if increment == 0 {
            return Err(Breach::Stream(ErrorCode::PROTOCOL_ERROR));
        }
        let widened = i64::from(waiting.widened) + increment;
        if self.sending.first_window + widened > i64::from(WINDOW_MAX_BYTES) {
            return Err(Breach::Stream(ErrorCode::FLOW_CONTROL_ERROR));
        }
        waiting.widened = widened as u32;
        Ok(())
    }

    /// Returns true if a stream has never been opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id > self.last_stream || id.is_multiple_of(2)
    }

    /// Ends a stream with an error.
    pub(super) fn reset_stream(&mut self, id: u32, code: ErrorCode) {
        if !self.streams.close(id) {
            self.give_up(id);
        }
        // Frames in flight for the stream are no breach (RFC 9113, section 5.1).
        self.remember_reset(id);
        frame::write_number(kind::RST_STREAM, id, code.0, &mut self.out);
    }

    pub(super) fn remember_reset(&mut self, id: u32) {
        if self.reset.len() == MAX_RESET_STREAMS {
            self.reset.pop_front();
        }
        self.reset.push_back(id);
    }

    /// Opens the peer's window for the whole connection again, once half of it is used.
    pub(super) fn replenish(&mut self) {
        let used = CONNECTION_WINDOW_BYTES - self.receive_window;
        // Not with every frame: the peer can continue with the other half of the window.
        if used >= CONNECTION_WINDOW_BYTES / 2 {
            frame::write_number(kind::WINDOW_UPDATE, 0, used, &mut self.out);
            self.receive_window = CONNECTION_WINDOW_BYTES;
        }
    }
}

impl super::SendWindows {
    pub(super) fn new() -> Self {
        Self {
            window: i64::from(WINDOW_DEFAULT_BYTES),
            first_window: i64::from(WINDOW_DEFAULT_BYTES),
            blocked: std::collections::VecDeque::new(),
            gives_up_table: false,
            gave_up_table: false,
        }
    }

    /// A smaller table must be confirmed in the next header block. As our table is never used, it is reduced to zero for good.
    fn limit_table(&mut self, bytes: u32) {
        if (bytes as usize) < TABLE_DEFAULT_BYTES && !self.gave_up_table {
            self.gives_up_table = true;
        }
    }
}
