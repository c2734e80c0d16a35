//! The messages inside of stanzas. A field that `mcs.proto` requires is written even where it is empty.

use std::fmt;

use prost::Message;

/// A heartbeat, or the answer to one.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeat {
    /// Number of this stanza; nobody sends it any more, both sides count.
    #[prost(int32, optional, tag = "1")]
    pub stream_id: Option<i32>,
    /// The last stanza that its writer has received.
    #[prost(int32, optional, tag = "2")]
    pub last_stream_id_received: Option<i32>,
    /// Bit 0: the device is idle.
    #[prost(int64, optional, tag = "3")]
    pub status: Option<i64>,
}

/// What is wrong with a request.
#[derive(Clone, PartialEq, Message)]
pub struct McsErrorInfo {
    /// A number as HTTP has them.
    #[prost(int32, required, tag = "1")]
    pub code: i32,
    /// In words.
    #[prost(string, optional, tag = "2")]
    pub message: Option<String>,
    /// Its kind.
    #[prost(string, optional, tag = "3")]
    pub kind: Option<String>,
}

/// A setting of a connection.
#[derive(Clone, PartialEq, Message)]
pub struct McsSetting {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// How heartbeats went so far, and how often the device wants them.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeatStat {
    /// The address of the device.
    #[prost(string, required, tag = "1")]
    pub ip: String,
    /// Whether the last connection ended because one was not answered.
    #[prost(bool, required, tag = "2")]
    pub timeout: bool,
    /// Time between two, in milliseconds.
    #[prost(int32, required, tag = "3")]
    pub interval_ms: i32,
}

/// How often the server wants heartbeats.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeatConfig {
    /// Whether the device is to tell how they went.
    #[prost(bool, optional, tag = "1")]
    pub upload_stat: Option<bool>,
    /// Time between two, in milliseconds.
    #[prost(int32, optional, tag = "3")]
    pub interval_ms: Option<i32>,
}

/// The device's first stanza; its secret is not shown.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct McsLoginRequest {
    /// Name and version of the program.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// `mcs.android.com`.
    #[prost(string, required, tag = "2")]
    pub domain: String,
    /// The android id, in decimal.
    #[prost(string, required, tag = "3")]
    pub user: String,
    /// The same.
    #[prost(string, required, tag = "4")]
    pub resource: String,
    /// The security token, in decimal.
    #[prost(string, required, tag = "5")]
    pub auth_token: String,
    /// `android-` and the android id in hexadecimal.
    #[prost(string, optional, tag = "6")]
    pub device_id: Option<String>,
    /// What the client wants set.
    #[prost(message, repeated, tag = "8")]
    pub settings: Vec<McsSetting>,
    /// Messages that were received through an earlier connection.
    #[prost(string, repeated, tag = "10")]
    pub received_persistent_ids: Vec<String>,
    /// Whether the server may choose how often heartbeats come.
    #[prost(bool, optional, tag = "12")]
    pub adaptive_heartbeat: Option<bool>,
    /// How often the device wants heartbeats.
    #[prost(message, optional, tag = "13")]
    pub heartbeat_stat: Option<McsHeartbeatStat>,
    /// Always true.
    #[prost(bool, optional, tag = "14")]
    pub use_rmq2: Option<bool>,
    /// 2: by android id.
    #[prost(int32, optional, tag = "16")]
    pub auth_service: Option<i32>,
    /// 1: a network without wires.
    #[prost(int32, optional, tag = "17")]
    pub network_type: Option<i32>,
}

impl fmt::Debug for McsLoginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McsLoginRequest")
            .field("id", &self.id)
            .field("user", &self.user)
            .field("received_persistent_ids", &self.received_persistent_ids)
            .finish_non_exhaustive()
    }
}

/// The server's first stanza.
#[derive(Clone, PartialEq, Message)]
pub struct McsLoginReply {
    /// As the request had it.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// Set when the device may not come in.
    #[prost(message, optional, tag = "3")]
    pub error: Option<McsErrorInfo>,
    /// What the server wants set.
    #[prost(message, repeated, tag = "4")]
    pub settings: Vec<McsSetting>,
    /// Number of this stanza.
    #[prost(int32, optional, tag = "5")]
    pub stream_id: Option<i32>,
    /// The last stanza that the server has received, 1.
    #[prost(int32, optional, tag = "6")]
    pub last_stream_id_received: Option<i32>,
    /// How often the server wants heartbeats.
    #[prost(message, optional, tag = "7")]
    pub heartbeat_config: Option<McsHeartbeatConfig>,
    /// The server's time, in milliseconds since 1970.
    #[prost(int64, optional, tag = "8")]
    pub server_timestamp: Option<i64>,
}

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct McsClose {}

/// What ends a stream.
#[derive(Clone, PartialEq, Message)]
pub struct McsStreamError {
    /// A word for it, as XMPP has them.
    #[prost(string, required, tag = "1")]
    pub kind: String,
    /// In words.
    #[prost(string, optional, tag = "2")]
    pub text: Option<String>,
}

/// Carried by an [`McsIq`].
#[derive(Clone, PartialEq, Message)]
pub struct McsExtension {
    /// Which one it is.
    #[prost(int32, required, tag = "1")]
    pub id: i32,
    /// Its message.
    #[prost(bytes = "vec", required, tag = "2")]
    pub data: Vec<u8>,
}

/// A question or an answer.
#[derive(Clone, PartialEq, Message)]
pub struct McsIq {
    /// 0 get, 1 set, 2 result, 3 error.
    #[prost(int32, required, tag = "2")]
    pub kind: i32,
    /// Its id, mostly empty.
    #[prost(string, required, tag = "3")]
    pub id: String,
    /// What it carries.
    #[prost(message, optional, tag = "7")]
    pub extension: Option<McsExtension>,
    /// Set on what is to be kept until it is acknowledged.
    #[prost(string, optional, tag = "8")]
    pub persistent_id: Option<String>,
    /// Number of this stanza.
    #[prost(int32, optional, tag = "9")]
    pub stream_id: Option<i32>,
    /// The last stanza that its writer has received.
    #[prost(int32, optional, tag = "10")]
    pub last_stream_id_received: Option<i32>,
    /// Bit 0: the device is idle.
    #[prost(int64, optional, tag = "12")]
    pub status: Option<i64>,
}

/// One entry of a message's data.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct McsAppData {
    /// Its key.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// A message, in either direction.
#[derive(Clone, PartialEq, Message)]
pub struct McsData {
    /// The writer's name for it.
    #[prost(string, optional, tag = "2")]
    pub id: Option<String>,
    /// Who sends it: a sender's number or key.
    #[prost(string, required, tag = "3")]
    pub from: String,
    /// Whom it is for.
    #[prost(string, optional, tag = "4")]
    pub to: Option<String>,
    /// The program on the device.
    #[prost(string, required, tag = "5")]
    pub category: String,
    /// The collapse key.
    #[prost(string, optional, tag = "6")]
    pub token: Option<String>,
    /// Its data.
    #[prost(message, repeated, tag = "7")]
    pub app_data: Vec<McsAppData>,
    /// What it is acknowledged by.
    #[prost(string, optional, tag = "9")]
    pub persistent_id: Option<String>,
    /// Number of this stanza.
    #[prost(int32, optional, tag = "10")]
    pub stream_id: Option<i32>,
    /// The last stanza that its writer has received.
    #[prost(int32, optional, tag = "11")]
    pub last_stream_id_received: Option<i32>,
    /// How long it may wait, in seconds.
    #[prost(int32, optional, tag = "17")]
    pub ttl: Option<i32>,
    /// When it was sent: by a server in milliseconds since 1970.
    #[prost(int64, optional, tag = "18")]
    pub sent: Option<i64>,
    /// How long it has waited on the device, in seconds.
    #[prost(int32, optional, tag = "19")]
    pub queued: Option<i32>,
    /// Bytes that only the program can read.
    #[prost(bytes = "vec", optional, tag = "21")]
    pub raw_data: Option<Vec<u8>>,
    /// Whether it is to be acknowledged at once.
    #[prost(bool, optional, tag = "24")]
    pub immediate_ack: Option<bool>,
}

/// How far its writer has received, in the stanza around it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct McsStreamAck {}

/// Acknowledges messages.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct McsSelectiveAck {
    /// Their persistent ids.
    #[prost(string, repeated, tag = "1")]
    pub ids: Vec<String>,
}
