//! The check-in, by which a program gets its android id.

use std::fmt;

use prost::Message;

use super::message;
use crate::WireError;

/// What a program tells when it checks in; its secret is not shown.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct McsCheckinRequest {
    /// The android id that it was given before; none or 0 at the first time.
    #[prost(int64, optional, tag = "2")]
    pub android_id: Option<i64>,
    /// The security token that belongs to it.
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

/// What it is told; the secret is not shown.
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
    /// What proves it.
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
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        message(bytes)
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

impl McsCheckinReply {
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        message(bytes)
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}
