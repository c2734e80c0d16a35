//! One device: its login, its received messages and their confirmations.

use super::arrivals::Arrivals;
use super::orders::DeviceLogin;
use super::transport::DeviceTransport;
use std::io;
use stentor_stage::mqtt_packets::{self as packets, ReceivedPacket};

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// There is no connection.
    Closed,
    /// The connection is being opened.
    Opening,
    /// The device has sent its login and its subscription.
    Asked,
    /// It is subscribed.
    Ready,
}

/// A device and its connection.
pub(super) struct DeviceConnection {
    login: DeviceLogin,
    transport: Option<DeviceTransport>,
    state: ConnectionState,
    /// An incomplete packet.
    rest: Vec<u8>,
}

impl DeviceConnection {
    pub(super) const fn new(login: DeviceLogin) -> Self {
        Self { login, transport: None, state: ConnectionState::Closed, rest: Vec::new() }
    }

    pub(super) const fn state(&self) -> ConnectionState {
        self.state
    }

    pub(super) fn open(&mut self, transport: DeviceTransport) {
        (self.transport, self.state) = (Some(transport), ConnectionState::Opening);
    }

    pub(super) fn close(&mut self) {
        (self.transport, self.state, self.rest) = (None, ConnectionState::Closed, Vec::new());
    }

    /// Handles an event of the connection. Fails if the connection can no longer be used.
    pub(super) fn go_on(
        &mut self,
        space: &mut Vec<u8>,
        place: usize,
        noted: &mut Arrivals,
    ) -> io::Result<()> {
        let Some(transport) = &mut self.transport else { return Ok(()) };
        if self.state == ConnectionState::Opening {
            if let Some(error) = transport.failure() {
                return Err(error);
            }
            let DeviceLogin { client_id, user, password, filter } = &self.login;
            // Both in one write: a client need not wait for the answer to its login (MQTT 3.1.1, section 3.1.4).
            let packets_sent =
                [packets::connect(client_id, user, password), packets::subscribe(filter)].concat();
            transport.send(&packets_sent)?;
            self.state = ConnectionState::Asked;
        }
        space.clear();
        space.append(&mut self.rest);
        let is_open = transport.receive(space)?;
        self.take(space, place, noted)?;
        if is_open { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Handles received packets, and confirms all their messages with one write.
    fn take(&mut self, came: &[u8], place: usize, noted: &mut Arrivals) -> io::Result<()> {
        let (mut at, mut confirmations) = (0, Vec::new());
        while let Some((heard, next)) = packets::read(came, at).map_err(|_| io::ErrorKind::InvalidData)? {
            at = next;
            match heard {
                ReceivedPacket::Message { packet_id, payload } => {
                    noted.note(&came[payload], place, super::poll_loop::now_us());
                    confirmations.extend(packet_id.map(packets::confirm).into_iter().flatten());
                }
                ReceivedPacket::LoginAnswer(0) | ReceivedPacket::Confirmation(_) | ReceivedPacket::Other => {}
                ReceivedPacket::SubscriptionAnswer { is_granted: true } => {
                    self.state = ConnectionState::Ready
                }
                ReceivedPacket::LoginAnswer(_) | ReceivedPacket::SubscriptionAnswer { is_granted: false } => {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
            }
        }
        self.rest.extend_from_slice(&came[at..]);
        match &mut self.transport {
            Some(transport) if !confirmations.is_empty() => transport.send(&confirmations),
            _ => Ok(()),
        }
    }
}
