//! Read timeout of an import. Only the time counts in which the server waits for data that does not arrive.

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, timeout};

use crate::service::{ErrorCode, Problem};

/// Limits of the time that the server waits for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadTimeout {
    /// Waiting time allowed at once; received bytes restore it.
    pub(super) idle: Duration,
    /// Number of received bytes that restore one second.
    pub(super) min_bytes_per_second: u64,
    /// Total waiting time allowed from the first to the last byte.
    pub(super) total: Duration,
}

/// A body that is being received, and the remaining waiting times.
struct Upload<S> {
    pieces: S,
    limits: ReadTimeout,
    idle_left: Duration,
    total_left: Duration,
}

/// Ends the body with a refusal if it arrives too slowly.
pub(super) fn with_timeout<S, E>(
    pieces: S,
    limits: ReadTimeout,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
{
    let upload = Upload { pieces, limits, idle_left: limits.idle, total_left: limits.total };
    futures_util::stream::unfold(Some(upload), async |upload| {
        let mut upload = upload?;
        match upload.next().await? {
            Ok(piece) => Some((Ok(piece), Some(upload))),
            Err(problem) => Some((Err(problem), None)),
        }
    })
}

impl<S, E> Upload<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        let started_at = Instant::now();
        let next = timeout(self.idle_left.min(self.total_left), self.pieces.next()).await;
        let waited = started_at.elapsed();
        self.idle_left = self.idle_left.saturating_sub(waited);
        self.total_left = self.total_left.saturating_sub(waited);
        match next {
            Ok(Some(Ok(piece))) => {
                self.encourage(piece.len());
                Some(Ok(piece))
            }
            Ok(Some(Err(_))) => Some(Err(Problem::new(ErrorCode::InvalidRequest, "the body broke off"))),
            Ok(None) => None,
            Err(_) => Some(Err(self.too_slow())),
        }
    }

    fn encourage(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * bytes
            / u32::try_from(self.limits.min_bytes_per_second).unwrap_or(u32::MAX).max(1);
        self.idle_left = self.idle_left.saturating_add(earned).min(self.limits.idle);
    }

    fn too_slow(&self) -> Problem {
        let ReadTimeout { idle, min_bytes_per_second, total } = self.limits;
        let why = if self.total_left.is_zero() {
            format!("the body kept the server waiting for {} seconds altogether", total.as_secs())
        } else {
            format!(
                "for {} seconds the body arrived more slowly than {min_bytes_per_second} bytes a second",
                idle.as_secs()
            )
        };
        Problem::new(ErrorCode::RequestTimeout, why)
    }
}
