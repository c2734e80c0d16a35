//! One connection: the hello, then requests until either side ends it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use secrecy::{ExposeSecret, SecretString};
use stentor_core::id::AppId;
use stentor_core::name::IdempotencyKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::documents::DocumentFace;
use super::envelope::{FrameEncoding, SocketRequest};
use super::frames::{FrameLimits, FrameReader, Framed};
use super::hello::{Hello, ServerGreeting, receive};
use super::replies::{SocketReply, write_all, write_one};
use crate::contract::{ErrorCode, Identity, Origin, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::{RequestPermit, middleware};
use crate::face::record::{Dispatcher, Record, RequestContext};
use crate::listen::Accepted;
use crate::owner::SourceNetwork;

/// Time for which input is read and discarded after the last reply.
const FAREWELL: Duration = Duration::from_secs(2);

/// Common state of all requests of a connection.
struct SocketSession {
    api: Api,
    name: String,
    key: SecretString,
    app: Option<AppId>,
    encoding: FrameEncoding,
    accepted: Accepted,
}

/// Reason for which no more requests are read.
enum SessionEnd {
    /// The peer is gone, or gets no notice.
    Gone,
    /// The peer gets this problem.
    Because(Problem),
}

/// Serves a connection until either side ends it.
pub(super) async fn serve<S>(api: Api, stream: S, accepted: Accepted)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut read, mut write) = tokio::io::split(stream);
    let wait = api.limits().body_timeout;
    let greeted = tokio::select! {
        greeted = timeout(accepted.timeouts.header, greeted(&api, &mut read)) => greeted,
        () = accepted.place.replaced() => return,
        () = accepted.stopping.cancelled() => return,
    };
    match greeted {
        Ok(Ok(Some((hello, identity)))) => {
            let session = SocketSession::new(api, hello, accepted);
            match session.greeting() {
                Ok(greeting) => {
                    if write_one(&mut write, &greeting, wait).await {
                        Arc::new(session).serve(read, write, identity).await;
                    }
                }
                Err(problem) => refuse(read, write, problem, wait).await,
            }
        }
        Ok(Err(problem)) => refuse(read, write, problem, wait).await,
        Ok(Ok(None)) | Err(_) => {}
    }
}

/// Reads the hello and authenticates its key.
async fn greeted(api: &Api, read: &mut (impl AsyncRead + Unpin)) -> ServiceResult<Option<(Hello, Identity)>> {
    let Some(frame) = receive(read).await? else { return Ok(None) };
    let hello = Hello::read(&frame)?;
    let identity = api.service().identify(hello.key.expose_secret()).await?;
    Ok(Some((hello, identity)))
}

/// Sends the reason of a refusal, and closes the connection.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    read: ReadHalf<S>,
    mut write: WriteHalf<S>,
    problem: Problem,
    wait: Duration,
) {
    tracing::info!(code = problem.code.as_str(), "a hello was refused");
    let refusal = FrameEncoding::Json.write(0, "", &Err(problem));
    if write_one(&mut write, &refusal, wait).await {
        leave(read, write).await;
    }
}

/// Closes a connection after the last reply. Further input is discarded for a while, because closing with unread bytes could destroy the
/// last reply for the peer.
async fn leave<S: AsyncRead + AsyncWrite + Unpin>(mut read: ReadHalf<S>, mut write: WriteHalf<S>) {
    use tokio::io::{AsyncWriteExt, copy, sink};
    let ending = async {
        write.shutdown().await?;
        copy(&mut read, &mut sink()).await
    };
    let _the_peer_may_have_gone = timeout(FAREWELL, ending).await;
}

impl SocketSession {
    fn new(api: Api, hello: Hello, accepted: Accepted) -> Self {
        let name = format!("con_{:016x}", rand::random::<u64>());
        let Hello { key, app, encoding } = hello;
        Self { api, name, key, app, encoding, accepted }
    }

    fn greeting(&self) -> ServiceResult<Vec<u8>> {
        let idle_seconds = self.accepted.timeouts.idle.as_secs();
        let max_bytes = self.api.large_body_max_bytes();
        let greeting = ServerGreeting::new(&self.name, self.encoding, max_bytes, idle_seconds);
        serde_json::to_vec(&greeting).map_err(Problem::unwritten)
    }

    /// Serves requests until either side ends the connection. Every accepted request gets a reply.
    async fn serve<S>(self: Arc<Self>, read: ReadHalf<S>, write: WriteHalf<S>, identity: Identity)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limits = self.api.limits();
        let frame_limits = FrameLimits {
            max_bytes: self.api.large_body_max_bytes(),
            timeout: limits.body_timeout,
            bodies: limits.bodies.clone(),
            owner: identity.owner(self.network()),
        };
        let mut frames = FrameReader::new(read, frame_limits);
        let (queue, replies) = mpsc::channel(self.encoding.in_flight_max_count());
        let broken = CancellationToken::new();
        let writing = write_all(write, replies, limits.body_timeout, broken.clone());
        let reading = async {
            // The sender is moved in: writing ends when it is dropped and no reply is left.
            let was_told = self.read(&mut frames, queue, &broken).await;
            if was_told {
                let _the_peer_may_go_on = timeout(FAREWELL, frames.drain()).await;
            }
        };
        tokio::join!(reading, writing);
    }

    /// Accepts requests until the end, waits for their replies, and reports the reason to the peer. Returns true if it did.
    async fn read<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        frames: &mut FrameReader<R>,
        queue: mpsc::Sender<SocketReply>,
        broken: &CancellationToken,
    ) -> bool {
        let places = self.encoding.in_flight_max_count();
        let slots = Arc::new(Semaphore::new(places));
        let end = tokio::select! {
            biased;
            end = self.end(broken) => end,
            end = self.take_requests(frames, &queue, &slots) => end,
        };
        // A slot is released when its reply is written.
        let _all_are_answered = slots.acquire_many(places as u32).await;
        match end {
            SessionEnd::Because(problem) => {
                let last = SocketReply::last(self.last_word(&problem));
                queue.send(last).await.is_ok()
            }
            SessionEnd::Gone => false,
        }
    }

    /// Waits for a reason to stop reading.
    async fn end(&self, broken: &CancellationToken) -> SessionEnd {
        let Accepted { place, stopping, timeouts, .. } = &self.accepted;
        tokio::select! {
            () = stopping.cancelled() => {
                let detail = "the server stops; unanswered requests were not begun";
                SessionEnd::Because(Problem::new(ErrorCode::Unavailable, detail))
            }
            () = place.idle(timeouts.idle, timeouts.idle) => {
                let detail = format!("there was no request for {} seconds", timeouts.idle.as_secs());
                SessionEnd::Because(Problem::new(ErrorCode::RequestTimeout, detail))
            }
            () = place.replaced() => SessionEnd::Gone,
            () = broken.cancelled() => SessionEnd::Gone,
        }
    }

    async fn take_requests<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        frames: &mut FrameReader<R>,
        queue: &mpsc::Sender<SocketReply>,
        slots: &Arc<Semaphore>,
    ) -> SessionEnd {
        loop {
            // First the slot, then the frame: while too many requests are in flight, nothing is read.
            let Ok(slot) = slots.clone().acquire_owned().await else { return SessionEnd::Gone };
            match frames.next().await {
                Ok(Some(frame)) => {
                    if let Err(problem) = self.begin(frame, slot, queue) {
                        return SessionEnd::Because(problem);
                    }
                }
                Ok(None) => return SessionEnd::Gone,
                Err(problem) => return SessionEnd::Because(problem),
            }
        }
    }

    /// Starts a request. Fails if its number is unknown.
    fn begin(
        self: &Arc<Self>,
        Framed { payload, room }: Framed,
        slot: OwnedSemaphorePermit,
        queue: &mpsc::Sender<SocketReply>,
    ) -> ServiceResult<()> {
        self.api.socket_counts().asked();
        let work = self.work(payload)?;
        // Busy from here on, not from the start of the task: the connection must not count as idle in between.
        let (session, queue, mut at_work) = (self.clone(), queue.clone(), self.accepted.place.begin());
        tokio::spawn(async move {
            let permit = RequestPermit::new(session.api.limits(), session.network(), false);
            let payload = session.answer(work, &permit).await;
            let reply_room = permit.room_of_reply(payload.len());
            // The request's bytes and its place are released, because the reply may wait long for the peer.
            drop((room, permit));
            at_work.answered(payload.len() as u64);
            let (room, at_work, slot) = (Some(reply_room), Some(at_work), Some(slot));
            let reply = SocketReply { payload, _room: room, _at_work: at_work, _slot: slot };
            let _the_peer_may_have_gone = queue.send(reply).await;
        });
        Ok(())
    }

    /// Decodes a frame. Fails if the number of the request is unknown.
    fn work(&self, payload: Vec<u8>) -> ServiceResult<SocketWork> {
        if let Some(face) = self.encoding.documents() {
            return Ok(SocketWork::Document(face, payload));
        }
        match self.encoding.read(&payload) {
            Err(unread) if unread.id == 0 => Err(unread.problem),
            Err(unread) => Ok(SocketWork::Refused(unread.id, unread.problem)),
            Ok(request) => Ok(SocketWork::SocketRequest(request)),
        }
    }

    async fn answer(&self, work: SocketWork, permit: &RequestPermit) -> Vec<u8> {
        match work {
            SocketWork::Refused(id, problem) => self.encoding.write(id, "", &Err(problem)),
            SocketWork::SocketRequest(request) => {
                let id = request.id;
                let origin = self.origin(id);
                let operation = request.operation.clone();
                // Unknown names are the caller's own text and stay out of the log.
                let named = Dispatcher::get().known(&operation).unwrap_or(UNKNOWN_OPERATION);
                let span = tracing::info_span!("request", id = %origin.request_id, operation = named);
                let reply = self.served(request, origin, permit).instrument(span).await;
                self.encoding.write(id, &operation, &reply)
            }
            SocketWork::Document(face, document) => self.document(face, &document, permit).await,
        }
    }

    /// Passes a document to its face and returns the response.
    async fn document(&self, face: DocumentFace, document: &[u8], permit: &RequestPermit) -> Vec<u8> {
        let answer = async {
            let context = self.context(None, self.origin(0), permit).await?;
            (face.answer)(&self.api, &context, document).await
        };
        self.within_limits(answer).await.unwrap_or_else(|problem| (face.refuse)(&problem))
    }

    async fn served(
        &self,
        request: SocketRequest,
        origin: Origin,
        permit: &RequestPermit,
    ) -> ServiceResult<Record> {
        let began = Instant::now();
        let SocketRequest { operation, record, key, .. } = request;
        let work = async {
            let context = self.context(key, origin, permit).await?;
            let dispatched = Dispatcher::get().call(&operation, &self.api, context, record);
            dispatched.ok_or_else(|| no_such_operation(&operation))?.await
        };
        let reply = self.within_limits(work).await;
        log(&reply, began.elapsed());
        reply
    }

    /// Runs work with a timeout, and catches panics.
    async fn within_limits<T>(&self, work: impl Future<Output = ServiceResult<T>>) -> ServiceResult<T> {
        let work = AssertUnwindSafe(work).catch_unwind();
        match timeout(self.api.limits().timeout, work).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(middleware::failed()),
            Err(_) => Err(middleware::timed_out()),
        }
    }

    /// Authenticates each request again, because the key may have been deleted in the meantime.
    async fn context(
        &self,
        key: Option<IdempotencyKey>,
        origin: Origin,
        permit: &RequestPermit,
    ) -> ServiceResult<RequestContext> {
        let identity = self.api.service().identify(self.key.expose_secret()).await?;
        permit.own(identity.owner(self.network()))?;
        Ok(RequestContext { identity, app: self.app, key, origin, permit: permit.clone() })
    }

    fn network(&self) -> SourceNetwork {
        self.accepted.peer.0.ip().into()
    }

    fn origin(&self, id: u64) -> Origin {
        let address = self.accepted.peer.0.ip().to_canonical();
        Origin { address: Some(address), request_id: format!("{}.{id}", self.name), person: None }
    }

    fn last_word(&self, problem: &Problem) -> Vec<u8> {
        match self.encoding.documents() {
            Some(face) => (face.refuse)(problem),
            None => self.encoding.write(0, "", &Err(problem.clone())),
        }
    }
}

/// Content of one frame.
enum SocketWork {
    Refused(u64, Problem),
    SocketRequest(SocketRequest),
    Document(DocumentFace, Vec<u8>),
}

/// Name of all unknown operations in the log.
const UNKNOWN_OPERATION: &str = "unknown";

fn no_such_operation(name: &str) -> Problem {
    let shown: String = name.chars().take(100).collect();
    Problem::new(ErrorCode::NotFound, format!("there is no operation `{shown}`"))
        .with_hint("`stentor contract` lists them")
}

fn log(reply: &ServiceResult<Record>, took: Duration) {
    let micros = took.as_micros() as u64;
    match reply {
        Ok(_) => tracing::debug!(micros, "answered"),
        Err(problem) => tracing::info!(code = problem.code.as_str(), micros, "refused"),
    }
}
