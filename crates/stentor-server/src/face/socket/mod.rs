//! The raw socket: frames with a length in front, a hello, and numbered requests that are answered as they end.

mod connection;
mod documents;
mod envelope;
mod frames;
mod hello;
mod page;
mod replies;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::Api;
use super::record::Dispatcher;
use crate::contract::description::description;
use crate::listen::{Accepted, ConnectionProtocol, ConnectionTask};

pub use envelope::{FrameEncoding, SocketRequest, Unread};
pub use hello::{HELLO_MAX_BYTES, Hello};
pub use page::page;

/// Version of what is spoken; a hello names it.
pub const VERSION: u32 = 1;
/// Most requests of one connection at work.
const REQUESTS_IN_FLIGHT_MAX_COUNT: usize = 256;

/// Returns whether the operation of a name can be asked through a socket, by name and by number.
#[must_use]
pub fn carries(operation: &str) -> bool {
    Dispatcher::get().knows(operation) && description().numbers.operation(operation).is_some()
}

/// What speaks to every connection of the raw socket.
#[derive(Clone)]
pub(crate) struct SocketFace {
    api: Api,
}

impl SocketFace {
    /// Stands on the same as all faces.
    pub(super) const fn new(api: Api) -> Self {
        Self { api }
    }
}

impl ConnectionProtocol for SocketFace {
    type Socket = TcpStream;

    fn socket(&self, stream: TcpStream) -> io::Result<TcpStream> {
        Ok(stream)
    }

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
