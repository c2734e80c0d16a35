//! The identity of a connection: its agent, and the agent's channels in the store.

use rand::Rng;
use stentor_core::device::{DeviceFacts, Platform};
use stentor_core::id::AppId;
use stentor_core::limits::CHANNELS_PER_AGENT_MAX_COUNT;
use stentor_core::ports::store::{Channel, ChannelChange, StoreError};

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;
use crate::web_push::VapidKeyHash;
use stentor_wire::web_push::VapidKey;

/// Random bytes of an agent's name. Knowledge of the name is the agent's only proof of identity.
const AGENT_BYTES: usize = 16;
/// Prefix of an agent's name in the store, which also holds the programs of other protocols.
const STORED_PREFIX: &str = "autopush:";
/// Separator between a channel's name and its key's hash in the store.
const SEPARATOR: char = '/';

/// Generates a name for an agent.
pub(super) fn new_agent() -> String {
    let mut bytes = [0_u8; AGENT_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// A subscription of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentChannel {
    /// The device's name for the channel.
    pub(super) name: String,
    /// The hash of the only key that may send to the channel.
    pub(super) key: Option<String>,
    /// Its device.
    pub(super) identity: DeviceIdentity,
}

impl AgentChannel {
    fn of(stored: Channel) -> Self {
        let (name, key) = match stored.name.split_once(SEPARATOR) {
            Some((name, key)) => (name.to_owned(), Some(key.to_owned())),
            None => (stored.name, None),
        };
        Self { name, key, identity: DeviceIdentity { app: stored.app, device: stored.device } }
    }

    fn stored_name(&self) -> String {
        self.key.as_ref().map_or(self.name.clone(), |key| format!("{}{SEPARATOR}{key}", self.name))
    }

    /// Returns true if the channel was created for this app and with this key, or without one.
    pub(super) fn is_of(&self, app: AppId, key: Option<&VapidKey>) -> bool {
        self.identity.app == app && self.key == key.map(|key| VapidKeyHash::of(key).text())
    }
}

/// Lists the channels of an agent.
pub(super) async fn channels_of(gateway: &Gateway, agent: &str) -> Result<Vec<AgentChannel>, StoreError> {
    let stored = gateway.channels(stored_agent(agent)).await?;
    Ok(stored.into_iter().map(AgentChannel::of).collect())
}

/// Registers a device for a new channel.
pub(super) async fn add_channel(
    gateway: &Gateway,
    agent: &str,
    app: AppId,
    name: &str,
    key: Option<&VapidKey>,
) -> Result<AgentChannel, StoreError> {
    if channels_of(gateway, agent).await?.len() >= CHANNELS_PER_AGENT_MAX_COUNT {
        return Err(StoreError::LimitReached(format!("at most {CHANNELS_PER_AGENT_MAX_COUNT} channels")));
    }
    let (identity, _) =
        gateway.register_device(app, Platform::Web, DeviceFacts::default(), Vec::new()).await?;
    let key = key.map(|key| VapidKeyHash::of(key).text());
    let channel = AgentChannel { name: name.to_owned(), key, identity };
    let stored = Channel { name: channel.stored_name(), app, device: identity.device };
    if let Err(error) = gateway.store().change_channel(&stored_agent(agent), ChannelChange::Put(stored)).await
    {
        // No client would ever name the device that was registered for it.
        gateway.withdraw(identity).await?;
        return Err(error);
    }
    Ok(channel)
}

/// Ends a channel. Its device is deleted, and its senders get an error.
pub(super) async fn end_channel(
    gateway: &Gateway,
    agent: &str,
    channel: &AgentChannel,
) -> Result<(), StoreError> {
    // The channel goes last, so that an interrupted call can be repeated.
    match gateway.withdraw(channel.identity).await {
        Ok(()) | Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    gateway
        .store()
        .change_channel(&stored_agent(agent), ChannelChange::Remove(channel.stored_name()))
        .await?;
    Ok(())
}

fn stored_agent(agent: &str) -> String {
    format!("{STORED_PREFIX}{agent}")
}
