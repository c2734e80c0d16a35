//! Watches: streamed replies. The server reads the watched state at intervals and sends it after each change.

use std::time::Duration;

use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{iter, unfold};
use tokio::time::{Instant, sleep, sleep_until};

use super::encoding::MessageEncoding;
use super::stream::streamed;
use super::{deadline, request_id};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::listen::{AtWork, RequestConnection};
use crate::shares::SharePart;

/// Interval between two reads.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A state that can be watched.
pub(super) trait WatchSubject: Send + 'static {
    /// Reads the present state.
    fn look(&mut self) -> impl Future<Output = ServiceResult<WatchedState>> + Send;
}

/// Result of one read.
pub(super) struct WatchedState {
    /// Message with the state.
    pub(super) message: Vec<u8>,
    /// True if the state will not change any more.
    pub(super) is_last: bool,
}

/// A running watch. It ends with the last state, with the caller's deadline or connection, or with the server.
pub(super) struct RunningWatch<W> {
    watched: W,
    last_sent: Option<Vec<u8>>,
    is_over: bool,
    until: Option<Instant>,
    connection: Option<RequestConnection>,
    request_id: String,
    _place: SharePart,
    /// Marks the connection as busy, so that a watch without changes does not count as idle.
    _at_work: Option<AtWork>,
}

impl<W: WatchSubject> RunningWatch<W> {
    /// Creates a watch for the caller of a request, in a reserved place.
    pub(super) fn new(watched: W, parts: &Parts, place: SharePart) -> ServiceResult<Self> {
        let wait = deadline::deadline(&parts.headers)?;
        let connection = parts.extensions.get::<RequestConnection>().cloned();
        Ok(Self {
            watched,
            last_sent: None,
            is_over: false,
            until: wait.and_then(|wait| Instant::now().checked_add(wait)),
            request_id: request_id(&parts.extensions),
            _place: place,
            _at_work: connection.as_ref().map(RequestConnection::begin),
            connection,
        })
    }

    /// Responds with the stream of states, or fails if the first read fails.
    pub(super) async fn answer(mut self) -> ServiceResult<Response> {
        let first = self.next().await.transpose()?;
        let request_id = std::mem::take(&mut self.request_id);
        let rest = unfold(self, async |mut watch| Some((watch.next().await?, watch)));
        Ok(streamed(iter(first.map(Ok)).chain(rest).boxed(), MessageEncoding::Identity, request_id))
    }

    async fn next(&mut self) -> Option<ServiceResult<Vec<u8>>> {
        while !self.is_over {
            match self.changed().await {
                Ok(None) => {}
                Ok(Some(message)) => return Some(Ok(message)),
                Err(problem) => {
                    self.is_over = true;
                    return Some(Err(problem));
                }
            }
        }
        None
    }

    /// Reads the state again, after a pause; returns its message if it has changed.
    async fn changed(&mut self) -> ServiceResult<Option<Vec<u8>>> {
        if self.last_sent.is_some() {
            self.pause().await?;
        }
        let WatchedState { message, is_last } = self.watched.look().await?;
        self.is_over = is_last;
        if self.last_sent.as_ref() == Some(&message) {
            return Ok(None);
        }
        self.last_sent = Some(message.clone());
        Ok(Some(message))
    }

    async fn pause(&mut self) -> ServiceResult<()> {
        let (until, connection) = (self.until, &self.connection);
        let too_late = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let stopping = async {
            match connection {
                Some(connection) => connection.stopping().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(LOOK_INTERVAL) => Ok(()),
            () = too_late => Err(deadline::passed()),
            () = stopping => Err(Problem::new(ErrorCode::Unavailable, "the server is stopping; watch again")),
        }
    }
}
