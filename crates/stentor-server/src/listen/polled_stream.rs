//! Streams for many mostly idle connections, which share one epoll for their readiness.
//!
//! The runtime needs 256 bytes for each socket that it watches. Here it watches a single epoll, and a socket needs little more than its
//! wakers.

#[cfg(test)]
mod tests;

use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::{coop, yield_now};
use tokio_util::task::AbortOnDropHandle;

/// Events read at once; after that, the woken tasks run.
const EVENTS_AT_ONCE: usize = 256;
/// Returns only events that have already occurred.
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Watches sockets until it is dropped; clones share it.
#[derive(Clone)]
pub(crate) struct SocketPoller {
    sockets: Arc<PolledSockets>,
    _waking: Arc<AbortOnDropHandle<()>>,
}

/// The watched sockets.
struct PolledSockets {
    epoll: AsyncFd<OwnedFd>,
    /// By file descriptor, so that an event finds its socket at once.
    by_file: Mutex<Vec<Option<SharedReadiness>>>,
}

/// A connection that is watched together with many others.
pub(crate) struct PolledStream {
    socket: std::net::TcpStream,
    readiness: SharedReadiness,
    sockets: Arc<PolledSockets>,
}

type SharedReadiness = Arc<Mutex<SocketReadiness>>;

/// The direction of a wait.
#[derive(Debug, Clone, Copy)]
enum ReadOrWrite {
    Read,
    Write,
}

/// The readiness of a socket, and the wakers that wait for it.
struct SocketReadiness {
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Incremented with each event: a result found before an event does not count after it.
    events: u32,
    can_read: bool,
    can_write: bool,
    /// The peer has closed or the connection is broken: the socket stays readable until a read reports that.
    is_over: bool,
}

impl SocketPoller {
    /// Starts watching; requires a running runtime.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for files that are closed while they are watched: an `OwnedFd` is not"
    )]
    pub(crate) fn start() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let epoll = AsyncFd::with_interest(epoll, Interest::READABLE)?;
        let sockets = Arc::new(PolledSockets { epoll, by_file: Mutex::default() });
        let waking = tokio::spawn(sockets.clone().wake_all());
        Ok(Self { sockets, _waking: Arc::new(AbortOnDropHandle::new(waking)) })
    }

    /// Watches a connection in place of the runtime.
    pub(crate) fn watch(&self, stream: TcpStream) -> io::Result<PolledStream> {
        let socket = stream.into_std()?;
        // Its state is unknown; the first attempt finds it out.
        let readiness = SocketReadiness {
            reader: None,
            writer: None,
            events: 0,
            can_read: true,
            can_write: true,
            is_over: false,
        };
        let readiness = Arc::new(Mutex::new(readiness));
        // Registered before it is watched, so that no event is missed; removed when the stream is dropped.
        self.sockets.know(&socket, Some(readiness.clone()));
        let stream = PolledStream { socket, readiness, sockets: self.sockets.clone() };
        let file = stream.socket.as_raw_fd();
        let events =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(
            self.sockets.epoll.get_ref(),
            &stream.socket,
            epoll::EventData::new_u64(file.unsigned_abs().into()),
            events,
        )?;
        Ok(stream)
    }
}

impl PolledSockets {
    /// Wakes waiting tasks while the poller exists.
    async fn wake_all(self: Arc<Self>) {
        let mut wakers = Vec::new();
        loop {
            let Ok(mut ready) = self.epoll.readable().await else { return };
            match self.note_events(&mut wakers) {
                // None is left, and new events are reported again.
                Ok(count) if count < EVENTS_AT_ONCE => ready.clear_ready(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "connections of devices are not watched any more");
                    return;
                }
            }
            // Only after the lock is released, because a woken task may drop a stream.
            wakers.drain(..).for_each(Waker::wake);
            yield_now().await;
        }
    }

    /// Records the pending events and collects the wakers. Returns the number of events.
    fn note_events(&self, wakers: &mut Vec<Waker>) -> Result<usize, Errno> {
        let mut space = [const { MaybeUninit::uninit() }; EVENTS_AT_ONCE];
        let (events, _) = epoll::wait(self.epoll.get_ref(), &mut space[..], Some(&NO_WAIT))?;
        let by_file = self.by_file();
        for event in events.iter() {
            let file = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if let Some(Some(readiness)) = by_file.get(file) {
                lock(readiness).note(event.flags, wakers);
            }
        }
        Ok(events.len())
    }

    /// Registers the readiness of a socket, or removes it.
    fn know(&self, socket: &std::net::TcpStream, readiness: Option<SharedReadiness>) {
        let file = socket.as_raw_fd().unsigned_abs() as usize;
        let mut by_file = self.by_file();
        if by_file.len() <= file {
            by_file.resize(file + 1, None);
        }
        by_file[file] = readiness;
    }

    fn by_file(&self) -> MutexGuard<'_, Vec<Option<SharedReadiness>>> {
        self.by_file.lock()
    }
}

impl SocketReadiness {
    fn note(&mut self, flags: epoll::EventFlags, wakers: &mut Vec<Waker>) {
        let ended = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        self.events = self.events.wrapping_add(1);
        self.is_over |= flags.intersects(ended);
        if self.is_over || flags.contains(epoll::EventFlags::IN) {
            self.can_read = true;
            wakers.extend(self.reader.take());
        }
        if self.is_over || flags.contains(epoll::EventFlags::OUT) {
            self.can_write = true;
            wakers.extend(self.writer.take());
        }
    }

    /// Returns the event counter if the socket is ready; otherwise registers the waker of `context`.
    fn poll(&mut self, direction: ReadOrWrite, context: &Context<'_>) -> Poll<u32> {
        let (can, waiting) = match direction {
            ReadOrWrite::Read => (self.can_read, &mut self.reader),
            ReadOrWrite::Write => (self.can_write, &mut self.writer),
        };
        if can {
            return Poll::Ready(self.events);
        }
        match waiting {
            Some(known) if known.will_wake(context.waker()) => {}
            waiting => *waiting = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Records that the socket is not ready, unless an event has occurred since.
    const fn wait(&mut self, direction: ReadOrWrite, events: u32) {
        if self.events == events {
            match direction {
                ReadOrWrite::Read => self.can_read = false,
                ReadOrWrite::Write => self.can_write = false,
            }
        }
    }

    /// Records that fewer bytes were transferred than requested. The socket is then not ready, except for the end, which may have been
    /// reported already.
    const fn wait_for_more(&mut self, direction: ReadOrWrite, events: u32) {
        if !self.is_over {
            self.wait(direction, events);
        }
    }
}

impl PolledStream {
    /// Attempts an operation on the socket for up to `asked_bytes`, or waits until it is ready. Fewer bytes are sufficient.
    fn poll_with(
        &self,
        direction: ReadOrWrite,
        context: &mut Context<'_>,
        asked_bytes: usize,
        mut attempt: impl FnMut(&std::net::TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        // Like the runtime's own sockets, yields if a task always finds its socket ready.
        let turn = ready!(coop::poll_proceed(context));
        loop {
            let events = ready!(lock(&self.readiness).poll(direction, context));
            match attempt(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    lock(&self.readiness).wait(direction, events);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    turn.made_progress();
                    if matches!(done, Ok(bytes) if (1..asked_bytes).contains(&bytes)) {
                        lock(&self.readiness).wait_for_more(direction, events);
                    }
                    return Poll::Ready(done);
                }
            }
        }
    }
}

impl Drop for PolledStream {
    fn drop(&mut self) {
        // Before its descriptor is reused.
        self.sockets.know(&self.socket, None);
        let _not_watched_yet = epoll::delete(self.sockets.epoll.get_ref(), &self.socket);
    }
}

impl AsyncRead for PolledStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let asked_bytes = space.remaining();
        let read = self.poll_with(ReadOrWrite::Read, context, asked_bytes, |mut socket| {
            socket.read(space.initialize_unfilled())
        });
        read.map_ok(|bytes| space.advance(bytes))
    }
}

impl AsyncWrite for PolledStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(ReadOrWrite::Write, context, bytes.len(), |mut socket| socket.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.shutdown(Shutdown::Write))
    }
}

fn lock(readiness: &Mutex<SocketReadiness>) -> MutexGuard<'_, SocketReadiness> {
    readiness.lock()
}
