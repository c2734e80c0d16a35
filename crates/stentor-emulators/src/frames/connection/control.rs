//! Frames about the connection and about streams as such.

use super::{CONNECTION_WINDOW_BYTES, Connection, MAX_RESET_STREAMS};
use crate::frames::frame::{
    self, ACK, Breach, Code, Frame, MAX_PAYLOAD_BYTES, MAX_WINDOW_BYTES, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, write_header, write_number,
};
use crate::frames::host::Host;
use crate::frames::hpack::TABLE_BYTES;
use crate::frames::streams::Phase;

const WRONG_SIZE: Breach = Breach::Connection(Code::FRAME_SIZE_ERROR, "a frame of the wrong size");
const WRONG_STREAM: Breach =
    Breach::Connection(Code::PROTOCOL_ERROR, "a frame on a stream that cannot have it");
const MAX_MAX_FRAME_BYTES: u32 = (1 << 24) - 1;

impl<H: Host> Connection<H> {
    pub(super) fn take_settings(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.has(ACK) {
            self.limit.acknowledge();
            return if frame.payload.is_empty() { Ok(()) } else { Err(WRONG_SIZE) };
        }
        let (settings, rest) = frame.payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(WRONG_SIZE);
        }
        for [n0, n1, v0, v1, v2, v3] in settings {
            self.take_setting(u16::from_be_bytes([*n0, *n1]), u32::from_be_bytes([*v0, *v1, *v2, *v3]))?;
        }
        write_header(&mut self.out, 0, SETTINGS, ACK, 0);
        self.unblock();
        Ok(())
    }

    fn take_setting(&mut self, name: u16, value: u32) -> Result<(), Breach> {
        let invalid = Breach::Connection(Code::PROTOCOL_ERROR, "a setting that cannot be");
        match name {
            frame::SETTING_TABLE_BYTES => self.sending.limit_table(value),
            frame::SETTING_ENABLE_PUSH if value > 1 => return Err(invalid),
            frame::SETTING_MAX_FRAME
                if !(MAX_PAYLOAD_BYTES as u32..=MAX_MAX_FRAME_BYTES).contains(&value) =>
            {
                return Err(invalid);
            }
            frame::SETTING_FIRST_WINDOW => return self.change_first_window(value),
            _ => {}
        }
        Ok(())
    }

    /// Changes the first window of streams to come, and by as much the windows of those that are open.
    fn change_first_window(&mut self, bytes: u32) -> Result<(), Breach> {
        let breach = Breach::Connection(Code::FLOW_CONTROL_ERROR, "a window above the largest");
        if bytes > MAX_WINDOW_BYTES {
            return Err(breach);
        }
        let change = i64::from(bytes) - self.sending.first_window;
        self.sending.first_window = i64::from(bytes);
        let mut widest = self.sending.first_window + i64::from(self.kept.widest());
        self.streams.for_each(|stream| {
            stream.send_window += change;
            widest = widest.max(stream.send_window);
        });
        if widest > i64::from(MAX_WINDOW_BYTES) { Err(breach) } else { Ok(()) }
    }

    pub(super) fn take_ping(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.payload.len() != 8 {
            return Err(WRONG_SIZE);
        }
        if !frame.has(ACK) {
            write_header(&mut self.out, 8, PING, ACK, 0);
            self.out.extend_from_slice(frame.payload);
        }
        Ok(())
    }

    pub(super) fn take_priority(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        match (frame.stream, frame.payload.len()) {
            (0, _) => Err(WRONG_STREAM),
            (_, 5) => Ok(()),
            _ if self.is_idle(frame.stream) => Err(WRONG_SIZE),
            _ => Err(Breach::Stream(Code::FRAME_SIZE_ERROR)),
        }
    }

    pub(super) fn take_goaway(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        if frame.stream != 0 {
            return Err(WRONG_STREAM);
        }
        if frame.payload.len() < 8 { Err(WRONG_SIZE) } else { Ok(()) }
    }

    pub(super) fn take_reset(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        frame.number()?;
        if frame.stream == 0 || self.is_idle(frame.stream) {
            return Err(WRONG_STREAM);
        }
        if !self.streams.close(frame.stream) {
            self.give_up(frame.stream);
        }
        Ok(())
    }

    pub(super) fn take_window_update(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        let increment = i64::from(frame.number()? & MAX_WINDOW_BYTES);
        if frame.stream != 0 {
            return self.widen_stream(frame.stream, increment);
        }
        if increment == 0 {
            return Err(Breach::Connection(Code::PROTOCOL_ERROR, "a window update of nothing"));
        }
        self.sending.window += increment;
        if self.sending.window > i64::from(MAX_WINDOW_BYTES) {
            return Err(Breach::Connection(Code::FLOW_CONTROL_ERROR, "a window above the largest"));
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
            return Err(Breach::Stream(Code::PROTOCOL_ERROR));
        }
        stream.send_window += increment;
        if stream.send_window > i64::from(MAX_WINDOW_BYTES) {
            return Err(Breach::Stream(Code::FLOW_CONTROL_ERROR));
        }
        if stream.phase == Phase::Window {
            self.unblock();
        }
        Ok(())
    }

    /// Widens the window of a stream whose answer waits; of one that is closed nothing is left to widen.
    fn widen_waiting(&mut self, id: u32, increment: i64) -> Result<(), Breach> {
        let Some(waiting) = self.kept.find(id) else { return Ok(()) };
        if increment == 0 {
            return Err(Breach::Stream(Code::PROTOCOL_ERROR));
        }
        let widened = i64::from(waiting.widened) + increment;
        if self.sending.first_window + widened > i64::from(MAX_WINDOW_BYTES) {
            return Err(Breach::Stream(Code::FLOW_CONTROL_ERROR));
        }
        waiting.widened = widened as u32;
        Ok(())
    }

    /// Returns whether a stream has never been opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id > self.last_stream || id.is_multiple_of(2)
    }

    /// Ends a stream with an error.
    pub(super) fn reset_stream(&mut self, id: u32, code: Code) {
        if !self.streams.close(id) {
            self.give_up(id);
        }
        self.remember_reset(id);
        write_number(&mut self.out, RST_STREAM, id, code.0);
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
        if used >= CONNECTION_WINDOW_BYTES / 2 {
            write_number(&mut self.out, WINDOW_UPDATE, 0, used);
            self.receive_window = CONNECTION_WINDOW_BYTES;
        }
    }
}

impl super::Sending {
    pub(super) fn new() -> Self {
        Self {
            window: i64::from(frame::FIRST_WINDOW_BYTES),
            first_window: i64::from(frame::FIRST_WINDOW_BYTES),
            blocked: std::collections::VecDeque::new(),
            gives_up_table: false,
            gave_up_table: false,
        }
    }

    /// A smaller table must be confirmed in the next header block; as ours is never used, it is given up for good.
    fn limit_table(&mut self, bytes: u32) {
        if (bytes as usize) < TABLE_BYTES && !self.gave_up_table {
            self.gives_up_table = true;
        }
    }
}
