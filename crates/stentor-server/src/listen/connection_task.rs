//! The task of one connection, which runs as a sequence of stages.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;

/// Serves a connection to its end. Each stage is freed before the next one begins, so that an idle connection holds no memory of its
/// handshake or login, and its task is as small as possible.
pub(crate) struct ConnectionTask(Pin<Box<dyn Future<Output = Option<Self>> + Send>>);

impl ConnectionTask {
    /// Creates a task from a stage that returns the next one, if there is one.
    pub(crate) fn new(piece: impl Future<Output = Option<Self>> + Send + 'static) -> Self {
        Self(Box::pin(piece))
    }

    /// Creates a task of a single stage.
    pub(crate) fn only(piece: impl Future<Output = ()> + Send + 'static) -> Self {
        Self::new(piece.map(|()| None))
    }
}

impl Future for ConnectionTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while let Some(next) = ready!(self.0.as_mut().poll(context)) {
            *self = next;
        }
        Poll::Ready(())
    }
}
