//! Request bodies blocked by the peer's flow-control windows.

use stentor_http2_codec::frame::{FrameHeader, WINDOW_MAX_BYTES, flag, kind};

use super::peer::Peer;

/// The rest of one request's body.
#[derive(Debug)]
struct Body {
    stream: u32,
    bytes: Vec<u8>,
    sent: usize,
    window_bytes: i64,
}

/// All blocked bodies, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    bodies: Vec<Body>,
}

impl Blocked {
    pub(crate) fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    pub(crate) fn push(&mut self, stream: u32, bytes: Vec<u8>, window_bytes: i64) {
        self.bodies.push(Body { stream, bytes, sent: 0, window_bytes });
    }

    /// Removes a stream's body; returns true if it was not completely written.
    pub(crate) fn remove(&mut self, stream: u32) -> bool {
        let before = self.bodies.len();
        self.bodies.retain(|body| body.stream != stream);
        self.bodies.len() < before
    }

    /// Changes every window, as new SETTINGS do.
    pub(crate) fn shift_windows(&mut self, bytes: i64) {
        self.bodies.iter_mut().for_each(|body| body.window_bytes += bytes);
    }

    /// Widens one stream's window; returns false if it exceeds the maximum of 2^31-1.
    pub(crate) fn widen(&mut self, stream: u32, bytes: u32) -> bool {
        let Some(body) = self.bodies.iter_mut().find(|body| body.stream == stream) else { return true };
        body.window_bytes += i64::from(bytes);
        body.window_bytes <= i64::from(WINDOW_MAX_BYTES)
    }

    /// Writes as much as the windows permit.
    pub(crate) fn pump(&mut self, peer: &mut Peer, out: &mut Vec<u8>) {
        // Oldest first, because they share the connection's window and have waited longest.
        self.bodies.retain_mut(|body| !body.pump(peer, out));
    }
}

impl Body {
    /// Returns true if the whole body is written.
    fn pump(&mut self, peer: &mut Peer, out: &mut Vec<u8>) -> bool {
        while self.sent < self.bytes.len() {
            // The window may be negative after SETTINGS shrank it (RFC 9113, section 6.9.2). Then nothing is sent until it has grown again.
            let window = usize::try_from(self.window_bytes.min(peer.window_bytes)).unwrap_or(0);
            let left = self.bytes.len() - self.sent;
            let length = left.min(window).min(peer.max_payload_bytes);
            if length == 0 {
                return false;
            }
            let flags = if length == left { flag::END_STREAM } else { 0 };
            FrameHeader { length, kind: kind::DATA, flags, stream: self.stream }.write(out);
            out.extend_from_slice(&self.bytes[self.sent..self.sent + length]);
            self.sent += length;
            self.window_bytes -= length as i64;
            peer.window_bytes -= length as i64;
        }
        true
    }
}
