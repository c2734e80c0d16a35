//! A device that speaks MCS. It says that it has received only what its caller has acknowledged.

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

/// Largest stanza of a server, in bytes.
const STANZA_MAX_BYTES: usize = 1 << 20;
/// The way by which a device proves who it is: by its android id.
const BY_ANDROID_ID: i32 = 2;

/// What a device proves itself with, and what it has.
#[derive(Debug, Clone)]
pub struct McsClientLogin {
    /// Its android id, from the check-in.
    pub android_id: u64,
    /// Its security token in decimal, from the check-in.
    pub security_token: SecretString,
    /// Persistent ids of messages that it got through an earlier connection and whose acknowledgement may be lost.
    pub received: Vec<String>,
    /// How often the server is to ask whether it is there; `None` leaves that to the server.
    pub heartbeat: Option<Duration>,
}

/// A message to an app.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McsUpstream {
    /// The device's name for it, by which it is acknowledged and a repeat is recognised.
    pub id: String,
    /// The sender that the device has registered for: an app's id in decimal.
    pub to: String,
    /// The program.
    pub category: String,
    /// What it says.
    pub data: Vec<(String, String)>,
    /// How long it may wait.
    pub ttl: Duration,
}

/// What a device learns.
#[derive(Debug, Clone, PartialEq)]
pub enum McsClientEvent {
    /// A message, to be acknowledged by its persistent id.
    Message(Box<McsData>),
    /// So many messages were deleted because too many waited.
    Deleted(usize),
    /// A message of the device was not taken: its id, and why.
    Refused {
        /// The device's name for it.
        id: String,
        /// A word for the reason.
        error: String,
    },
    /// Messages of the device are on the server's disk.
    Kept(Vec<String>),
    /// The server is there.
    Alive,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum McsClientError {
    /// The server does not know the device.
    #[error("the server refuses the login: {code} {message}")]
    Refused {
        /// A number as HTTP has them.
        code: i32,
        /// In words.
        message: String,
    },
    /// The server has ended the connection, with a word for the reason if it gave one.
    #[error("the server has ended the connection: {0}")]
    Closed(String),
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What the server says is not in order.
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

/// A device's connection. Its methods may be cut off at any moment: what was not written yet is written by the next call.
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
    /// Logs in over a connection, which may be one of TLS.
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

    /// Waits for what the server says next; its heartbeats are answered.
    pub async fn next(&mut self) -> Result<McsClientEvent, McsClientError> {
        loop {
            self.flush().await?;
            let stanza = self.stanza().await?;
            match stanza {
                McsStanza::HeartbeatPing(_) => self.put(McsStanza::HeartbeatAck(McsHeartbeat::default())),
                McsStanza::HeartbeatAck(_) => return Ok(McsClientEvent::Alive),
                McsStanza::Iq(iq) => {
                    let kept = iq.acknowledged()?;
                    if !kept.is_empty() {
                        return Ok(McsClientEvent::Kept(kept));
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

    /// Acknowledges all messages so far, by the number of the last one, as Chromium does.
    pub async fn acknowledge_all(&mut self) -> Result<(), McsClientError> {
        self.unacknowledged.clear();
        self.put(McsStanza::Iq(McsIq::stream_ack()));
        self.flush().await
    }

    /// Counts all messages so far as taken over: what is said next acknowledges them, whatever it is.
    pub fn confirm_with_next(&mut self) {
        self.unacknowledged.clear();
    }

    /// Sends a message to an app; [`McsClientEvent::Kept`] says that it is on disk.
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

    /// Asks whether the server is there; [`McsClientEvent::Alive`] says so.
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
        // All before the first message that the caller has not taken over.
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
            // Taken out as it is written: a call that is dropped loses nothing and repeats nothing.
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

/// Returns the error that a stanza means which ends the connection.
fn ended(stanza: &McsStanza) -> Option<McsClientError> {
    match stanza {
        McsStanza::Close => Some(McsClientError::Closed("close".to_owned())),
        McsStanza::StreamError(error) => Some(McsClientError::Closed(error.kind.clone())),
        _ => None,
    }
}
