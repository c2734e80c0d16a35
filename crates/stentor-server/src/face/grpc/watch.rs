//! Replies that come one after the other: what is watched is looked at again and again, and told when it has changed.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{iter, unfold};
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::encoding::Encoding;
use super::{deadline, frame, reply, status};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::middleware::RequestId;
use crate::listen::{AtWork, RequestConnection};
use crate::shares::SharePart;

/// Time from one look to the next.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What can be watched.
pub(super) trait Watched: Send + 'static {
    /// Looks at it as it is now.
    fn look(&mut self) -> impl Future<Output = ServiceResult<Look>> + Send;
}

/// What one look has found.
pub(super) struct Look {
    /// The message that tells it.
    pub(super) message: Vec<u8>,
    /// Whether it changes no more.
    pub(super) is_last: bool,
}

/// Something that is watched, until it changes no more, the caller has enough, or the server ends.
pub(super) struct Watch<W> {
    watched: W,
    told: Option<Vec<u8>>,
    is_over: bool,
    until: Option<Instant>,
    connection: Option<RequestConnection>,
    request_id: String,
    _place: SharePart,
    /// A connection whose watch has nothing to tell is not idle.
    _at_work: Option<AtWork>,
}

impl<W: Watched> Watch<W> {
    /// Watches something for the caller of a request, at a place that was taken for it.
    pub(super) fn new(watched: W, parts: &Parts, place: SharePart) -> ServiceResult<Self> {
        let wait = deadline::deadline(&parts.headers)?;
        let connection = parts.extensions.get::<RequestConnection>().cloned();
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.0.to_string());
        Ok(Self {
            watched,
            told: None,
            is_over: false,
            until: wait.and_then(|wait| Instant::now().checked_add(wait)),
            request_id: request_id.unwrap_or_default(),
            _place: place,
            _at_work: connection.as_ref().map(RequestConnection::begin),
            connection,
        })
    }

    /// Answers with all that it finds; what cannot be looked at even once is refused.
    pub(super) async fn answer(mut self) -> ServiceResult<Response> {
        let first = self.next().await.transpose()?;
        let (tell_ending, ending) = oneshot::channel();
        let rest = unfold((self, tell_ending), async |(mut watch, tell_ending)| match watch.next().await {
            Some(Ok(message)) => Some((message, (watch, tell_ending))),
            Some(Err(problem)) => {
                let _nobody_may_listen = tell_ending.send(status::refused(&problem, &watch.request_id));
                None
            }
            None => None,
        });
        let messages = iter(first).chain(rest).map(|message| Ok::<_, Infallible>(frame::of(0, &message)));
        let trailers = async { Some(Ok(ending.await.unwrap_or_else(|_| status::served()))) };
        Ok(reply(Body::new(Body::from_stream(messages).with_trailers(trailers)), Encoding::Identity))
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
        if self.told.is_some() {
            self.pause().await?;
        }
        let Look { message, is_last } = self.watched.look().await?;
        self.is_over = is_last;
        if self.told.as_ref() == Some(&message) {
            return Ok(None);
        }
        self.told = Some(message.clone());
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
