//! A server of MQTT 3.1.1 and 5, to which devices connect as to a broker.
//!
//! The ledger is the session: waiting messages are delivered on subscription, and the device's acknowledgements remove them. There are
//! three spaces of topics: `messages/device` and `topics/NAME` lead to the device, `upstream/...` from it.

mod content;
mod encoded_deliveries;
mod fault;
mod frames;
pub mod fuzzing;
mod handshake;
mod limits;
mod link;
mod request;
mod retained;
mod session;
mod session_record;
mod subscriptions;
mod upstream;
mod will;
mod writer;

pub use limits::MqttLimits;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::device_logins::LoginKeys;
use crate::gateway::Gateway;
use link::MqttLink;
use session::MqttSession;

/// Serves one connection to its end: the login, then messages both ways, until either side leaves or [`Gateway::stop`] ends all sessions.
/// `admitted` is cancelled after the login. `stopping` ends connections that have no session yet, and waits for devices that do not read.
pub fn serve<S>(
    gateway: Gateway,
    stream: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
    limits: MqttLimits,
) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    // Rare steps are boxed, so that an idle connection holds only its waiting state.
    let entering = Box::pin(enter(gateway, stream, stopping, admitted, limits));
    async move {
        if let Some(session) = entering.await {
            session.run().await;
        }
    }
}

async fn enter<S: AsyncRead + AsyncWrite + Unpin + Send>(
    gateway: Gateway,
    stream: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
    limits: MqttLimits,
) -> Option<Box<MqttSession<S>>> {
    let mut link = Box::new(MqttLink::new(stream, &limits, stopping));
    let mut login = handshake::enter(&gateway, &mut link, &limits).await?;
    admitted.cancel();
    let login_keys = std::mem::replace(&mut login.keys, LoginKeys::Unknown);
    MqttSession::new(gateway, *link, &limits, *login).with_keys(login_keys).await
}
