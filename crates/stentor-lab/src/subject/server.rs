//! The server half: reads requests, works on them and responds, with the time of each phase.

mod http;
mod sockets;
mod system;

use super::SubjectError;
use super::clock::monotonic_ns;
use super::dialect::{NAMESPACE, SubjectDialect, SubjectTransport, ValueFormat, action};
use super::reference::{Op, SampleRequest};
use super::sample::ServerSample;
use super::setup::{Stream, SubjectSetup};
use super::store::PointStore;
use ::http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use stentor_wire::wsdl::{Operation, Service};
use stentor_wire::{Content, WireError, wsdl};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Maximum of concurrent connections; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 256;
/// Maximum of samples kept; further exchanges are answered without a sample.
const SAMPLES_MAX: usize = 4_000_000;

/// The behaviour of a server towards its clients. All but the first exist for tests of the checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Correct responses.
    #[default]
    Honest,
    /// Omits the last entry of a response, or the last letter.
    Forgetful,
    /// Never responds.
    Mute,
    /// Ignores the factors of abilities, like a subject that does not have them.
    Boastful,
}

/// The work of a server, with its samples.
#[derive(Clone)]
pub(crate) struct ServerWork {
    dialect: SubjectDialect,
    op: Op,
    behaviour: Behaviour,
    setup: Arc<SubjectSetup>,
    /// The source of points, if they are not made on request.
    store: Option<Arc<Mutex<PointStore>>>,
    samples: Arc<Mutex<SampleLog>>,
}

/// A request.
#[derive(Clone, Copy)]
pub(crate) enum Question<'a> {
    /// A request in a body.
    Body(&'a [u8]),
    /// A request in the last part of a path.
    Url(&'a str),
}

#[derive(Default)]
struct SampleLog {
    seen: u64,
    connections: u64,
    kept: Vec<ServerSample>,
}

/// A listening server.
pub struct SubjectServer {
    /// The address on which it listens.
    pub address: SocketAddr,
    work: ServerWork,
    listening: Listening,
}

enum Listening {
    Tasks(tokio::task::JoinHandle<()>),
    Threads(sockets::ListenerThread),
}

impl SubjectServer {
    /// Starts a server.
    pub async fn start(
        dialect: SubjectDialect,
        op: Op,
        bind: SocketAddr,
        behaviour: Behaviour,
    ) -> Result<Self, SubjectError> {
        Self::start_as(dialect, op, bind, behaviour, SubjectSetup::default()).await
    }

    /// Starts a server as specified by the factors of a cell.
    pub async fn start_as(
        dialect: SubjectDialect,
        op: Op,
        bind: SocketAddr,
        behaviour: Behaviour,
        setup: SubjectSetup,
    ) -> Result<Self, SubjectError> {
        let store = rows(&setup)?.map(|store| Arc::new(Mutex::new(store)));
        let tls = setup.acceptor(dialect.transport.protocol())?;
        let work =
            ServerWork { dialect, op, behaviour, setup: Arc::new(setup), store, samples: Arc::default() };
        if dialect.transport == SubjectTransport::SocketThreads {
            let threads = sockets::ListenerThread::start(bind, work.clone())?;
            return Ok(Self { address: threads.address, work, listening: Listening::Threads(threads) });
        }
        let listener =
            TcpListener::bind(bind).await.map_err(SubjectError::io(format!("listening on {bind}")))?;
        let address = listener.local_addr().map_err(SubjectError::io("listening"))?;
        let task = tokio::spawn(accept(listener, work.clone(), tls));
        Ok(Self { address, work, listening: Listening::Tasks(task) })
    }

    /// Returns the number of connections since samples were last taken.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.work.lock().connections
    }

    /// Returns the samples so far, and resets samples and counts.
    #[must_use]
    pub fn take_samples(&self) -> Vec<ServerSample> {
        std::mem::take(&mut *self.work.lock()).kept
    }
}

impl Drop for SubjectServer {
    fn drop(&mut self) {
        match &self.listening {
            Listening::Tasks(task) => task.abort(),
            Listening::Threads(threads) => threads.stop(),
        }
    }
}

impl ServerWork {
    /// Answers a request; `Err` holds the bytes of the refusal. Returns `None` for a mute server.
    pub(crate) fn answer(&self, request: Question<'_>) -> Option<Result<Vec<u8>, Vec<u8>>> {
        let t_recv = monotonic_ns();
        let bytes = match request {
            Question::Body(body) => body.len(),
            Question::Url(text) => text.len(),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut sample = ServerSample { t_recv, bytes, ..Default::default() };
        let answer = self.work_out(request, &mut sample);
        sample.t_ser_end = monotonic_ns();
        sample.status = u16::from(answer.is_err());
        self.keep(sample);
        let answer = answer.map_err(|error| {
            // A failure that cannot be written is told as a text.
            let written = self.dialect.write_failure(&error);
            written.unwrap_or_else(|unwritten| unwritten.to_string().into_bytes())
        });
        (self.behaviour != Behaviour::Mute).then_some(answer)
    }

    fn work_out(&self, request: Question<'_>, sample: &mut ServerSample) -> Result<Vec<u8>, WireError> {
        let request = match request {
            Question::Body(body) => match self.dialect.read_request(self.op, body) {
                // Only a body that is no call of the operation can be a call of another method.
                Err(error) if self.dialect.format == ValueFormat::XmlRpc => {
                    return system::answer(self, body).unwrap_or(Err(error));
                }
                read => read?,
            },
            Question::Url(text) => Content::Payload(text.to_owned()),
        };
        sample.t_deser_end = monotonic_ns();
        let nonsense = || WireError::Unexpected(format!("{} does not support this request", self.op.word()));
        let mut answer = self.do_it(request).ok_or_else(nonsense)?;
        if self.behaviour == Behaviour::Forgetful {
            forget(&mut answer);
        }
        sample.t_work_end = monotonic_ns();
        self.dialect.write_answer(self.op, &answer)
    }

    fn do_it(&self, request: Content) -> Option<Content> {
        for _ in 1..self.setup.services {
            // The result must not be known to the compiler as unused.
            drop(black_box(self.op.answer(black_box(request.clone()))));
        }
        let (Some(store), Content::Payload(text)) = (&self.store, &request) else {
            return self.op.answer_to(&self.setup.factors, self.setup.seed, request);
        };
        let wish = SampleRequest::read(text)?;
        let rows = store.lock();
        rows.rows(wish.from, wish.count).ok().map(Content::Points)
    }

    /// Returns the description of the service, if its dialect has descriptions. Its address contains the host of the request.
    fn description(&self, host: Option<&HeaderValue>) -> Option<Result<Vec<u8>, WireError>> {
        let ValueFormat::Soap(_) = self.dialect.format else { return None };
        let host = host?.to_str().ok()?;
        let service = Service {
            name: "Lab".into(),
            namespace: NAMESPACE.into(),
            address: format!("http://{host}/{}", self.op.word()),
            operations: vec![Operation { name: self.op.word().into(), action: action(self.op) }],
        };
        Some(wsdl::write(&service))
    }

    /// Counts a new connection.
    fn connected(&self) {
        self.lock().connections += 1;
    }

    fn keep(&self, mut sample: ServerSample) {
        let mut samples = self.lock();
        sample.seq = samples.seen;
        samples.seen += 1;
        if samples.kept.len() < SAMPLES_MAX {
            samples.kept.push(sample);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SampleLog> {
        self.samples.lock()
    }
}

/// Fills the rows from which points are read, with all points that the cell's clients may request.
fn rows(setup: &SubjectSetup) -> Result<Option<PointStore>, SubjectError> {
    let Some(path) = &setup.store else { return Ok(None) };
    let mut store = PointStore::open(path)?;
    store.fill(&SampleRequest::all(&setup.factors, setup.seed).points(&setup.factors))?;
    Ok(Some(store))
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

/// Accepts connections until it is aborted, which also ends the connections.
async fn accept(listener: TcpListener, work: ServerWork, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        // A connection without this option is slower, but works.
        let _ = stream.set_nodelay(true);
        connections.spawn(accept_connection(stream, work.clone(), tls.clone()));
    }
}

/// Performs the TLS handshake if the cell requires it, then serves the connection.
async fn accept_connection(stream: TcpStream, work: ServerWork, tls: Option<TlsAcceptor>) {
    work.connected();
    let stream: Stream = match tls {
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => Box::new(stream),
            Err(_) => return,
        },
        None => Box::new(stream),
    };
    match work.dialect.transport {
        SubjectTransport::Http => http::speak_http(stream, work).await,
        SubjectTransport::Grpc => http::speak_grpc(stream, work).await,
        SubjectTransport::SocketThreads | SubjectTransport::SocketTasks => {
            sockets::speak_frames(stream, work).await
        }
    }
}
