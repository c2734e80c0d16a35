//! The client half: one connection, one exchange after the other, with the time of each phase.

use super::SubjectError;
use super::clock::monotonic_ns;
use super::dialect::{Dialect, Transport};
use super::reference::Op;
use super::sample::ClientSample;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use stentor_wire::Limits;
use stentor_wire::frame::{self, Frames};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that are read from a socket at once.
const READ_BYTES: usize = 64 << 10;

/// A client with its connection.
pub struct Client {
    dialect: Dialect,
    op: Op,
    target: SocketAddr,
    connection: Connection,
}

enum Connection {
    Http(SendRequest<Full<Bytes>>),
    Socket(TcpStream, Frames),
}

/// The bytes of an answer, and when they came.
struct Arrival {
    body: Bytes,
    first_byte_ns: i64,
    end_ns: i64,
}

impl Client {
    /// Connects.
    pub async fn connect(dialect: Dialect, op: Op, target: SocketAddr) -> Result<Self, SubjectError> {
        let stream = TcpStream::connect(target).await;
        let stream = stream.map_err(SubjectError::io(format!("connecting to {target}")))?;
        stream.set_nodelay(true).map_err(SubjectError::io("setting up a connection"))?;
        let connection = match dialect.transport {
            Transport::Http => {
                let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(exchange)?;
                tokio::spawn(connection);
                Connection::Http(sender)
            }
            Transport::SocketThreads | Transport::SocketTasks => {
                Connection::Socket(stream, Frames::new(Limits::default()))
            }
        };
        Ok(Self { dialect, op, target, connection })
    }

    /// Sends a request and reads its answer.
    pub async fn exchange(
        &mut self,
        seq: u64,
        t_intended: i64,
        request: &stentor_wire::Content,
    ) -> Result<(ClientSample, stentor_wire::Content), SubjectError> {
        let t_start = monotonic_ns();
        let bytes = self.dialect.write_request(self.op, request)?;
        let t_ser_end = monotonic_ns();
        let Arrival { body, first_byte_ns, end_ns } = self.send(bytes).await?;
        let answer = self.dialect.read_answer(self.op, &body)?;
        let sample = ClientSample {
            seq,
            t_intended,
            t_start,
            t_ser_end,
            t_first_byte: first_byte_ns,
            t_end: end_ns,
            t_deser_end: monotonic_ns(),
            status: 0,
            flags: 0,
            bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
        };
        Ok((sample, answer))
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<Arrival, SubjectError> {
        match &mut self.connection {
            Connection::Http(sender) => {
                let request = http_request(self.dialect, self.op, self.target, bytes)?;
                sender.ready().await.map_err(exchange)?;
                let response = sender.send_request(request).await.map_err(exchange)?;
                let first_byte_ns = monotonic_ns();
                let status = response.status();
                let body = response.into_body().collect().await.map_err(exchange)?.to_bytes();
                // Where a format has faults, the body says more than the status.
                if !status.is_success() && body.is_empty() {
                    return Err(SubjectError::Exchange(format!("answered {status}")));
                }
                Ok(Arrival { body, first_byte_ns, end_ns: monotonic_ns() })
            }
            Connection::Socket(stream, frames) => {
                let sent = stream.write_all(&frame::write(&bytes)?).await;
                sent.map_err(SubjectError::io("sending a frame"))?;
                receive(stream, frames).await
            }
        }
    }
}

fn http_request(
    dialect: Dialect,
    op: Op,
    target: SocketAddr,
    bytes: Vec<u8>,
) -> Result<http::Request<Full<Bytes>>, SubjectError> {
    let mut request = http::Request::post(format!("/{}", op.name()))
        .header(HOST, target.to_string())
        .header(CONTENT_TYPE, dialect.content_type(op));
    if let Some(action) = dialect.soap_action(op) {
        request = request.header("SOAPAction", action);
    }
    request.body(Full::new(bytes.into())).map_err(exchange)
}

async fn receive(stream: &mut TcpStream, frames: &mut Frames) -> Result<Arrival, SubjectError> {
    let mut buffer = vec![0; READ_BYTES];
    let mut first_byte_ns = 0;
    loop {
        if let Some(payload) = frames.frame()? {
            if payload.is_empty() {
                return Err(SubjectError::Exchange("answered with an empty frame".into()));
            }
            return Ok(Arrival { body: payload.into(), first_byte_ns, end_ns: monotonic_ns() });
        }
        let read = stream.read(&mut buffer).await.map_err(SubjectError::io("receiving a frame"))?;
        if read == 0 {
            return Err(SubjectError::Exchange("the server hung up".into()));
        }
        if first_byte_ns == 0 {
            first_byte_ns = monotonic_ns();
        }
        frames.feed(&buffer[..read]);
    }
}

fn exchange(error: impl std::error::Error) -> SubjectError {
    SubjectError::Exchange(error.to_string())
}
