//! MQTT 3.1.1 and 5: a device that connects as it would to a broker.
//!
//! The ledger is the session: what waits for the device is given whoever asks for it, and what its acknowledgements confirm waits
//! no more. Topics of MQTT are three rooms: `messages/device` and `topics/NAME` lead to the device, `upstream/...` from it.

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
mod writer;

pub use limits::MqttLimits;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use link::MqttLink;
use session::MqttSession;

/// Serves one connection to its end: the login, then messages both ways, until either side leaves or `stopping` is cancelled.
/// `admitted` is cancelled when the device has logged in.
pub async fn serve<S>(
    gateway: Gateway,
    stream: S,
    stopping: CancellationToken,
    admitted: CancellationToken,
    limits: MqttLimits,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut link = Box::new(MqttLink::new(stream, &limits, stopping));
    // What happens once, or now and then, has memory of its own: an idle connection holds what it waits with.
    let entrance = Box::pin(handshake::enter(&gateway, &mut link, &limits)).await;
    if let Some(entrance) = entrance {
        admitted.cancel();
        // As long as the connection lasts nobody asks for it again.
        drop(admitted);
        MqttSession::new(&gateway, link, &limits, entrance).run().await;
    }
}
