//! One device: it connects, gets its messages, confirms each after a while, and comes back when its connection is lost.

use super::places::ConnectionPlaces;
use super::records::DeviceRecords;
use super::registration::RegisteredDevice;
use crate::mqtt_packets::{self as packets, ReceivedPacket};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The timeout of a connection and of the response to its login.
const LOGIN_LIMIT: Duration = Duration::from_secs(30);
/// First and longest wait before a device tries again; each wait is drawn between half of it and all of it.
const BACKOFF: Duration = Duration::from_millis(200);
const BACKOFF_MAX: Duration = Duration::from_secs(4);
/// The absence of a device that left its place to another.
const ABSENCE: Duration = Duration::from_secs(3);
/// The interval at which a device that has its messages checks if another waits for its place.
const PLACE_LOOK: Duration = Duration::from_secs(1);
/// Devices that share a source address: one address has 28,000 ports, and those of closed connections stay taken for a minute.
const DEVICES_PER_ADDRESS: usize = 4_000;
/// The size of a read. Its buffer lies on the stack, so that an idle device holds none.
const READ_BYTES: usize = 2_048;
/// All messages of the device.
const MAILBOX: &str = "messages/#";

/// The state shared by all devices.
pub(super) struct MqttDeviceParts {
    pub(super) server: SocketAddr,
    /// A message is confirmed at some moment within this time.
    pub(super) confirm_within: Duration,
    pub(super) places: ConnectionPlaces,
    pub(super) records: DeviceRecords,
    pub(super) seed: u64,
}

/// One device.
pub(super) struct MqttDevice {
    shared: Arc<MqttDeviceParts>,
    number: usize,
    registered: RegisteredDevice,
    chance: StdRng,
    has_got_any: bool,
}

/// A connection that let the device in.
struct MqttConnection {
    stream: TcpStream,
    read: Vec<u8>,
    /// The ids of the messages received through this connection.
    seen: HashSet<String>,
    /// Messages to be confirmed, with the instant of each confirmation.
    due: VecDeque<(Instant, u16)>,
}

/// A packet of the server, as far as a device distinguishes them.
enum ServerPacket {
    Admitted,
    Message { packet_id: Option<u16>, payload: Vec<u8> },
    Other,
}

/// The message id in a message's content.
#[derive(Deserialize)]
struct MessageContent {
    id: String,
}

impl MqttDevice {
    pub(super) fn new(shared: Arc<MqttDeviceParts>, number: usize, registered: RegisteredDevice) -> Self {
        let chance = StdRng::seed_from_u64(shared.seed.wrapping_add(number as u64));
        Self { shared, number, registered, chance, has_got_any: false }
    }

    /// Connects, and reconnects after every loss of the connection, until its task is dropped.
    pub(super) async fn run(mut self) {
        let mut backoff = BACKOFF;
        loop {
            let Some(place) = self.shared.places.take().await else { return };
            match self.connect().await {
                Some(connection) => {
                    backoff = BACKOFF;
                    self.serve(connection).await;
                    self.shared.records.note_lost();
                }
                None => backoff = (backoff * 2).min(BACKOFF_MAX),
            }
            drop(place);
            let wait = if self.shared.places.are_scarce { ABSENCE } else { backoff };
            let share = self.chance.random_range(0.5..1.0);
            sleep(wait.mul_f64(share)).await;
        }
    }

    /// Connects and logs in; `None` when that came to nothing, as it does while the server is down.
    async fn connect(&mut self) -> Option<MqttConnection> {
        let stream = timeout(LOGIN_LIMIT, self.log_in()).await.ok()?.ok()?;
        let mut connection =
            MqttConnection { stream, read: Vec::new(), seen: HashSet::new(), due: VecDeque::new() };
        let admitted = timeout(LOGIN_LIMIT, connection.admitted()).await.ok()?.ok()?;
        if let Err(fault) = admitted {
            self.shared.records.note_fault(self.number, fault);
            return None;
        }
        self.shared.records.note_connected(self.number);
        Some(connection)
    }

    async fn log_in(&self) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let host = u8::try_from(self.number / DEVICES_PER_ADDRESS % 250).unwrap_or(0) + 1;
        socket.bind((IpAddr::V4(Ipv4Addr::new(127, 0, 1, host)), 0).into())?;
        let mut stream = socket.connect(self.shared.server).await?;
        let RegisteredDevice { id, token, secret } = &self.registered;
        let login = [packets::connect(id, token, secret), packets::subscribe(MAILBOX)].concat();
        stream.write_all(&login).await?;
        Ok(stream)
    }

    /// Receives messages and confirms them until the connection is lost, or left to another device.
    async fn serve(&mut self, mut connection: MqttConnection) {
        loop {
            match connection.packet() {
                Ok(Some(packet)) => self.take(packet, &mut connection),
                Ok(None) => {
                    if self.wait(&mut connection).await.is_err() {
                        return;
                    }
                }
                Err(fault) => return self.shared.records.note_fault(self.number, fault),
            }
        }
    }

    fn take(&mut self, packet: ServerPacket, connection: &mut MqttConnection) {
        let ServerPacket::Message { packet_id, payload } = packet else { return };
        let Ok(MessageContent { id }) = serde_json::from_slice(&payload) else {
            return self.shared.records.note_fault(self.number, "a message says not which one it is");
        };
        self.shared.records.note_message(self.number, &id, connection.seen.contains(&id));
        connection.seen.insert(id);
        self.has_got_any = true;
        if let Some(packet_id) = packet_id {
            let wait = self.shared.confirm_within.mul_f64(self.chance.random_range(0.0..1.0));
            connection.due.push_back((Instant::now() + wait, packet_id));
        }
    }

    /// Waits for bytes, or for the moment to confirm something.
    async fn wait(&self, connection: &mut MqttConnection) -> io::Result<()> {
        if let Some((at, packet_id)) = connection.due.front().copied() {
            return tokio::select! {
                filled = connection.fill() => filled,
                () = sleep_until(at) => {
                    connection.due.pop_front();
                    self.shared.records.note_confirmed(self.number);
                    connection.stream.write_all(&packets::confirm(packet_id)).await
                }
            };
        }
        // A device without any message stays until it has one. A device that has one, also through an earlier connection, may leave.
        if !self.shared.places.are_scarce || !self.has_got_any {
            return connection.fill().await;
        }
        tokio::select! {
            filled = connection.fill() => filled,
            () = sleep(PLACE_LOOK) => {
                if !self.shared.places.is_to_leave() {
                    return Ok(());
                }
                connection.stream.write_all(&packets::disconnect()).await?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        }
    }
}

impl MqttConnection {
    /// Waits for the answer to the login.
    async fn admitted(&mut self) -> io::Result<Result<(), &'static str>> {
        loop {
            match self.packet() {
                Ok(Some(ServerPacket::Admitted)) => return Ok(Ok(())),
                Ok(Some(_)) => return Ok(Err("something came before the answer to the login")),
                Ok(None) => self.fill().await?,
                Err(fault) => return Ok(Err(fault)),
            }
        }
    }

    fn packet(&mut self) -> Result<Option<ServerPacket>, &'static str> {
        let heard = packets::read(&self.read, 0).map_err(|_| "the received bytes are no packet of MQTT")?;
        let Some((heard, end)) = heard else { return Ok(None) };
        let packet = match heard {
            ReceivedPacket::LoginAnswer(0) => ServerPacket::Admitted,
            ReceivedPacket::LoginAnswer(_) => return Err("the login was refused"),
            ReceivedPacket::SubscriptionAnswer { is_granted: false } => {
                return Err("the subscription was refused");
            }
            ReceivedPacket::Message { packet_id, payload } => {
                ServerPacket::Message { packet_id, payload: self.read[payload].to_vec() }
            }
            ReceivedPacket::SubscriptionAnswer { .. }
            | ReceivedPacket::Confirmation(_)
            | ReceivedPacket::Other => ServerPacket::Other,
        };
        self.read.drain(..end);
        if self.read.is_empty() {
            self.read = Vec::new();
        }
        Ok(Some(packet))
    }

    /// Waits for bytes; it may be cut off.
    async fn fill(&mut self) -> io::Result<()> {
        loop {
            self.stream.readable().await?;
            let mut space = [0; READ_BYTES];
            match self.stream.try_read(&mut space) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.read.extend_from_slice(&space[..count]);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
