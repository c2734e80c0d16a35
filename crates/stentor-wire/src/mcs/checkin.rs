//! The check-in, through which a program gets its android id.

use std::fmt;

use prost::Message;

use super::message;
use crate::WireError;

/// The check-in request of a program; its secret is not shown.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct McsCheckinRequest {
    /// The android id of an earlier check-in; none or 0 at the first one.
    #[prost(int64, optional, tag = "2")]
    pub android_id: Option<i64>,
    /// The security token of that id.
    #[prost(fixed64, optional, tag = "13")]
    pub security_token: Option<u64>,
    /// The version of the protocol: 3.
    #[prost(int32, optional, tag = "14")]
    pub version: Option<i32>,
}

impl fmt::Debug for McsCheckinRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McsCheckinRequest").field("android_id", &self.android_id).finish_non_exhaustive()
    }
}

/// The reply to a check-in; the secret is not shown.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct McsCheckinReply {
    /// Always true.
    #[prost(bool, required, tag = "1")]
    pub stats_ok: bool,
    /// The server's time, in milliseconds since 1970.
    #[prost(int64, optional, tag = "3")]
    pub time_msec: Option<i64>,
    /// The android id.
    #[prost(fixed64, optional, tag = "7")]
    pub android_id: Option<u64>,
    /// The secret of that id.
    #[prost(fixed64, optional, tag = "8")]
    pub security_token: Option<u64>,
    /// Version of the settings.
    #[prost(string, optional, tag = "11")]
    pub version_info: Option<String>,
}

impl fmt::Debug for McsCheckinReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McsCheckinReply").field("android_id", &self.android_id).finish_non_exhaustive()
    }
}

impl McsCheckinRequest {
    /// Parses a request.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        message(bytes)
    }

    /// Encodes the request.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

impl McsCheckinReply {
    /// Parses a reply.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        message(bytes)
    }

    /// Encodes the reply.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}
