//! The raw socket: length-prefixed frames, a hello, and numbered requests with replies in order of completion.

mod connection;
mod documents;
mod envelope;
mod frames;
mod hello;
mod page;
mod replies;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Api;
use super::record::Dispatcher;
use crate::contract::description::description;
use crate::listen::{Accepted, ConnectionProtocol, ConnectionTask};

pub use envelope::{FrameEncoding, SocketRequest, Unread};
pub use hello::{HELLO_MAX_BYTES, Hello};
pub use page::page;

/// Protocol version, as in the hello.
pub const VERSION: u32 = 1;
/// Maximum number of requests in flight on one connection.
const REQUESTS_IN_FLIGHT_MAX_COUNT: usize = 256;

/// Returns true if the named operation is available on a socket, by name and by number.
#[must_use]
pub fn carries(operation: &str) -> bool {
    Dispatcher::get().knows(operation) && description().numbers.operation(operation).is_some()
}

/// Handler for connections of the raw socket.
#[derive(Clone)]
pub(crate) struct SocketFace {
    api: Api,
}

impl SocketFace {
    /// Creates the handler on the shared state of all faces.
    pub(super) const fn new(api: Api) -> Self {
        Self { api }
    }
}

impl ConnectionProtocol for SocketFace {
    fn serve_connection<S>(self, stream: S, accepted: Accepted) -> ConnectionTask
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        ConnectionTask::only(async move {
            let _counted = self.api.socket_counts().connected();
            connection::serve(self.api, stream, accepted).await;
        })
    }
}
