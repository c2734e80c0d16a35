//! The messages inside stanzas. A field that `mcs.proto` requires is written even if it is empty.

use std::fmt;

use prost::Message;

/// A heartbeat, or the answer to one.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeat {
    /// Number of this stanza; obsolete, because both sides count.
    #[prost(int32, optional, tag = "1")]
    pub stream_id: Option<i32>,
    /// The last stanza that its writer has received.
    #[prost(int32, optional, tag = "2")]
    pub last_stream_id_received: Option<i32>,
    /// Bit 0: the device is idle.
    #[prost(int64, optional, tag = "3")]
    pub status: Option<i64>,
}

/// The error of a request.
#[derive(Clone, PartialEq, Message)]
pub struct McsErrorInfo {
    /// A number like those of HTTP.
    #[prost(int32, required, tag = "1")]
    pub code: i32,
    /// The description.
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

/// Statistics of heartbeats so far, and the interval that the device wants.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeatStat {
    /// The address of the device.
    #[prost(string, required, tag = "1")]
    pub ip: String,
    /// True if the last connection ended because of an unanswered heartbeat.
    #[prost(bool, required, tag = "2")]
    pub timeout: bool,
    /// Interval, in milliseconds.
    #[prost(int32, required, tag = "3")]
    pub interval_ms: i32,
}

/// The interval of heartbeats that the server wants.
#[derive(Clone, PartialEq, Message)]
pub struct McsHeartbeatConfig {
    /// True if the device should report statistics of heartbeats.
    #[prost(bool, optional, tag = "1")]
    pub upload_stat: Option<bool>,
    /// Interval, in milliseconds.
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
    /// Settings that the client requests.
    #[prost(message, repeated, tag = "8")]
    pub settings: Vec<McsSetting>,
    /// Messages received through an earlier connection.
    #[prost(string, repeated, tag = "10")]
    pub received_persistent_ids: Vec<String>,
    /// True if the server may choose the interval of heartbeats.
    #[prost(bool, optional, tag = "12")]
    pub adaptive_heartbeat: Option<bool>,
    /// Statistics and wanted interval of heartbeats.
    #[prost(message, optional, tag = "13")]
    pub heartbeat_stat: Option<McsHeartbeatStat>,
    /// Always true.
    #[prost(bool, optional, tag = "14")]
    pub use_rmq2: Option<bool>,
    /// 2: by android id.
    #[prost(int32, optional, tag = "16")]
    pub auth_service: Option<i32>,
    /// 1: a wireless network.
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
    /// Set if the login is refused.
    #[prost(message, optional, tag = "3")]
    pub error: Option<McsErrorInfo>,
    /// Settings that the server requests.
    #[prost(message, repeated, tag = "4")]
    pub settings: Vec<McsSetting>,
    /// Number of this stanza.
    #[prost(int32, optional, tag = "5")]
    pub stream_id: Option<i32>,
    /// The last stanza that the server has received, 1.
    #[prost(int32, optional, tag = "6")]
    pub last_stream_id_received: Option<i32>,
    /// The interval of heartbeats that the server wants.
    #[prost(message, optional, tag = "7")]
    pub heartbeat_config: Option<McsHeartbeatConfig>,
    /// The server's time, in milliseconds since 1970.
    #[prost(int64, optional, tag = "8")]
    pub server_timestamp: Option<i64>,
}

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct McsClose {}

/// The error that ends a stream.
#[derive(Clone, PartialEq, Message)]
pub struct McsStreamError {
    /// An error condition like those of XMPP.
    #[prost(string, required, tag = "1")]
    pub kind: String,
    /// The description.
    #[prost(string, optional, tag = "2")]
    pub text: Option<String>,
}

/// An extension carried by an [`McsIq`].
#[derive(Clone, PartialEq, Message)]
pub struct McsExtension {
    /// Its number.
    #[prost(int32, required, tag = "1")]
    pub id: i32,
    /// Its message.
    #[prost(bytes = "vec", required, tag = "2")]
    pub data: Vec<u8>,
}

/// A query or its response.
#[derive(Clone, PartialEq, Message)]
pub struct McsIq {
    /// 0 get, 1 set, 2 result, 3 error.
    #[prost(int32, required, tag = "2")]
    pub kind: i32,
    /// Its id, usually empty.
    #[prost(string, required, tag = "3")]
    pub id: String,
    /// Its extension.
    #[prost(message, optional, tag = "7")]
    pub extension: Option<McsExtension>,
    /// Set if it must be stored until it is acknowledged.
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
    /// The writer's id of the message.
    #[prost(string, optional, tag = "2")]
    pub id: Option<String>,
    /// The sender: a number or a key.
    #[prost(string, required, tag = "3")]
    pub from: String,
    /// The recipient.
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
    /// The id for the acknowledgement.
    #[prost(string, optional, tag = "9")]
    pub persistent_id: Option<String>,
    /// Number of this stanza.
    #[prost(int32, optional, tag = "10")]
    pub stream_id: Option<i32>,
    /// The last stanza that its writer has received.
    #[prost(int32, optional, tag = "11")]
    pub last_stream_id_received: Option<i32>,
    /// TTL, in seconds.
    #[prost(int32, optional, tag = "17")]
    pub ttl: Option<i32>,
    /// Time of sending: by a server in milliseconds since 1970.
    #[prost(int64, optional, tag = "18")]
    pub sent: Option<i64>,
    /// Time spent waiting on the device, in seconds.
    #[prost(int32, optional, tag = "19")]
    pub queued: Option<i32>,
    /// Bytes that only the program can interpret.
    #[prost(bytes = "vec", optional, tag = "21")]
    pub raw_data: Option<Vec<u8>>,
    /// True if it must be acknowledged at once.
    #[prost(bool, optional, tag = "24")]
    pub immediate_ack: Option<bool>,
}

/// Acknowledges stanzas up to the number in the stanza around it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct McsStreamAck {}

/// Acknowledges messages.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct McsSelectiveAck {
    /// Their persistent ids.
    #[prost(string, repeated, tag = "1")]
    pub ids: Vec<String>,
}
