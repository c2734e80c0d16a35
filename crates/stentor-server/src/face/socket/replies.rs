//! Writes replies in order of completion, and gives up on peers that do not read them.

use std::time::Duration;

use stentor_wire::frame;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::listen::AtWork;
use crate::shares::SharePart;

/// Size up to which waiting replies are combined in one write.
const TOGETHER_BYTES: usize = 64 << 10;
/// Minimum rate at which a peer must read replies.
const MIN_BYTES_PER_SECOND: usize = 16 << 10;

/// An outgoing reply, and the resources of its request until it is written.
pub(super) struct SocketReply {
    pub(super) payload: Vec<u8>,
    /// Memory of the reply until it is written, charged to the caller.
    pub(super) _room: Option<SharePart>,
    pub(super) _at_work: Option<AtWork>,
    pub(super) _slot: Option<OwnedSemaphorePermit>,
}

impl SocketReply {
    /// Returns a final message that is not a reply to a request.
    pub(super) const fn last(payload: Vec<u8>) -> Self {
        Self { payload, _room: None, _at_work: None, _slot: None }
    }
}

/// Writes replies until the queue is closed; cancels `broken` if one cannot be written in time.
pub(super) async fn write_all<W: AsyncWrite + Unpin>(
    mut stream: W,
    mut queue: mpsc::Receiver<SocketReply>,
    wait: Duration,
    broken: CancellationToken,
) {
    while let Some(first) = queue.recv().await {
        let mut bytes = Vec::new();
        let mut is_framed = put_framed(&first.payload, &mut bytes);
        let mut together = vec![first];
        while is_framed
            && bytes.len() < TOGETHER_BYTES
            && let Ok(next) = queue.try_recv()
        {
            is_framed = put_framed(&next.payload, &mut bytes);
            together.push(next);
        }
        if !is_framed || !written(&mut stream, &bytes, wait).await {
            broken.cancel();
            return;
        }
    }
    let _the_peer_may_have_gone = timeout(wait, stream.shutdown()).await;
}

/// Writes one payload. Returns true if the peer read it in time.
pub(super) async fn write_one<W: AsyncWrite + Unpin>(stream: &mut W, payload: &[u8], wait: Duration) -> bool {
    let mut bytes = Vec::new();
    put_framed(payload, &mut bytes) && written(stream, &bytes, wait).await
}

async fn written<W: AsyncWrite + Unpin>(stream: &mut W, bytes: &[u8], wait: Duration) -> bool {
    let wait = wait + Duration::from_secs((bytes.len() / MIN_BYTES_PER_SECOND) as u64);
    let writing = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    matches!(timeout(wait, writing).await, Ok(Ok(())))
}

/// Appends a payload after its length. Returns false if the payload is too long for the length field.
fn put_framed(payload: &[u8], bytes: &mut Vec<u8>) -> bool {
    match frame::write(payload) {
        Ok(framed) => bytes.extend_from_slice(&framed),
        Err(error) => {
            tracing::error!(%error, "a reply is too long for a frame");
            return false;
        }
    }
    true
}
