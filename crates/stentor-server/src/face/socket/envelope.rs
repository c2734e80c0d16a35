//! Content of a frame: a numbered request or its reply, or a complete document of another face.

mod json;
mod protobuf;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use stentor_core::name::IdempotencyKey;

use crate::contract::Problem;
use crate::contract::description::description;
use crate::face::record::Record;

/// Encoding of requests and replies, chosen by the hello.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameEncoding {
    /// Numbered requests in JSON.
    #[default]
    Json,
    /// Numbered requests in Protocol Buffers.
    Protobuf,
    /// XML-RPC documents, answered in order.
    Xmlrpc,
    /// SOAP 1.1 or 1.2 envelopes, answered in order.
    Soap,
}

/// Encodings with their descriptions.
pub(super) const ENCODINGS: &[(&str, &str)] = &[
    ("json", "one request or reply as a JSON object"),
    ("protobuf", "one request or reply as a message of Protocol Buffers"),
    ("xmlrpc", "one document of XML-RPC, without a number; replies come in order"),
    (
        "soap",
        "one envelope of SOAP 1.1 or 1.2, without a number; replies come in order, in the request's version",
    ),
];

/// A field of a message in a frame.
pub(super) struct EnvelopeField {
    pub(super) message: &'static str,
    pub(super) name: &'static str,
    /// Field number in Protocol Buffers.
    pub(super) number: u32,
    /// Type in Protocol Buffers.
    pub(super) kind: &'static str,
    pub(super) about: &'static str,
}

const fn field(
    message: &'static str,
    name: &'static str,
    number: u32,
    kind: &'static str,
    about: &'static str,
) -> EnvelopeField {
    EnvelopeField { message, name, number, kind, about }
}

/// Fields of the messages in frames.
pub(super) const FIELDS: &[EnvelopeField] = &[
    field("request", "id", 1, "uint64", "the client's number for the request, 1 or more"),
    field("request", "operation", 2, "string", "the name of an operation; in JSON also its number"),
    field(
        "request",
        "operation_number",
        3,
        "uint64",
        "the operation's number in place of the name; not in JSON",
    ),
    field("request", "record", 4, "bytes", "the record of the request; empty when it is absent"),
    field("request", "idempotency_key", 5, "string", "optional: makes a repetition harmless"),
    field("reply", "id", 1, "uint64", "the request's number; 0 for the connection's last frame"),
    field("reply", "reply", 2, "bytes", "the record of the reply, if the operation succeeded"),
    field("reply", "error", 3, "error", "the refusal, otherwise"),
    field("error", "code", 1, "string", "a stable word for programs"),
    field("error", "number", 2, "int32", "the same code as a number"),
    field("error", "field", 3, "string", "optional: path of the offending field"),
    field("error", "detail", 4, "string", "the reason, for people"),
    field("error", "hint", 5, "string", "optional: the next step"),
    field("error", "retry_after_seconds", 6, "uint32", "optional: the wait before a retry"),
];

/// A request from a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketRequest {
    /// Number that the client gave the request.
    pub id: u64,
    /// Name of the operation.
    pub operation: String,
    /// Record of the request.
    pub record: Record,
    /// Idempotency key, if any.
    pub key: Option<IdempotencyKey>,
}

/// A frame that is not a valid request.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// Number of the request; zero if it could not be read.
    pub id: u64,
    /// Description of the error.
    pub problem: Problem,
}

impl FrameEncoding {
    /// Decodes a numbered request. Documents have no number and are not decoded here.
    pub fn read(self, frame: &[u8]) -> Result<SocketRequest, Unread> {
        match self {
            Self::Protobuf => protobuf::read(frame),
            Self::Json | Self::Xmlrpc | Self::Soap => json::read(frame),
        }
    }

    /// Encodes the reply to a numbered request for the named operation.
    #[must_use]
    pub fn write(self, id: u64, operation: &str, reply: &Result<Record, Problem>) -> Vec<u8> {
        match self {
            Self::Protobuf => protobuf::write(id, operation, reply),
            Self::Json | Self::Xmlrpc | Self::Soap => json::write(id, reply),
        }
    }
}

/// Returns the name of the operation with this number.
fn operation_of(number: u64) -> Option<&'static str> {
    let numbers = &description().numbers.operations;
    numbers.iter().find(|(_, known)| u64::from(**known) == number).map(|(name, _)| name.as_str())
}
