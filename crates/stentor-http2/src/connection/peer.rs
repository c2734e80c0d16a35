//! The peer's limits: its SETTINGS and its windows.

use stentor_http2_codec::frame::{
    ErrorCode, PAYLOAD_DEFAULT_MAX_BYTES, PAYLOAD_LIMIT_BYTES, WINDOW_DEFAULT_BYTES, WINDOW_MAX_BYTES,
    setting,
};

use super::violation::Violation;

/// The limits that the peer has set.
#[derive(Debug)]
pub(crate) struct Peer {
    /// True once its first SETTINGS have come.
    pub(crate) is_known: bool,
    pub(crate) max_streams: u32,
    pub(crate) max_payload_bytes: usize,
    /// Window of a new stream.
    pub(crate) stream_window_bytes: i64,
    /// Window of the connection.
    pub(crate) window_bytes: i64,
    /// The last stream id of the peer's GOAWAY, if it sent one.
    pub(crate) goes_after: Option<u32>,
}

/// The effect of a setting outside of [`Peer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsChange {
    None,
    HeaderTable(usize),
    /// Changes every stream's window by this number of bytes.
    StreamWindows(i64),
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            is_known: false,
            max_streams: u32::MAX,
            max_payload_bytes: PAYLOAD_DEFAULT_MAX_BYTES,
            stream_window_bytes: i64::from(WINDOW_DEFAULT_BYTES),
            window_bytes: i64::from(WINDOW_DEFAULT_BYTES),
            goes_after: None,
        }
    }
}

impl Peer {
    /// Applies one setting; unknown ones are ignored (RFC 9113, section 6.5.2).
    pub(crate) fn apply(&mut self, id: u16, value: u32) -> Result<SettingsChange, Violation> {
        match id {
            setting::HEADER_TABLE_SIZE => return Ok(SettingsChange::HeaderTable(value as usize)),
            setting::ENABLE_PUSH if value != 0 => {
                return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a server enables push"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.max_streams = value,
            setting::INITIAL_WINDOW_SIZE => return self.resize_windows(i64::from(value)),
            setting::MAX_FRAME_SIZE => {
                let bytes = value as usize;
                if !(PAYLOAD_DEFAULT_MAX_BYTES..=PAYLOAD_LIMIT_BYTES).contains(&bytes) {
                    return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a frame size is out of bounds"));
                }
                self.max_payload_bytes = bytes;
            }
            _ => {}
        }
        Ok(SettingsChange::None)
    }

    fn resize_windows(&mut self, bytes: i64) -> Result<SettingsChange, Violation> {
        if bytes > i64::from(WINDOW_MAX_BYTES) {
            return Err(Violation(ErrorCode::FLOW_CONTROL_ERROR, "an initial window is too large"));
        }
        // Only streams: the connection's window changes through WINDOW_UPDATE alone (RFC 9113, section 6.9.2).
        let change = bytes - self.stream_window_bytes;
        self.stream_window_bytes = bytes;
        Ok(SettingsChange::StreamWindows(change))
    }

    /// Widens the connection's window.
    pub(crate) fn widen(&mut self, bytes: u32) -> Result<(), Violation> {
        self.window_bytes += i64::from(bytes);
        if bytes == 0 {
            return Err(Violation(ErrorCode::PROTOCOL_ERROR, "a window grows by nothing"));
        }
        if self.window_bytes > i64::from(WINDOW_MAX_BYTES) {
            return Err(Violation(ErrorCode::FLOW_CONTROL_ERROR, "the connection's window is too large"));
        }
        Ok(())
    }
}
