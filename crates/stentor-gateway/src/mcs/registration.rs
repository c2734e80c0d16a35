//! Registrations of programs.

use stentor_core::device::{Device, DeviceFacts, Platform};
use stentor_core::id::AppId;
use stentor_core::limits::CHANNELS_PER_AGENT_MAX_COUNT;
use stentor_core::ports::store::{Channel, ChannelChange, StoreError};

use super::agent::McsAgent;
use super::channel::{McsChannel, McsChannelName};
use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;

impl Gateway {
    /// Lists a program's active registrations, each device once.
    pub(super) async fn mcs_channels(&self, agent: McsAgent) -> Result<Vec<McsChannel>, StoreError> {
        let mut channels: Vec<McsChannel> = Vec::new();
        for stored in self.channels(agent.to_string()).await? {
            // Skips the names of other protocols, which use the same table.
            let Some(channel) = McsChannel::read(&stored) else { continue };
            let device = channel.identity.device;
            if channels.iter().any(|known| known.identity.device == device) {
                continue;
            }
            match self.mcs_device(&channel).await? {
                Some(_) => channels.push(channel),
                // The app removed the device: the program learns it when it registers again.
                None => drop(
                    self.store()
                        .change_channel(&agent.to_string(), ChannelChange::Remove(stored.name))
                        .await?,
                ),
            }
        }
        Ok(channels)
    }

    async fn mcs_device(&self, channel: &McsChannel) -> Result<Option<Device>, StoreError> {
        match self.store().device(channel.identity.app, channel.identity.device).await {
            Ok(device) => Ok(Some(device).filter(|device| device.retired.is_none())),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Registers a program for an app, and returns the token; a repeated registration returns the same one. Returns `None` if its name
    /// cannot be stored.
    pub(super) async fn register_mcs(
        &self,
        agent: McsAgent,
        app: AppId,
        name: McsChannelName,
    ) -> Result<Option<String>, StoreError> {
        let Some(text) = name.text() else { return Ok(None) };
        let known = self.mcs_channels(agent).await?;
        let is_full = known.len() >= CHANNELS_PER_AGENT_MAX_COUNT;
        let same = known.into_iter().find(|known| known.identity.app == app && known.name.is_same(&name));
        let before = match &same {
            Some(channel) => self.mcs_device(channel).await?,
            None => None,
        };
        let is_new = before.is_none();
        let (device, token) = match before {
            Some(device) => (device.id, device.token),
            // Checked before a device is created that no program could ever reach.
            None if is_full => {
                let why = format!("at most {CHANNELS_PER_AGENT_MAX_COUNT} registrations of one program");
                return Err(StoreError::LimitReached(why));
            }
            None => {
                let platform = if name.subtype.is_some() { Platform::Web } else { Platform::Android };
                let (identity, credentials) =
                    self.register_device(app, platform, DeviceFacts::default(), Vec::new()).await?;
                (identity.device, credentials.token)
            }
        };
        let channel = Channel { name: text.clone(), app, device };
        if let Err(error) = self.store().change_channel(&agent.to_string(), ChannelChange::Put(channel)).await
        {
            if is_new {
                // No program would ever name the device that was registered for it.
                self.withdraw(DeviceIdentity { app, device }).await?;
            }
            return Err(error);
        }
        // After the new one is stored: a crash between the two leaves one too many, not one too few.
        if let Some(old) = same.and_then(|same| same.name.text()).filter(|old| *old != text) {
            self.store().change_channel(&agent.to_string(), ChannelChange::Remove(old)).await?;
        }
        // Only after it is in the store, where the connection reads it.
        self.mcs_agents().note_change(agent);
        Ok(Some(token.expose().to_owned()))
    }

    /// Ends the registrations of a program that match `fits`; returns their number.
    pub(super) async fn unregister_mcs(
        &self,
        agent: McsAgent,
        fits: impl Fn(&McsChannel) -> bool + Send + Sync,
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        for channel in self.mcs_channels(agent).await?.into_iter().filter(|channel| fits(channel)) {
            match self.withdraw(channel.identity).await {
                Ok(()) | Err(StoreError::NotFound(_)) => count += 1,
                Err(error) => return Err(error),
            }
            if let Some(name) = channel.name.text() {
                self.store().change_channel(&agent.to_string(), ChannelChange::Remove(name)).await?;
            }
        }
        self.mcs_agents().note_change(agent);
        Ok(count)
    }
}
