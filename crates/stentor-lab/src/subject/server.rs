//! The server half: what comes in is read, worked on and answered, with the time of each phase.

mod sockets;

use super::SubjectError;
use super::clock::monotonic_ns;
use super::dialect::{Dialect, Format, NAMESPACE, Transport, action};
use super::reference::Op;
use super::sample::ServerSample;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use stentor_wire::wsdl::{Operation, Service};
use stentor_wire::{Content, Limits, WireError, wsdl};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 256;
/// Samples that are kept; more exchanges are answered and not kept.
const SAMPLES_MAX: usize = 4_000_000;

/// How a server treats its callers; all but the first exist so that checks can be tried on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manner {
    /// It answers as it should.
    #[default]
    Honest,
    /// It leaves out the last entry of an answer, or the last letter.
    Forgetful,
    /// It never answers.
    Mute,
}

/// What a server does, and what it keeps of it.
#[derive(Clone)]
pub(crate) struct Work {
    dialect: Dialect,
    op: Op,
    manner: Manner,
    samples: Arc<Mutex<Samples>>,
}

#[derive(Default)]
struct Samples {
    seen: u64,
    kept: Vec<ServerSample>,
}

/// A server that listens.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    work: Work,
    listening: Listening,
}

enum Listening {
    Tasks(tokio::task::JoinHandle<()>),
    Threads(sockets::Threads),
}

impl Server {
    /// Begins to listen.
    pub async fn start(
        dialect: Dialect,
        op: Op,
        bind: SocketAddr,
        manner: Manner,
    ) -> Result<Self, SubjectError> {
        let work = Work { dialect, op, manner, samples: Arc::default() };
        if dialect.transport == Transport::SocketThreads {
            let threads = sockets::Threads::start(bind, work.clone())?;
            return Ok(Self { address: threads.address, work, listening: Listening::Threads(threads) });
        }
        let listener =
            TcpListener::bind(bind).await.map_err(SubjectError::io(format!("listening on {bind}")))?;
        let address = listener.local_addr().map_err(SubjectError::io("listening"))?;
        let task = tokio::spawn(accept(listener, work.clone()));
        Ok(Self { address, work, listening: Listening::Tasks(task) })
    }

    /// Gives the samples so far and begins anew.
    #[must_use]
    pub fn take_samples(&self) -> Vec<ServerSample> {
        std::mem::take(&mut *self.work.lock()).kept
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match &self.listening {
            Listening::Tasks(task) => task.abort(),
            Listening::Threads(threads) => threads.stop(),
        }
    }
}

impl Work {
    /// Answers a request; `Err` holds the bytes that say why there is no answer. A mute server has nothing to say.
    pub(crate) fn answer(&self, request: &[u8]) -> Option<Result<Vec<u8>, Vec<u8>>> {
        let t_recv = monotonic_ns();
        let mut sample = ServerSample {
            t_recv,
            bytes: u32::try_from(request.len()).unwrap_or(u32::MAX),
            ..Default::default()
        };
        let answer = self.work_out(request, &mut sample);
        sample.t_ser_end = monotonic_ns();
        sample.status = u16::from(answer.is_err());
        self.keep(sample);
        let answer = answer.map_err(|error| self.dialect.write_failure(&error).unwrap_or_default());
        (self.manner != Manner::Mute).then_some(answer)
    }

    fn work_out(&self, request: &[u8], sample: &mut ServerSample) -> Result<Vec<u8>, WireError> {
        let request = self.dialect.read_request(self.op, request)?;
        sample.t_deser_end = monotonic_ns();
        let nonsense = || WireError::Unexpected(format!("{} cannot be asked for that", self.op.name()));
        let mut answer = self.op.answer(request).ok_or_else(nonsense)?;
        if self.manner == Manner::Forgetful {
            forget(&mut answer);
        }
        sample.t_work_end = monotonic_ns();
        self.dialect.write_answer(self.op, &answer)
    }

    /// Describes the service to who asks for it, where its dialect has descriptions; the address is the one that was asked.
    fn description(&self, host: Option<&HeaderValue>) -> Option<Vec<u8>> {
        let Format::Soap(_) = self.dialect.format else { return None };
        let host = host?.to_str().ok()?;
        let service = Service {
            name: "Lab".into(),
            namespace: NAMESPACE.into(),
            address: format!("http://{host}/{}", self.op.name()),
            operations: vec![Operation { name: self.op.name().into(), action: action(self.op) }],
        };
        wsdl::write(&service).ok()
    }

    fn keep(&self, mut sample: ServerSample) {
        let mut samples = self.lock();
        sample.seq = samples.seen;
        samples.seen += 1;
        if samples.kept.len() < SAMPLES_MAX {
            samples.kept.push(sample);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(content: &mut Content) {
    match content {
        Content::Payload(text) => drop(text.pop()),
        Content::Numbers(numbers) => drop(numbers.pop()),
        Content::Texts(texts) => drop(texts.pop()),
        Content::Objects(items) => drop(items.pop()),
        Content::Points(points) => drop(points.pop()),
    }
}

/// Accepts until it is aborted; connections end with it.
async fn accept(listener: TcpListener, work: Work) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        // A connection without it is slower and nothing else.
        let _ = stream.set_nodelay(true);
        if work.dialect.transport == Transport::Http {
            connections.spawn(speak_http(stream, work.clone()));
        } else {
            connections.spawn(sockets::speak_frames(stream, work.clone()));
        }
    }
}

async fn speak_http(stream: TcpStream, work: Work) {
    let service = service_fn(|request| {
        let work = work.clone();
        async move { respond(request, &work).await }
    });
    // A peer that breaks off is no matter of the server's.
    let _ =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, work: &Work) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        return Ok(match work.description(request.headers().get(HOST)) {
            Some(description) => response(StatusCode::OK, description, work),
            None => response(StatusCode::METHOD_NOT_ALLOWED, Vec::new(), work),
        });
    }
    let limit = Limits::default().document_max_bytes;
    let Ok(body) = Limited::new(request.into_body(), limit).collect().await else {
        return Ok(response(StatusCode::PAYLOAD_TOO_LARGE, Vec::new(), work));
    };
    let Some(answer) = work.answer(&body.to_bytes()) else { return std::future::pending().await };
    Ok(match answer {
        Ok(bytes) => response(StatusCode::OK, bytes, work),
        // XML-RPC tells its faults in answers that are in order; SOAP 1.1 asks for 500.
        Err(bytes) if work.dialect.name() == "xmlrpc" => response(StatusCode::OK, bytes, work),
        Err(bytes) if bytes.is_empty() => response(StatusCode::BAD_REQUEST, bytes, work),
        Err(bytes) => response(StatusCode::INTERNAL_SERVER_ERROR, bytes, work),
    })
}

fn response(status: StatusCode, bytes: Vec<u8>, work: &Work) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(bytes.into()));
    *response.status_mut() = status;
    if let Ok(kind) = work.dialect.content_type(work.op).parse() {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}
