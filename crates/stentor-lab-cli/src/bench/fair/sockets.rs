//! Hostile sockets with unfinished requests.

use super::apps::{HostileApp, RequestCounters};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Number of concurrent uploads of imports.
const UPLOADS: u64 = 8;
/// Slow enough to occupy a connection, and fast enough that no idle timeout ends it.
const BYTE_EVERY: Duration = Duration::from_secs(1);
/// Number of idle connections: more than the server's default limit.
const IDLE_CONNECTIONS: u64 = 10_500;
/// Number of requests with unfinished bodies.
const UNFINISHED: u64 = 1_000;
/// Announced length of such a body, and the number of bytes sent.
const PROMISED_BYTES: usize = 1_000_000;
const SENT_BYTES: usize = 900_000;
/// Pause before a closed connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// Pause between two connections at the beginning, so that they do not queue behind each other.
const APART: Duration = Duration::from_millis(1);
/// The preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Uploads imports by a byte a second.
pub(super) async fn upload_slowly(app: HostileApp, counters: Arc<RequestCounters>) {
    side_by_side(UPLOADS, app, counters, |app: HostileApp| async move {
        let mut stream = connect(&app).await?;
        let head = head(&app, "/v1/devices/import", "application/x-ndjson", "Transfer-Encoding: chunked");
        stream.write_all(head.as_bytes()).await?;
        loop {
            stream.write_all(b"1\r\n\n\r\n").await?;
            tokio::select! {
                read = stream.read_u8() => return read.map(drop),
                () = tokio::time::sleep(BYTE_EVERY) => {}
            }
        }
    })
    .await;
}

/// Holds connections without a request.
pub(super) async fn hold_idle(app: HostileApp, counters: Arc<RequestCounters>) {
    side_by_side(IDLE_CONNECTIONS, app, counters, |app: HostileApp| async move {
        let mut stream = connect(&app).await?;
        stream.write_all(PREFACE).await?;
        until_closed(&mut stream).await
    })
    .await;
}

/// Sends the larger part of a body and waits.
pub(super) async fn leave_unfinished(app: HostileApp, counters: Arc<RequestCounters>) {
    side_by_side(UNFINISHED, app, counters, |app: HostileApp| async move {
        let mut stream = connect(&app).await?;
        let length = format!("Content-Length: {PROMISED_BYTES}");
        stream.write_all(head(&app, "/v1/messages", "application/json", &length).as_bytes()).await?;
        stream.write_all(br#"{"target":"everyone","data":{"k":""#).await?;
        stream.write_all(&vec![b'x'; SENT_BYTES]).await?;
        until_closed(&mut stream).await
    })
    .await;
}

/// Runs `work` on `count` connections, and repeats it on each connection after it has ended.
async fn side_by_side<F, W>(count: u64, app: HostileApp, counters: Arc<RequestCounters>, work: F)
where
    F: Fn(HostileApp) -> W + Copy + Send + 'static,
    W: Future<Output = io::Result<()>> + Send,
{
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (app, counters) = (app.clone(), counters.clone());
        tasks.spawn(async move {
            loop {
                counters.asked.fetch_add(1, Ordering::Relaxed);
                let counter =
                    if work(app.clone()).await.is_ok() { &counters.refused } else { &counters.broken };
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(AGAIN).await;
            }
        });
        tokio::time::sleep(APART).await;
    }
    while tasks.join_next().await.is_some() {}
}

/// Connects from the app's own address.
async fn connect(app: &HostileApp) -> io::Result<TcpStream> {
    let authority = app.client.server().trim_start_matches("http://");
    let server: SocketAddr =
        authority.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(app.address, 0))?;
    socket.connect(server).await
}

fn head(app: &HostileApp, path: &str, content_type: &str, length: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n",
        app.key
    )
}

/// Reads and discards data until the server has closed the connection.
async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut bytes = [0; 1_024];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}
