//! The client half: sequential exchanges, with the time of each phase.

use super::SubjectError;
use super::clock::monotonic_ns;
use super::dialect::{SubjectDialect, SubjectTransport};
use super::grpc;
use super::reference::Op;
use super::sample::ClientSample;
use super::setup::{Stream, SubjectSetup, connect};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, TE};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use stentor_wire::frame::{self, Frames};
use stentor_wire::{Content, DocumentLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

/// Bytes per read from a socket.
const READ_BYTES: usize = 64 << 10;

/// A client with its connection.
pub struct SubjectClient {
    dialect: SubjectDialect,
    op: Op,
    target: SocketAddr,
    setup: SubjectSetup,
    tls: Option<TlsConnector>,
    /// Absent before the first exchange of a fresh connection, and after a failure.
    connection: Option<ClientConnection>,
}

enum ClientConnection {
    Http(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
    Socket(Stream, Frames),
}

/// The bytes of a response with their arrival times.
struct Arrival {
    body: Bytes,
    first_byte_ns: i64,
    end_ns: i64,
}

impl SubjectClient {
    /// Connects to a server.
    pub async fn connect(dialect: SubjectDialect, op: Op, target: SocketAddr) -> Result<Self, SubjectError> {
        Self::connect_as(dialect, op, target, SubjectSetup::default()).await
    }

    /// Connects as specified by the factors of a cell. If each exchange has a connection of its own, the exchange opens it.
    pub async fn connect_as(
        dialect: SubjectDialect,
        op: Op,
        target: SocketAddr,
        setup: SubjectSetup,
    ) -> Result<Self, SubjectError> {
        let tls = setup.connector(dialect.transport.protocol())?;
        let mut client = Self { dialect, op, target, setup, tls, connection: None };
        if !client.setup.fresh {
            client.connection = Some(client.open().await?);
        }
        Ok(client)
    }

    async fn open(&self) -> Result<ClientConnection, SubjectError> {
        let stream = connect(self.target, self.tls.as_ref()).await?;
        Ok(match self.dialect.transport {
            SubjectTransport::Http => {
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(exchange)?;
                tokio::spawn(connection);
                ClientConnection::Http(sender)
            }
            SubjectTransport::Grpc => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(exchange)?;
                tokio::spawn(connection);
                ClientConnection::Http2(sender)
            }
            SubjectTransport::SocketThreads | SubjectTransport::SocketTasks => {
                ClientConnection::Socket(stream, Frames::new(DocumentLimits::default()))
            }
        })
    }

    /// Sends a request and reads its response. After a failure the next exchange opens a new connection.
    pub async fn exchange(
        &mut self,
        seq: u64,
        t_intended: i64,
        request: &Content,
    ) -> Result<(ClientSample, Content), SubjectError> {
        let t_start = monotonic_ns();
        let bytes = self.dialect.write_request(self.op, request)?;
        let t_ser_end = monotonic_ns();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        let Arrival { body, first_byte_ns, end_ns } = self.send(&mut connection, request, bytes).await?;
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
        if !self.setup.fresh {
            self.connection = Some(connection);
        }
        Ok((sample, answer))
    }

    async fn send(
        &self,
        connection: &mut ClientConnection,
        content: &Content,
        bytes: Vec<u8>,
    ) -> Result<Arrival, SubjectError> {
        match connection {
            ClientConnection::Http(sender) => {
                let request = self.http_request(content, bytes)?;
                sender.ready().await.map_err(exchange)?;
                let response = sender.send_request(request).await.map_err(exchange)?;
                let first_byte_ns = monotonic_ns();
                let status = response.status();
                let body = response.into_body().collect().await.map_err(exchange)?.to_bytes();
                // In formats with faults the body is more specific than the status.
                if !status.is_success() && body.is_empty() {
                    return Err(SubjectError::Exchange(format!("answered {status}")));
                }
                Ok(Arrival { body, first_byte_ns, end_ns: monotonic_ns() })
            }
            ClientConnection::Http2(sender) => {
                let request = self.grpc_request(&bytes)?;
                sender.ready().await.map_err(exchange)?;
                let response = sender.send_request(request).await.map_err(exchange)?;
                let first_byte_ns = monotonic_ns();
                let headers = response.headers().clone();
                let body = response.into_body().collect().await.map_err(exchange)?;
                let end_ns = monotonic_ns();
                let trailers = body.trailers().cloned().unwrap_or_default();
                grpc::check([&headers, &trailers])?;
                Ok(Arrival { body: grpc::unframe(body.to_bytes())?, first_byte_ns, end_ns })
            }
            ClientConnection::Socket(stream, frames) => {
                let sent = stream.write_all(&frame::write(&bytes)?).await;
                sent.map_err(SubjectError::io("sending a frame"))?;
                receive(stream, frames).await
            }
        }
    }

    fn http_request(
        &self,
        content: &Content,
        bytes: Vec<u8>,
    ) -> Result<http::Request<Full<Bytes>>, SubjectError> {
        let op = self.op.word();
        let (request, body) = match content {
            Content::Payload(text) if self.setup.url => {
                (http::Request::get(format!("/{op}/{text}")), Vec::new())
            }
            _ => (http::Request::post(format!("/{op}")), bytes),
        };
        let mut request = request
            .header(HOST, self.target.to_string())
            .header(CONTENT_TYPE, self.dialect.content_type(self.op));
        if let Some(action) = self.dialect.soap_action(self.op) {
            request = request.header("SOAPAction", action);
        }
        if self.setup.fresh {
            request = request.header(CONNECTION, "close");
        }
        request.body(Full::new(body.into())).map_err(exchange)
    }

    fn grpc_request(&self, bytes: &[u8]) -> Result<http::Request<Full<Bytes>>, SubjectError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}{}", self.target, grpc::path(self.op));
        let request = http::Request::post(address).header(CONTENT_TYPE, grpc::CONTENT_TYPE);
        request.header(TE, "trailers").body(Full::new(grpc::frame(bytes)?)).map_err(exchange)
    }
}

async fn receive(stream: &mut Stream, frames: &mut Frames) -> Result<Arrival, SubjectError> {
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
