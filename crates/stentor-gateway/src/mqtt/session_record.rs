//! Which client of a device has a session that goes on: one, the last that wanted it.

use stentor_core::ports::store::{Channel, StoreError};

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;

/// Names the record of a device among the store's channels.
fn agent_of(identity: DeviceIdentity) -> String {
    format!("mqtt/{}", identity.device)
}

/// Notes what a client wants of its session; returns whether it returns to one.
pub(super) async fn begin(
    gateway: &Gateway,
    identity: DeviceIdentity,
    client_id: &str,
    is_clean: bool,
    is_kept: bool,
) -> Result<bool, StoreError> {
    let agent = agent_of(identity);
    let known = gateway.store().channels(&agent).await?;
    let was_here = known.iter().any(|channel| channel.name == client_id);
    for channel in &known {
        if channel.name != client_id || !is_kept {
            gateway.store().remove_channel(&agent, &channel.name).await?;
        }
    }
    if is_kept && !was_here {
        let DeviceIdentity { app, device } = identity;
        let channel = Channel { name: client_id.to_owned(), app, device };
        gateway.store().put_channel(&agent, &channel).await?;
    }
    Ok(was_here && !is_clean)
}

/// Forgets a client that wants no session any more.
pub(super) async fn forget(
    gateway: &Gateway,
    identity: DeviceIdentity,
    client_id: &str,
) -> Result<(), StoreError> {
    gateway.store().remove_channel(&agent_of(identity), client_id).await.map(|_| ())
}
