//! The I/O of a connection: large reads, and one write for all responses since the last one.

use super::connection::{Connection, End};
use super::host::{GoAwayEnd, Host, Order};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use stentor_http2_codec::frame::ErrorCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The size of a read, in bytes.
pub(crate) const READ_BYTES: usize = 128 * 1024;
const GREETING_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(60);
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
const CLOSE_READ_BYTES: usize = 8 * 1024;

/// Serves a connection to its end, or until it is stopped.
pub(crate) async fn serve<H: Host>(
    mut connection: Connection<H>,
    mut io: impl AsyncRead + AsyncWrite + Unpin,
    stop: CancellationToken,
) {
    // A peer that breaks off ends only its own connection.
    let _ = exchange(&mut connection, &mut io, stop).await;
}

/// The next event on a connection.
enum Event {
    /// Something was read and taken.
    Read,
    End,
    Order(Order),
    Due,
    Stop,
}

async fn exchange<H: Host, IO: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<H>,
    io: &mut IO,
    stop: CancellationToken,
) -> io::Result<()> {
    let mut inbox = Inbox::default();
    let mut stopped = pin!(stop.cancelled());
    let mut timer = pin!(sleep_until(Instant::now() + GREETING_LIMIT));
    // A server's settings go out before anything is read (RFC 9113, section 3.4).
    flush(connection, io).await?;
    while connection.end() != End::Closing {
        let next = poll_fn(|cx| poll_event(cx, connection, io, &mut inbox, stopped.as_mut(), timer.as_mut()));
        match next.await? {
            Event::Read => {}
            Event::End => return Ok(()),
            Event::Order(order) => connection.obey(order),
            Event::Due if !connection.has_greeted() => return Ok(()),
            Event::Due => connection.send_due(Instant::now()),
            Event::Stop => connection.leave(ErrorCode::NO_ERROR, b"", GoAwayEnd::Close),
        }
        obey_ready(connection).await;
        flush(connection, io).await?;
        // Until then the timer limits the greeting.
        if connection.has_greeted()
            && let Some(due) = connection.next_due()
        {
            timer.as_mut().reset(due);
        }
    }
    close(io).await
}

fn poll_event<H: Host, IO: AsyncRead + Unpin>(
    cx: &mut Context<'_>,
    connection: &mut Connection<H>,
    io: &mut IO,
    inbox: &mut Inbox,
    stopped: Pin<&mut impl Future<Output = ()>>,
    timer: Pin<&mut Sleep>,
) -> Poll<io::Result<Event>> {
    // Before all else: a peer that never stops sending must not hold a stop up.
    if stopped.poll(cx).is_ready() {
        return Poll::Ready(Ok(Event::Stop));
    }
    if let Poll::Ready(order) = connection.host().poll_order(cx) {
        return Poll::Ready(Ok(Event::Order(order)));
    }
    let times = !connection.has_greeted() || connection.next_due().is_some();
    if times && timer.poll(cx).is_ready() {
        return Poll::Ready(Ok(Event::Due));
    }
    let read = inbox.poll_read(cx, io, |bytes| connection.receive(bytes, Instant::now()));
    read.map_ok(|bytes| if bytes == 0 { Event::End } else { Event::Read })
}

/// Follows the orders that a batch of requests has given, before its answers leave.
async fn obey_ready<H: Host>(connection: &mut Connection<H>) {
    poll_fn(|cx| {
        while let Poll::Ready(order) = connection.host().poll_order(cx) {
            connection.obey(order);
        }
        Poll::Ready(())
    })
    .await;
}

async fn flush<H: Host>(
    connection: &mut Connection<H>,
    io: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let out = connection.out();
    if out.is_empty() {
        return Ok(());
    }
    let write = async {
        io.write_all(out).await?;
        io.flush().await
    };
    timeout(WRITE_LIMIT, write).await.map_err(io::Error::from)??;
    connection.sent();
    Ok(())
}

/// Closes our half and reads the peer's remaining bytes, so that a reset does not discard our last output.
async fn close(io: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    io.shutdown().await?;
    let drain = async {
        let mut bytes = vec![0; CLOSE_READ_BYTES];
        while io.read(&mut bytes).await? > 0 {}
        Ok(())
    };
    timeout(CLOSE_LIMIT, drain).await.unwrap_or(Ok(()))
}

thread_local! {
    /// The read buffer shared by all connections of a thread. It stays in the cache, because its bytes are consumed at once.
    static BYTES: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Bytes read and not yet consumed: the start of a frame.
#[derive(Default)]
struct Inbox {
    rest: Vec<u8>,
}

impl Inbox {
    /// Reads until no more bytes are available or the buffer is full, and passes the bytes to `take`. Returns 0 at the end of the stream.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut (impl AsyncRead + Unpin),
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Poll<io::Result<usize>> {
        BYTES.with_borrow_mut(|bytes| {
            // The leftover is the start of one frame, which always fits.
            let before = self.rest.len();
            bytes[..before].copy_from_slice(&self.rest);
            let filled = ready!(poll_fill(cx, io, bytes, before))?;
            if filled > before {
                let used = take(&bytes[..filled]);
                self.rest.clear();
                self.rest.extend_from_slice(&bytes[used..filled]);
            }
            Poll::Ready(Ok(filled - before))
        })
    }
}

/// Appends bytes after `before` until no more are available. Returns the end of the filled part.
fn poll_fill(
    cx: &mut Context<'_>,
    io: &mut (impl AsyncRead + Unpin),
    bytes: &mut [u8],
    before: usize,
) -> Poll<io::Result<usize>> {
    let mut filled = before;
    while filled < bytes.len() {
        let mut buffer = ReadBuf::new(&mut bytes[filled..]);
        match Pin::new(&mut *io).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => filled += buffer.filled().len(),
            Poll::Pending if filled == before => return Poll::Pending,
            Poll::Ready(Err(error)) if filled == before => return Poll::Ready(Err(error)),
            // An end or error after bytes comes again at the next read.
            _ => break,
        }
    }
    Poll::Ready(Ok(filled))
}
