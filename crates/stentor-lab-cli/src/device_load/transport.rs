//! The bytes of one connection, with or without TLS.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;

/// Size of one read; a message has some hundred bytes.
const READ_BYTES: usize = 8 * 1_024;

/// An open connection.
pub(super) struct DeviceTransport {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl DeviceTransport {
    /// Begins to connect.
    pub(super) fn open(
        source: IpAddr,
        server: SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
        match connect(&socket, &server) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let name = ServerName::from(server.ip());
        let tls = tls.map(|config| ClientConnection::new(config.clone(), name).map(Box::new));
        let tls = tls.transpose().map_err(io::Error::other)?;
        Ok(Self { stream: socket.into(), tls })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the error of a failed attempt to connect.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.stream.take_error().unwrap_or_else(Some)
    }

    /// Writes the bytes. They are few and the server reads them at once; a connection that cannot take them is of no use.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                flush(tls, &mut self.stream)
            }
        }
    }

    /// Appends all available bytes to `into`; returns false if the server has closed.
    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        match &mut self.tls {
            None => receive_clear(&mut self.stream, into),
            Some(tls) => receive_sealed(tls, &mut self.stream, into),
        }
    }
}

fn receive_clear(stream: &mut TcpStream, into: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let before = into.len();
        into.resize(before + READ_BYTES, 0);
        let read = stream.read(&mut into[before..]);
        into.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => return Ok(false),
            // Shorter than the buffer: further data causes a new event.
            Ok(count) if count < READ_BYTES => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn receive_sealed(
    tls: &mut ClientConnection,
    stream: &mut TcpStream,
    into: &mut Vec<u8>,
) -> io::Result<bool> {
    loop {
        let is_open = match tls.read_tls(stream) {
            Ok(count) => count > 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        };
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        flush(tls, stream)?;
        let before = into.len();
        into.resize(before + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut into[before..])?;
        if !is_open || state.peer_has_closed() {
            return Ok(false);
        }
    }
}

fn flush(tls: &mut ClientConnection, stream: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(stream)?;
    }
    Ok(())
}
