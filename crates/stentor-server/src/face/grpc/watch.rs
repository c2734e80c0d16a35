//! Replies that come one after the other: what is watched is looked at again and again, and told when it has changed.

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

/// Time from one look to the next.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What can be watched.
pub(super) trait WatchSubject: Send + 'static {
    /// Looks at it as it is now.
    fn look(&mut self) -> impl Future<Output = ServiceResult<WatchedState>> + Send;
}

/// What one look has found.
pub(super) struct WatchedState {
    /// The message that tells it.
    pub(super) message: Vec<u8>,
    /// Whether it changes no more.
    pub(super) is_last: bool,
}

/// Something that is watched, until it changes no more, the caller has enough, or the server ends.
pub(super) struct RunningWatch<W> {
    watched: W,
    last_sent: Option<Vec<u8>>,
    is_over: bool,
    until: Option<Instant>,
    connection: Option<RequestConnection>,
    request_id: String,
    _place: SharePart,
    /// A connection whose watch has nothing to tell is not idle.
    _at_work: Option<AtWork>,
}

impl<W: WatchSubject> RunningWatch<W> {
    /// Watches something for the caller of a request, at a place that was taken for it.
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

    /// Answers with all that it finds; what cannot be looked at even once is refused.
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

    /// Looks once more, after a pause; returns what is to be told if it has changed.
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
            () = stopping => Err(Problem::new(ErrorCode::Unavailable, "the server ends; watch it again")),
        }
    }
}
