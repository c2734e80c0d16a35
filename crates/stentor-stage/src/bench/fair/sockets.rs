//! Hostility by sockets that do not finish what they begin.

use super::hostility::{Tally, Tenant};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Imports uploaded side by side.
const UPLOADS: u64 = 8;
const BYTE_EVERY: Duration = Duration::from_secs(1);
/// Idle connections held: more than the server has places by default.
const IDLE_CONNECTIONS: u64 = 10_500;
/// Requests whose bodies are not finished.
const UNFINISHED: u64 = 1_000;
/// What such a body promises, and what comes of it.
const PROMISED_BYTES: usize = 1_000_000;
const SENT_BYTES: usize = 900_000;
/// Wait before a connection that was closed is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// Wait between two connections at the beginning, so that they do not only wait for each other.
const APART: Duration = Duration::from_millis(1);
/// The preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Uploads imports by a byte a second.
pub(super) async fn upload_slowly(tenant: Tenant, tally: Arc<Tally>) {
    side_by_side(UPLOADS, tenant, tally, |tenant: Tenant| async move {
        let mut stream = connect(&tenant).await?;
        let head = head(&tenant, "/v1/devices/import", "application/x-ndjson", "Transfer-Encoding: chunked");
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

/// Holds connections without ever asking anything.
pub(super) async fn hold_idle(tenant: Tenant, tally: Arc<Tally>) {
    side_by_side(IDLE_CONNECTIONS, tenant, tally, |tenant: Tenant| async move {
        let mut stream = connect(&tenant).await?;
        stream.write_all(PREFACE).await?;
        until_closed(&mut stream).await
    })
    .await;
}

/// Sends the larger part of a body and waits.
pub(super) async fn leave_unfinished(tenant: Tenant, tally: Arc<Tally>) {
    side_by_side(UNFINISHED, tenant, tally, |tenant: Tenant| async move {
        let mut stream = connect(&tenant).await?;
        let length = format!("Content-Length: {PROMISED_BYTES}");
        stream.write_all(head(&tenant, "/v1/messages", "application/json", &length).as_bytes()).await?;
        stream.write_all(br#"{"target":"everyone","data":{"k":""#).await?;
        stream.write_all(&vec![b'x'; SENT_BYTES]).await?;
        until_closed(&mut stream).await
    })
    .await;
}

/// Does one thing on so many connections, each again when it has ended.
async fn side_by_side<F, W>(count: u64, tenant: Tenant, tally: Arc<Tally>, work: F)
where
    F: Fn(Tenant) -> W + Copy + Send + 'static,
    W: Future<Output = io::Result<()>> + Send,
{
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (tenant, tally) = (tenant.clone(), tally.clone());
        tasks.spawn(async move {
            loop {
                tally.asked.fetch_add(1, Ordering::Relaxed);
                let counter = if work(tenant.clone()).await.is_ok() { &tally.refused } else { &tally.broken };
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(AGAIN).await;
            }
        });
        tokio::time::sleep(APART).await;
    }
    while tasks.join_next().await.is_some() {}
}

/// Connects from the tenant's own address.
async fn connect(tenant: &Tenant) -> io::Result<TcpStream> {
    let authority = tenant.client.server().trim_start_matches("http://");
    let server: SocketAddr =
        authority.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(tenant.address, 0))?;
    socket.connect(server).await
}

fn head(tenant: &Tenant, path: &str, content_type: &str, length: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n",
        tenant.key
    )
}

/// Reads and forgets until the server has closed the connection.
async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut bytes = [0; 1_024];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}
