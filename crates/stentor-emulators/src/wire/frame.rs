//! The few HTTP/2 frames that are written here by hand (RFC 9113, sections 4.1, 6.5 and 6.8).

pub(super) const FRAME_HEADER_BYTES: usize = 9;
pub(super) const KIND_HEADERS: u8 = 1;
const KIND_SETTINGS: u8 = 4;
const KIND_GOAWAY: u8 = 7;
const FLAG_ACK: u8 = 1;
const SETTING_MAX_CONCURRENT_STREAMS: u16 = 3;
const SETTING_BYTES: usize = 6;

/// Follows bytes through frames, to know when a frame has ended.
#[derive(Default)]
pub(super) struct FrameFollower {
    header: [u8; FRAME_HEADER_BYTES],
    header_bytes: usize,
    rest: usize,
}

impl FrameFollower {
    pub(super) fn at_boundary(&self) -> bool {
        self.rest == 0 && self.header_bytes == 0
    }

    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = if self.rest > 0 { self.follow_payload(bytes) } else { self.follow_header(bytes) };
        }
    }

    fn follow_payload<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let step = self.rest.min(bytes.len());
        self.rest -= step;
        &bytes[step..]
    }

    fn follow_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let step = (FRAME_HEADER_BYTES - self.header_bytes).min(bytes.len());
        self.header[self.header_bytes..self.header_bytes + step].copy_from_slice(&bytes[..step]);
        self.header_bytes += step;
        if self.header_bytes == FRAME_HEADER_BYTES {
            self.rest = u32::from_be_bytes([0, self.header[0], self.header[1], self.header[2]]) as usize;
            self.header_bytes = 0;
        }
        &bytes[step..]
    }
}

pub(super) fn is_settings_ack(header: &[u8; FRAME_HEADER_BYTES]) -> bool {
    header[3] == KIND_SETTINGS && header[4] & FLAG_ACK != 0
}

/// Rewrites the stream limit in a SETTINGS frame at the front of the buffer; false when it is not there yet.
pub(super) fn patch_max_streams(buffer: &mut [u8], limit: u32) -> bool {
    let Some((header, payload)) = buffer.split_first_chunk_mut::<FRAME_HEADER_BYTES>() else { return false };
    let payload_bytes = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
    if header[3] != KIND_SETTINGS || payload.len() < payload_bytes {
        return false;
    }
    for setting in payload[..payload_bytes].chunks_exact_mut(SETTING_BYTES) {
        if u16::from_be_bytes([setting[0], setting[1]]) == SETTING_MAX_CONCURRENT_STREAMS {
            setting[2..].copy_from_slice(&limit.to_be_bytes());
        }
    }
    true
}

/// Returns a SETTINGS frame that changes the number of streams the peer may have open.
pub(crate) fn settings_max_streams(limit: u32) -> Vec<u8> {
    let mut frame = header(SETTING_BYTES, KIND_SETTINGS);
    frame.extend_from_slice(&SETTING_MAX_CONCURRENT_STREAMS.to_be_bytes());
    frame.extend_from_slice(&limit.to_be_bytes());
    frame
}

/// Returns a GOAWAY frame with a chosen last stream id.
pub(crate) fn goaway(last_stream_id: u32, code: u32, debug: &[u8]) -> Vec<u8> {
    let mut frame = header(8 + debug.len(), KIND_GOAWAY);
    frame.extend_from_slice(&last_stream_id.to_be_bytes());
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(debug);
    frame
}

fn header(payload_bytes: usize, kind: u8) -> Vec<u8> {
    let length = (payload_bytes as u32).to_be_bytes();
    vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 0]
}
