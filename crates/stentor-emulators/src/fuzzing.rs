//! Whole emulators without ports, for fuzzing: requests and connections are passed in directly.

use crate::ccs::CcsSession;
use crate::error::EmulatorError;
use crate::frames::Connection;
use crate::listener::ConnectionHandler;
use crate::service::{EmulatedService, Served, ServiceCall, ServiceReply, WireAnswer};
use crate::sink::{self, SinkHost};
use crate::{ApnsConfig, CcsConfig, FcmConfig, GcmConfig, HmsConfig, SinkConfig, WebPushConfig, WnsConfig};
use crate::{apns, ccs, fcm, gcm, hms, web_push, wns};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use std::sync::Arc;
use tokio::io::DuplexStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Answers = dyn Fn(Request<&[u8]>) -> Option<Response<Bytes>> + Send + Sync;
type Serves = dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync;

/// An in-process emulator that answers the bytes passed to it.
pub struct InProcessEmulator {
    answer: Box<Answers>,
    serve: Box<Serves>,
}

impl InProcessEmulator {
    /// Builds FCM. Fails as the emulator's start does.
    pub fn fcm(config: FcmConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(fcm::build(config)?.1))
    }

    /// Builds APNs. Fails as the emulator's start does.
    pub fn apns(config: ApnsConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(apns::build(config)?.1))
    }

    /// Builds the port of APNs that manages channels. Fails as the emulator's start does.
    pub fn apns_management(config: ApnsConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(apns::channel_management(apns::build(config)?.1)))
    }

    /// Builds GCM. Fails as the emulator's start does.
    pub fn gcm(config: GcmConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(gcm::build(config)?.1))
    }

    /// Builds Web Push. Fails as the emulator's start does.
    pub fn web_push(config: WebPushConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(web_push::build(config)?.1))
    }

    /// Builds WNS. Fails as the emulator's start does.
    pub fn wns(config: WnsConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(wns::build(config)?.1))
    }

    /// Builds HMS. Fails as the emulator's start does.
    pub fn hms(config: HmsConfig) -> Result<Self, EmulatorError> {
        Ok(Self::new(hms::build(config)?.1))
    }

    fn new<S: EmulatedService>(service: Arc<S>) -> Self {
        let connections = Arc::new(Served(Arc::clone(&service)));
        let serve = move |io| Arc::clone(&connections).http2(io, CancellationToken::new());
        Self {
            answer: Box::new(move |request| answer(&*service, request)),
            serve: Box::new(move |io| Box::pin(serve(io))),
        }
    }

    /// Answers one request on a connection of its own, at once; `None` is a reset.
    pub fn answer(&self, request: Request<&[u8]>) -> Option<Response<Bytes>> {
        (self.answer)(request)
    }

    /// Serves an HTTP/2 connection to its end.
    pub async fn serve(&self, io: DuplexStream) {
        (self.serve)(io).await;
    }
}

/// A connection to a sink, without IO.
pub struct SinkWire {
    connection: Connection<SinkHost>,
    inbox: Vec<u8>,
}

impl SinkWire {
    /// Starts a connection. Fails as the sink's start does.
    pub fn new(config: &SinkConfig) -> Result<Self, EmulatorError> {
        Ok(Self { connection: sink::connection(&sink::context(config)?, None), inbox: Vec::new() })
    }

    /// Feeds bytes and returns the output.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.inbox.extend_from_slice(bytes);
        let used = self.connection.receive(&self.inbox, Instant::now());
        self.inbox.drain(..used);
        // No time passes here: delayed responses are treated as due.
        if let Some(due) = self.connection.next_due() {
            self.connection.send_due(due);
        }
        let said = self.connection.out().to_vec();
        self.connection.sent();
        said
    }
}

/// A connection to CCS, without IO.
pub struct CcsWire {
    session: CcsSession,
}

impl CcsWire {
    /// Starts a connection. Fails as the emulator's start does.
    pub fn new(config: CcsConfig) -> Result<Self, EmulatorError> {
        Ok(Self { session: CcsSession::new(ccs::build(config)?.1, Instant::now()) })
    }

    /// Feeds bytes and returns the output; `None` once the connection is over.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.session.is_over() {
            return None;
        }
        self.session.receive(bytes, Instant::now());
        self.session.send_due(Instant::now());
        Some(self.session.take_out())
    }
}

/// Reads an XMPP stream in pieces of a size and returns its events as text. The error describes why the stream cannot be read.
pub fn stream_in_pieces(bytes: &[u8], piece_bytes: usize) -> Result<String, String> {
    ccs::stream_in_pieces(bytes, piece_bytes)
}

fn answer<S: EmulatedService>(service: &S, request: Request<&[u8]>) -> Option<Response<Bytes>> {
    let (head, body) = request.into_parts();
    let body_too_large = body.len() > S::MAX_BODY_BYTES;
    let body = if body_too_large { &[] } else { body };
    let judge = service.context().policy.judge();
    let call = ServiceCall { head: &head, body, body_too_large, number: 1, judge: &judge };
    let mut reply: ServiceReply = service.answer(&mut service.session(), call);
    reply.settle(service);
    match reply.answer {
        WireAnswer::Response(response, body) => Some(response.map(|()| body)),
        WireAnswer::Reset(_) => None,
    }
}
