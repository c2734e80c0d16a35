//! An MCS client. It reports a message as received only after its caller has acknowledged it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use stentor_wire::WireError;
use stentor_wire::mcs::{
    McsAppData, McsData, McsHeartbeat, McsHeartbeatStat, McsIq, McsLoginRequest, McsSetting, McsStanza,
    VERSION,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::mcs::{McsReadError, McsReader};

/// Largest stanza accepted from a server, in bytes.
const STANZA_MAX_BYTES: usize = 1 << 20;
/// The authentication service of devices: by android id.
const BY_ANDROID_ID: i32 = 2;

/// The credentials and state with which a device logs in.
#[derive(Debug, Clone)]
pub struct McsClientLogin {
    /// Its android id, from the check-in.
    pub android_id: u64,
    /// Its security token in decimal, from the check-in.
    pub security_token: SecretString,
    /// Persistent ids of messages that it received over an earlier connection, whose acknowledgement may be lost.
    pub received: Vec<String>,
    /// The heartbeat interval to request; `None` for the server's own.
    pub heartbeat: Option<Duration>,
}

/// A message to an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McsUpstream {
    /// The device's id of the message, used for its acknowledgement and to detect repeats.
    pub id: String,
    /// The sender that the device has registered for: an app's id in decimal.
    pub to: String,
    /// The program.
    pub category: String,
    /// The key-value pairs of the message.
    pub data: Vec<(String, String)>,
    /// Time to live.
    pub ttl: Duration,
}

/// An event for a device.
#[derive(Debug, Clone, PartialEq)]
pub enum McsClientEvent {
    /// A message, to be acknowledged by its persistent id.
    Message(Box<McsData>),
    /// The number of messages that were deleted because too many waited.
    Deleted(usize),
    /// A message of the device was rejected.
    Refused {
        /// The device's id of the message.
        id: String,
        /// The error word.
        error: String,
    },
    /// Messages of the device that are on the server's disk.
    Kept(Vec<String>),
    /// A heartbeat reply of the server.
    Alive,
}

/// The reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub enum McsClientError {
    /// The server does not know the device.
    #[error("the server refuses the login: {code} {message}")]
    Refused {
        /// A status code as in HTTP.
        code: i32,
        /// A description.
        message: String,
    },
    /// The server has ended the connection, with the error word if it gave one.
    #[error("the server has ended the connection: {0}")]
    Closed(String),
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server's bytes are malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl From<McsReadError> for McsClientError {
    fn from(error: McsReadError) -> Self {
        match error {
            McsReadError::Ended => Self::Closed("without a word".to_owned()),
            McsReadError::Io(error) => Self::Io(error),
            McsReadError::Wire(error) => Self::Wire(error),
        }
    }
}

/// A device's connection. Its methods may be cancelled at any point: the next call writes the remaining bytes.
#[derive(Debug)]
pub struct McsClient<S> {
    stream: S,
    reader: McsReader,
    out: Vec<u8>,
    received: u32,
    unacknowledged: VecDeque<(u32, String)>,
}

impl McsClient<TcpStream> {
    /// Connects without TLS, and logs in.
    pub async fn connect(at: impl ToSocketAddrs, login: McsClientLogin) -> Result<Self, McsClientError> {
        let stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        Self::log_in(stream, login).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> McsClient<S> {
    /// Logs in over a connection, with or without TLS.
    pub async fn log_in(stream: S, login: McsClientLogin) -> Result<Self, McsClientError> {
        let (reader, out) = (McsReader::new(STANZA_MAX_BYTES), vec![VERSION]);
        let mut client = Self { stream, reader, out, received: 0, unacknowledged: VecDeque::new() };
        client.put(McsStanza::LoginRequest(Box::new(request(login))));
        client.flush().await?;
        match client.stanza().await? {
            McsStanza::LoginReply(reply) => match reply.error {
                None => Ok(client),
                Some(error) => {
                    let message = error.message.unwrap_or_default();
                    Err(McsClientError::Refused { code: error.code, message })
                }
            },
            other => {
                Err(ended(&other).unwrap_or_else(|| McsClientError::Closed("no reply to the login".into())))
            }
        }
    }

    /// Waits for the server's next event; answers heartbeats itself.
    pub async fn next(&mut self) -> Result<McsClientEvent, McsClientError> {
        loop {
            let written = self.flush().await;
            let stanza = match (self.stanza().await, written) {
                // Only then: a server that ended the connection may have given the reason before.
                (Err(_), Err(broken)) => return Err(broken),
                (stanza, _) => stanza?,
            };
            match stanza {
                McsStanza::HeartbeatPing(_) => self.put(McsStanza::HeartbeatAck(McsHeartbeat::default())),
                McsStanza::HeartbeatAck(_) => return Ok(McsClientEvent::Alive),
                McsStanza::Iq(iq) => {
                    let acknowledged = iq.acknowledged()?;
                    if !acknowledged.is_empty() {
                        return Ok(McsClientEvent::Kept(acknowledged));
                    }
                }
                McsStanza::Data(data) => return Ok(self.take(data)),
                other => {
                    if let Some(end) = ended(&other) {
                        return Err(end);
                    }
                }
            }
        }
    }

    /// Acknowledges messages by their persistent ids.
    pub async fn acknowledge(&mut self, ids: &[String]) -> Result<(), McsClientError> {
        self.unacknowledged.retain(|(_, id)| !ids.contains(id));
        self.put(McsStanza::Iq(McsIq::acknowledging(ids.to_vec())));
        self.flush().await
    }

    /// Acknowledges all messages so far by the number of the last one, as Chromium does.
    pub async fn acknowledge_all(&mut self) -> Result<(), McsClientError> {
        self.unacknowledged.clear();
        self.put(McsStanza::Iq(McsIq::stream_ack()));
        self.flush().await
    }

    /// Marks all messages so far as processed; the next stanza of any kind acknowledges them.
    pub fn confirm_with_next(&mut self) {
        self.unacknowledged.clear();
    }

    /// Sends a message to an app; [`McsClientEvent::Kept`] confirms that it is on disk.
    pub async fn send(&mut self, message: McsUpstream) -> Result<(), McsClientError> {
        let entry = |(key, value)| McsAppData { key, value };
        let data = McsData {
            persistent_id: Some(message.id.clone()),
            id: Some(message.id),
            to: Some(message.to),
            category: message.category,
            app_data: message.data.into_iter().map(entry).collect(),
            ttl: i32::try_from(message.ttl.as_secs()).ok(),
            ..McsData::default()
        };
        self.put(McsStanza::Data(Box::new(data)));
        self.flush().await
    }

    /// Sends a heartbeat; the reply yields [`McsClientEvent::Alive`].
    pub async fn ping(&mut self) -> Result<(), McsClientError> {
        self.put(McsStanza::HeartbeatPing(McsHeartbeat::default()));
        self.flush().await
    }

    fn take(&mut self, data: Box<McsData>) -> McsClientEvent {
        let value =
            |key: &str| data.app_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone());
        match value("message_type").as_deref() {
            Some("deleted_messages") => {
                let count = value("total_deleted").and_then(|count| count.parse().ok());
                McsClientEvent::Deleted(count.unwrap_or_default())
            }
            Some("send_error") => McsClientEvent::Refused {
                id: value("google.message_id").unwrap_or_default(),
                error: value("error").unwrap_or_default(),
            },
            _ => {
                let id = data.persistent_id.clone().unwrap_or_default();
                self.unacknowledged.push_back((self.received, id));
                McsClientEvent::Message(data)
            }
        }
    }

    async fn stanza(&mut self) -> Result<McsStanza, McsClientError> {
        let stanza = self.reader.next(&mut self.stream).await?;
        self.received = self.received.saturating_add(1);
        Ok(stanza)
    }

    fn put(&mut self, mut stanza: McsStanza) {
        // All stanzas before the first message that the caller has not acknowledged.
        let acknowledged = self.unacknowledged.front().map_or(self.received, |(stanza, _)| stanza - 1);
        if acknowledged > 0 {
            stanza.say_received(acknowledged);
        }
        stanza.write(&mut self.out);
    }

    async fn flush(&mut self) -> Result<(), McsClientError> {
        while !self.out.is_empty() {
            let count = self.stream.write(&self.out).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
            // Drained as it is written: a cancelled call loses and repeats nothing.
            self.out.drain(..count);
        }
        Ok(self.stream.flush().await?)
    }
}

fn request(login: McsClientLogin) -> McsLoginRequest {
    let stat = |interval: Duration| McsHeartbeatStat {
        interval_ms: i32::try_from(interval.as_millis()).unwrap_or(i32::MAX),
        ..McsHeartbeatStat::default()
    };
    McsLoginRequest {
        id: concat!("stentor-", env!("CARGO_PKG_VERSION")).to_owned(),
        domain: "mcs.android.com".to_owned(),
        user: login.android_id.to_string(),
        resource: login.android_id.to_string(),
        auth_token: login.security_token.expose_secret().to_owned(),
        device_id: Some(format!("android-{:x}", login.android_id)),
        settings: vec![McsSetting { name: "new_vc".to_owned(), value: "1".to_owned() }],
        received_persistent_ids: login.received,
        adaptive_heartbeat: Some(false),
        heartbeat_stat: login.heartbeat.map(stat),
        use_rmq2: Some(true),
        auth_service: Some(BY_ANDROID_ID),
        network_type: Some(1),
    }
}

/// Returns the error of a stanza that ends the connection.
fn ended(stanza: &McsStanza) -> Option<McsClientError> {
    match stanza {
        McsStanza::Close => Some(McsClientError::Closed("close".to_owned())),
        McsStanza::StreamError(error) => Some(McsClientError::Closed(error.kind.clone())),
        _ => None,
    }
}
