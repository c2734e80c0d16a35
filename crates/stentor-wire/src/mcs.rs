//! Stanzas of MCS, the protocol between Google's push service and its devices, as Chromium publishes them (`mcs.proto`), and the preceding
//! check-in (`checkin.proto`). A stanza is a tag of one byte, its length as a varint, and a message of Protocol Buffers. Only the fields in
//! use are declared; others are skipped.

mod checkin;
mod messages;

pub use checkin::{McsCheckinReply, McsCheckinRequest};
pub use messages::{
    McsAppData, McsClose, McsData, McsErrorInfo, McsExtension, McsHeartbeat, McsHeartbeatConfig,
    McsHeartbeatStat, McsIq, McsLoginReply, McsLoginRequest, McsSelectiveAck, McsSetting, McsStreamAck,
    McsStreamError,
};

use prost::Message;

use crate::WireError;
use crate::protobuf::fields::put_varint;

/// The version, which both sides send as their first byte.
pub const VERSION: u8 = 41;
/// The extension of an [`McsIq`] that holds an [`McsSelectiveAck`].
pub const SELECTIVE_ACK: i32 = 12;
/// The extension of an [`McsIq`] that holds an [`McsStreamAck`].
pub const STREAM_ACK: i32 = 13;
/// The [`McsIq`] type of a set request.
pub const IQ_SET: i32 = 1;
/// Most bytes of a stanza's length.
const LENGTH_MAX_BYTES: usize = 5;

/// A stanza.
#[derive(Debug, Clone, PartialEq)]
pub enum McsStanza {
    /// A check that the other side is alive.
    HeartbeatPing(McsHeartbeat),
    /// The answer to a ping.
    HeartbeatAck(McsHeartbeat),
    /// The device's first stanza.
    LoginRequest(Box<McsLoginRequest>),
    /// The server's first stanza.
    LoginReply(McsLoginReply),
    /// The end of the connection.
    Close,
    /// A stanza with an extension.
    Iq(McsIq),
    /// A message.
    Data(Box<McsData>),
    /// An error of the stream, which ends.
    StreamError(McsStreamError),
    /// An unused tag; its content was skipped.
    Other(u8),
}

impl McsStanza {
    /// Returns the tag, its first byte.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        match self {
            Self::HeartbeatPing(_) => 0,
            Self::HeartbeatAck(_) => 1,
            Self::LoginRequest(_) => 2,
            Self::LoginReply(_) => 3,
            Self::Close => 4,
            Self::Iq(_) => 7,
            Self::Data(_) => 8,
            Self::StreamError(_) => 10,
            Self::Other(tag) => *tag,
        }
    }

    /// Parses the message of a tag.
    pub fn read(tag: u8, bytes: &[u8]) -> Result<Self, WireError> {
        Ok(match tag {
            0 => Self::HeartbeatPing(message(bytes)?),
            1 => Self::HeartbeatAck(message(bytes)?),
            2 => Self::LoginRequest(Box::new(message(bytes)?)),
            3 => Self::LoginReply(message(bytes)?),
            4 => message::<McsClose>(bytes).map(|_| Self::Close)?,
            7 => Self::Iq(message(bytes)?),
            8 => Self::Data(Box::new(message(bytes)?)),
            10 => Self::StreamError(message(bytes)?),
            other => Self::Other(other),
        })
    }

    /// Writes tag, length and message.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        match self {
            Self::HeartbeatPing(heartbeat) | Self::HeartbeatAck(heartbeat) => put(heartbeat, out),
            Self::LoginRequest(request) => put(request.as_ref(), out),
            Self::LoginReply(reply) => put(reply, out),
            Self::Iq(iq) => put(iq, out),
            Self::Data(data) => put(data.as_ref(), out),
            Self::StreamError(error) => put(error, out),
            Self::Close | Self::Other(_) => put(&McsClose {}, out),
        }
    }

    /// Returns the last stanza of the reader that the writer has received, if the stanza has such a field.
    #[must_use]
    pub fn last_received(&self) -> Option<u32> {
        let last = match self {
            Self::HeartbeatPing(heartbeat) | Self::HeartbeatAck(heartbeat) => {
                heartbeat.last_stream_id_received
            }
            Self::LoginReply(reply) => reply.last_stream_id_received,
            Self::Iq(iq) => iq.last_stream_id_received,
            Self::Data(data) => data.last_stream_id_received,
            Self::LoginRequest(_) | Self::Close | Self::StreamError(_) | Self::Other(_) => None,
        };
        last.and_then(|last| u32::try_from(last).ok())
    }

    /// Sets the last stanza received from the reader. Returns false if the stanza has no such field.
    pub fn say_received(&mut self, last: u32) -> bool {
        let field = match self {
            Self::HeartbeatPing(heartbeat) | Self::HeartbeatAck(heartbeat) => {
                &mut heartbeat.last_stream_id_received
            }
            Self::LoginReply(reply) => &mut reply.last_stream_id_received,
            Self::Iq(iq) => &mut iq.last_stream_id_received,
            Self::Data(data) => &mut data.last_stream_id_received,
            Self::LoginRequest(_) | Self::Close | Self::StreamError(_) | Self::Other(_) => return false,
        };
        *field = i32::try_from(last).ok();
        true
    }
}

impl McsIq {
    /// Creates a stanza that acknowledges messages by their persistent ids.
    #[must_use]
    pub fn acknowledging(ids: Vec<String>) -> Self {
        Self::setting(SELECTIVE_ACK, McsSelectiveAck { ids }.encode_to_vec())
    }

    /// Creates a stanza that carries only the last stanza received.
    #[must_use]
    pub fn stream_ack() -> Self {
        Self::setting(STREAM_ACK, McsStreamAck {}.encode_to_vec())
    }

    fn setting(id: i32, data: Vec<u8>) -> Self {
        Self { kind: IQ_SET, extension: Some(McsExtension { id, data }), ..Self::default() }
    }

    /// Returns the acknowledged persistent ids, possibly none.
    pub fn acknowledged(&self) -> Result<Vec<String>, WireError> {
        match &self.extension {
            Some(extension) if extension.id == SELECTIVE_ACK => {
                Ok(message::<McsSelectiveAck>(&extension.data)?.ids)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The place of a stanza in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McsFrame {
    /// Its tag.
    pub tag: u8,
    /// Start of its message.
    pub begin: usize,
    /// End of its message, and start of the next stanza.
    pub end: usize,
}

/// Finds the first stanza in bytes; `None` until it is complete. A length above the limit is refused as soon as it is known.
pub fn find_frame(bytes: &[u8], max_bytes: usize) -> Result<Option<McsFrame>, WireError> {
    let Some((tag, rest)) = bytes.split_first() else { return Ok(None) };
    let mut length = 0_u64;
    for (index, byte) in rest.iter().take(LENGTH_MAX_BYTES).enumerate() {
        length |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > max_bytes {
                return Err(WireError::TooLarge { max_bytes });
            }
            let begin = index + 2;
            let frame = McsFrame { tag: *tag, begin, end: begin + length };
            return Ok((frame.end <= bytes.len()).then_some(frame));
        }
    }
    if rest.len() < LENGTH_MAX_BYTES {
        return Ok(None);
    }
    Err(WireError::Malformed("the length of a stanza has more than five bytes".into()))
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, WireError> {
    M::decode(bytes).map_err(|error| WireError::Malformed(error.to_string()))
}

fn put(message: &impl Message, out: &mut Vec<u8>) {
    put_varint(message.encoded_len() as u64, out);
    message.encode_raw(out);
}

#[cfg(test)]
mod tests;
