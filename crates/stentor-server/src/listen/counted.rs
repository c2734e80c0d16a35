//! The router of one connection: counts each request while it is processed, and adds its peer address and connection.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::response::Response;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::connections::{AtWork, Place};
use super::{Accepted, PeerAddress};

/// A router and the connection's place.
#[derive(Clone)]
pub(super) struct Counted {
    router: Router,
    peer: PeerAddress,
    connection: RequestConnection,
}

/// The connection of a request, for handlers that stream their response.
#[derive(Clone)]
pub(crate) struct RequestConnection {
    place: Arc<Place>,
    stopping: CancellationToken,
}

impl RequestConnection {
    /// Keeps the connection from being idle while the guard is held.
    pub(crate) fn begin(&self) -> AtWork {
        self.place.begin()
    }

    /// Waits until the connection must make room for another, as an idle one may have to.
    pub(crate) async fn replaced(&self) {
        self.place.replaced().await;
    }

    /// Waits until the server is to stop.
    pub(crate) async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Returns the token that is cancelled when the server is to stop.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stopping.clone()
    }
}

impl Counted {
    /// Counts the router's requests at a connection's place, and adds peer and connection to each.
    pub(super) fn new(router: Router, accepted: &Accepted) -> Self {
        let Accepted { peer, place, stopping, .. } = accepted;
        let connection = RequestConnection { place: place.clone(), stopping: stopping.clone() };
        Self { router, peer: *peer, connection }
    }
}

impl<B> Service<Request<B>> for Counted
where
    Router: Service<Request<B>, Response = Response, Error = Infallible, Future: Send + 'static>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.router.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let mut at_work = self.connection.begin();
        request.extensions_mut().insert(self.peer);
        request.extensions_mut().insert(self.connection.clone());
        let answer = self.router.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            at_work.answered(answer.body().size_hint().upper().unwrap_or_default());
            Ok(answer)
        })
    }
}
