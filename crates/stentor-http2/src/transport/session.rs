//! A TLS session over the caller's buffers (rustls' unbuffered interface). Decrypted bytes are appended to the buffer in which frames are
//! parsed; requests are encrypted directly from the buffer in which they were written.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};
use rustls_pki_types::ServerName;

use super::buffer::Buffer;

type TlsTraffic<'a> = WriteTraffic<'a, ClientConnectionData>;

/// Upper bound of the bytes that one TLS record adds to its content. [`KEY_UPDATE_MAX_BYTES`] bounds a key update before the first.
const RECORD_OVERHEAD_BYTES: usize = 128;
const RECORD_MAX_BYTES: usize = 16_384;
const KEY_UPDATE_MAX_BYTES: usize = 1_024;

/// The progress of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The handshake needs more bytes.
    Blocked,
    /// The session carries requests.
    Open,
    /// The peer has closed the session.
    Ended,
}

/// The client's side of one TLS session.
pub(crate) struct Session {
    tls: UnbufferedClientConnection,
    is_open: bool,
    is_ended: bool,
}

impl Session {
    pub(crate) fn new(config: &Arc<ClientConfig>, name: &ServerName<'static>) -> Result<Self, rustls::Error> {
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name.clone())?;
        Ok(Self { tls, is_open: false, is_ended: false })
    }

    /// Returns the negotiated protocol.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// Appends the decrypted content of `incoming` to `plain`, and the session's own messages to `outgoing`.
    pub(crate) fn decrypt(
        &mut self,
        incoming: &mut Buffer,
        plain: &mut Vec<u8>,
        outgoing: &mut Buffer,
    ) -> io::Result<Progress> {
        loop {
            let UnbufferedStatus { mut discard, state } = self.tls.process_tls_records(incoming.filled_mut());
            let mut again = true;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record.map_err(broken)?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, outgoing)?,
                // Already queued in `outgoing` before anything later: as good as transmitted.
                Ok(ConnectionState::TransmitTlsData(sent)) => sent.done(),
                Ok(ConnectionState::PeerClosed) => self.is_ended = true,
                // Nothing more to read: all whole records are decrypted.
                Ok(ConnectionState::WriteTraffic(_)) => (self.is_open, again) = (true, false),
                Ok(_) => again = false,
                Err(cause) => {
                    self.write_alert(incoming, outgoing);
                    return Err(broken(cause));
                }
            }
            incoming.consume(discard);
            if !again {
                return Ok(self.progress());
            }
        }
    }

    /// Appends `plain`, encrypted, to `outgoing`; `incoming` holds the bytes not decrypted yet.
    pub(crate) fn encrypt(
        &mut self,
        plain: &[u8],
        incoming: &mut Buffer,
        outgoing: &mut Buffer,
    ) -> io::Result<()> {
        if plain.is_empty() {
            return Ok(());
        }
        let records = plain.len().div_ceil(RECORD_MAX_BYTES);
        let needed = plain.len() + records * RECORD_OVERHEAD_BYTES + KEY_UPDATE_MAX_BYTES;
        self.write(incoming, outgoing, needed, |traffic, room| traffic.encrypt(plain, room))
    }

    /// Appends an encrypted `close_notify`, unless the session can no longer write.
    pub(crate) fn say_goodbye(&mut self, incoming: &mut Buffer, outgoing: &mut Buffer) {
        let close = |traffic: &mut TlsTraffic<'_>, room: &mut [u8]| traffic.queue_close_notify(room);
        let _ = self.write(incoming, outgoing, KEY_UPDATE_MAX_BYTES, close);
    }

    /// Advances the session to its writing state, which is reached at once, because all whole records are decrypted.
    fn write(
        &mut self,
        incoming: &mut Buffer,
        outgoing: &mut Buffer,
        needed: usize,
        encrypt: impl FnOnce(&mut TlsTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<()> {
        loop {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(incoming.filled_mut());
            match state.map_err(broken)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let count = encrypt(&mut traffic, outgoing.room(needed)).map_err(io::Error::other)?;
                    outgoing.fill(count);
                    incoming.consume(discard);
                    return Ok(());
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, outgoing)?,
                ConnectionState::TransmitTlsData(sent) => sent.done(),
                _ => return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the TLS session is over")),
            }
            incoming.consume(discard);
        }
    }

    /// Writes the alert that rustls has prepared after an error.
    ///
    /// `incoming` must be unchanged since the error, because the session still points into it.
    fn write_alert(&mut self, incoming: &mut Buffer, outgoing: &mut Buffer) {
        let state = self.tls.process_tls_records(incoming.filled_mut()).state;
        if let Ok(ConnectionState::EncodeTlsData(mut data)) = state {
            let _ = encode(&mut data, outgoing);
        }
    }

    const fn progress(&self) -> Progress {
        match (self.is_open, self.is_ended) {
            (_, true) => Progress::Ended,
            (true, false) => Progress::Open,
            (false, false) => Progress::Blocked,
        }
    }
}

fn encode(data: &mut EncodeTlsData<'_, ClientConnectionData>, outgoing: &mut Buffer) -> io::Result<()> {
    // Called without space, because its error is the only way to learn the required size.
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => required_size,
        _ => return Ok(()),
    };
    let count = data.encode(outgoing.room(needed)).map_err(io::Error::other)?;
    outgoing.fill(count);
    Ok(())
}

fn broken(cause: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}
