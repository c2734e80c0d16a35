//! The router as one connection calls it: each request is counted while it is worked on, and knows its peer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::response::Response;
use tower::Service;

use super::PeerAddress;
use super::connections::Place;

/// A router and the connection's place.
#[derive(Clone)]
pub(super) struct Counted {
    router: Router,
    place: Arc<Place>,
    peer: PeerAddress,
}

impl Counted {
    /// Counts the router's requests at this place, and tells each its peer.
    pub(super) const fn new(router: Router, place: Arc<Place>, peer: PeerAddress) -> Self {
        Self { router, place, peer }
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
        let mut at_work = self.place.begin();
        request.extensions_mut().insert(self.peer);
        let answer = self.router.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            at_work.answered(answer.body().size_hint().upper().unwrap_or_default());
            Ok(answer)
        })
    }
}
