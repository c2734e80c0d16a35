//! One connection without its IO: bytes go in, bytes come out.
//!
//! Frames are parsed where they were read, and the answers of one read are written back to back into one buffer.

mod control;
mod request;
mod sending;
#[cfg(test)]
mod tests;

use super::answer::EncodedAnswer;
use super::delayed_answers::{AnswerArena, DelayedAnswers};
use super::field::Decoder;
use super::frame::{Breach, Frame};
use super::host::{GoAwayEnd, Host, Order};
use super::limit::Limit;
use super::streams::StreamTable;
use std::collections::VecDeque;
use stentor_http2_codec::frame::{
    self, ErrorCode, PAYLOAD_DEFAULT_MAX_BYTES, PREFACE, WINDOW_DEFAULT_BYTES, flag, kind, setting,
};
use tokio::time::Instant;

/// The window of the whole connection, in bytes.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// The largest header block that is put together from several frames, in bytes.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// The number of streams reset by us that are remembered. Frames in flight for them are no breach.
const MAX_RESET_STREAMS: usize = 1024;

/// The limits that a connection announces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) max_concurrent_streams: u32,
    pub(crate) max_header_list_bytes: u32,
}

/// The state of one connection.
pub(crate) struct Connection<H: Host> {
    host: H,
    out: Vec<u8>,
    decoder: Decoder,
    streams: StreamTable<H::Draft>,
    limit: Limit,
    max_header_list_bytes: usize,
    greeting: Greeting,
    /// The stream and flags of an incomplete header block, and its bytes so far.
    unfinished: Option<(u32, u8)>,
    block: Vec<u8>,
    last_stream: u32,
    last_taken: u32,
    reset: VecDeque<u32>,
    /// Streams with a written but unsent response. The peer must count them as open.
    unsent: usize,
    receive_window: u32,
    sending: SendWindows,
    delayed: DelayedAnswers<H::Waiting>,
    delayed_bytes: AnswerArena,
    scratch: EncodedAnswer,
    end: End,
}

/// Progress of the peer's connection preface.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Greeting {
    Nothing,
    Preface,
    Settings,
}

/// The closing state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection continues.
    Open,
    /// The connection ends when all streams are closed.
    Draining,
    /// Nothing more is read. Pending output is sent, then the connection is closed.
    Closing,
}

/// The windows and settings that the peer gave us.
struct SendWindows {
    window: i64,
    first_window: i64,
    /// The streams that wait for a window, in their order.
    blocked: VecDeque<u32>,
    /// True if the next header block must begin by shrinking the dynamic table to zero, and true once one did.
    gives_up_table: bool,
    gave_up_table: bool,
}

impl<H: Host> Connection<H> {
    /// Starts a connection, with its first frames ready to be sent.
    pub(crate) fn new(host: H, limits: ConnectionLimits) -> Self {
        let mut out = Vec::with_capacity(PAYLOAD_DEFAULT_MAX_BYTES);
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, limits.max_concurrent_streams),
            (setting::MAX_HEADER_LIST_SIZE, limits.max_header_list_bytes),
        ];
        frame::write_settings(&settings, &mut out);
        // The connection's window is in no setting: it can only be widened (RFC 9113, section 6.9.2).
        let more = CONNECTION_WINDOW_BYTES - WINDOW_DEFAULT_BYTES;
        frame::write_number(kind::WINDOW_UPDATE, 0, more, &mut out);
        Self {
            host,
            out,
            decoder: Decoder::new(),
            streams: StreamTable::new(),
            limit: Limit::new(limits.max_concurrent_streams),
            max_header_list_bytes: limits.max_header_list_bytes as usize,
            greeting: Greeting::Nothing,
            unfinished: None,
            block: Vec::new(),
            last_stream: 0,
            last_taken: 0,
            reset: VecDeque::new(),
            unsent: 0,
            receive_window: CONNECTION_WINDOW_BYTES,
            sending: SendWindows::new(),
            delayed: DelayedAnswers::new(),
            delayed_bytes: AnswerArena::default(),
            scratch: EncodedAnswer::default(),
            end: End::Open,
        }
    }

    /// Processes received bytes and returns the number consumed. The rest is the start of a frame.
    pub(crate) fn receive(&mut self, bytes: &[u8], now: Instant) -> usize {
        self.host.begin_batch(now);
        let mut rest = bytes;
        while self.end != End::Closing {
            match self.step(rest) {
                Ok(Some(after)) => rest = after,
                Ok(None) => break,
                // No frame is known yet: such a breach is always the connection's.
                Err(breach) => self.punish(breach, 0),
            }
        }
        self.host.end_batch();
        self.replenish();
        bytes.len() - rest.len()
    }

    /// Processes the preface or one frame; `None` if it is incomplete.
    fn step<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, Breach> {
        if self.greeting == Greeting::Nothing {
            return self.take_preface(bytes);
        }
        let Some((frame, rest)) = Frame::cut(bytes)? else { return Ok(None) };
        if let Err(breach) = self.take(frame) {
            self.punish(breach, frame.header.stream);
        }
        Ok(Some(rest))
    }

    fn take_preface<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<&'b [u8]>, Breach> {
        let seen = bytes.len().min(PREFACE.len());
        if bytes[..seen] != PREFACE[..seen] {
            return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "no HTTP/2 preface"));
        }
        let Some(rest) = bytes.get(PREFACE.len()..) else { return Ok(None) };
        self.greeting = Greeting::Preface;
        Ok(Some(rest))
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<(), Breach> {
        // No other frame may occur inside a header block (RFC 9113, section 6.10).
        if self.unfinished.is_some() && frame.header.kind != kind::CONTINUATION {
            return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a frame inside a header block"));
        }
        if self.greeting == Greeting::Preface {
            if frame.header.kind != kind::SETTINGS || frame.has(flag::ACK) {
                return Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
            }
            self.greeting = Greeting::Settings;
        }
        match frame.header.kind {
            kind::HEADERS => self.take_headers(frame),
            kind::DATA => self.take_data(frame),
            kind::CONTINUATION => self.take_continuation(frame),
            kind::WINDOW_UPDATE => self.take_window_update(frame),
            kind::SETTINGS => self.take_settings(frame),
            kind::PING => self.take_ping(frame),
            kind::RST_STREAM => self.take_reset(frame),
            kind::PRIORITY => self.take_priority(frame),
            kind::GOAWAY => self.take_goaway(frame),
            kind::PUSH_PROMISE => {
                Err(Breach::Connection(ErrorCode::PROTOCOL_ERROR, "a push promise from a client"))
            }
            // A frame of an unknown kind is ignored (RFC 9113, section 4.1).
            _ => Ok(()),
        }
    }

    fn punish(&mut self, breach: Breach, stream: u32) {
        match breach {
            Breach::Connection(code, text) => {
                // Reports only processed streams: the peer may send the others elsewhere.
                frame::write_goaway(self.last_taken, code, text.as_bytes(), &mut self.out);
                self.end = End::Closing;
            }
            Breach::Stream(code) => self.reset_stream(stream, code),
        }
    }

    /// Returns the bytes to be sent. The caller sends them and then calls [`Self::sent`].
    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// Notes that everything has been sent.
    pub(crate) fn sent(&mut self) {
        self.out.clear();
        self.unsent = 0;
    }

    pub(crate) fn end(&self) -> End {
        if self.end == End::Draining && self.open_streams() == 0 { End::Closing } else { self.end }
    }

    /// Counts the open streams, in any phase.
    fn open_streams(&self) -> usize {
        self.streams.len() + self.delayed.len()
    }

    pub(crate) fn has_greeted(&self) -> bool {
        self.greeting == Greeting::Settings
    }

    pub(crate) fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// Carries an order out.
    pub(crate) fn obey(&mut self, order: Order) {
        match order {
            Order::Announce(limit) => self.announce(limit),
            Order::Release => self.release(),
            Order::Leave { code, debug, then } => self.leave(code, &debug, then),
        }
    }

    /// Sends GOAWAY, unless the connection is ending already.
    pub(crate) fn leave(&mut self, code: ErrorCode, debug: &[u8], then: GoAwayEnd) {
        // The peer has its GOAWAY already: only the wait for the open streams ends, or a stop would never be followed.
        if self.end == End::Draining && then == GoAwayEnd::Close {
            self.end = End::Closing;
        }
        if self.end != End::Open {
            return;
        }
        frame::write_goaway(self.last_taken, code, debug, &mut self.out);
        self.end = match then {
            GoAwayEnd::Linger => End::Open,
            GoAwayEnd::Drain => End::Draining,
            GoAwayEnd::Close => End::Closing,
        };
    }

    fn announce(&mut self, limit: u32) {
        if self.limit.announce(limit) {
            frame::write_settings(&[(setting::MAX_CONCURRENT_STREAMS, limit)], &mut self.out);
        }
    }
}
