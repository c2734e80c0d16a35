//! Registration of devices by themselves, and the rotation of their tokens.

use stentor_core::campaign::CampaignAction;
use stentor_core::device::{DeviceFacts, Platform, ProviderKind, Registration};
use stentor_core::id::{AppId, MessageId};
use stentor_core::name::TopicName;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    Change, Precondition, Receipt, ReceiptKind, Removal, StoreError, SubscriptionChange,
};

use crate::gateway::Gateway;
use crate::identity::{DeviceCredentials, DeviceIdentity};

impl Gateway {
    /// Registers a new device of an app; returns its identity and credentials. The caller must have authorized the registration.
    pub async fn register_device(
        &self,
        app: AppId,
        platform: Platform,
        facts: DeviceFacts,
        topics: Vec<TopicName>,
    ) -> Result<(DeviceIdentity, DeviceCredentials), StoreError> {
        let credentials = self.key().issue(app);
        let (provider, token) = (ProviderKind::Gateway, credentials.token.clone());
        let registration = Registration { platform, provider, token, former: None, facts, topics };
        let registration =
            registration.checked().map_err(|invalid| StoreError::Conflict(invalid.to_string()))?;
        let registered = self.store().register_some(app, &[registration], self.clock().now()).await?;
        let device = registered.first().ok_or(StoreError::NotFound("device"))?.device;
        Ok((DeviceIdentity { app, device }, credentials))
    }

    /// Offers a device another token and secret. The old ones stay valid until the device logs in with the new ones, so that a device that
    /// crashes before it has stored them is not locked out. Only the latest offer counts.
    pub async fn rotate(&self, identity: DeviceIdentity) -> Result<DeviceCredentials, StoreError> {
        let DeviceIdentity { app, device } = identity;
        self.note_device_change(device)?;
        let credentials = self.key().issue(app);
        self.store().offer_token(app, device, &credentials.token, self.clock().now()).await?;
        Ok(credentials)
    }

    /// Subscribes a device to a topic at its own request; `None` if only its app's backend may do that. All protocols use this method.
    pub async fn subscribe(
        &self,
        identity: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<Option<SubscriptionChange>, StoreError> {
        let DeviceIdentity { app, device } = identity;
        // An existing subscription by the backend may be requested again, as an MQTT session does at each connection.
        if topic.is_private() && !self.store().topics_of(app, device).await?.contains(topic) {
            return Ok(None);
        }
        self.join_topic(identity, topic).await.map(Some)
    }

    /// Removes a device that wants no more messages, and ends its session.
    pub async fn withdraw(&self, identity: DeviceIdentity) -> Result<(), StoreError> {
        let DeviceIdentity { app, device } = identity;
        let topics = self.store().topics_of(app, device).await.unwrap_or_default();
        let done = self.store().remove(app, Removal::Device(device, Precondition::none())).await;
        // Even if the store fails: the device wants no more messages.
        self.cut_off(device);
        done?;
        let unused = Removal::UnusedTopics(topics, self.clock().now());
        if let Err(error) = self.store().remove(app, unused).await {
            // The device is removed all the same.
            tracing::warn!(%error, %device, "the unused topics of a removed device could not be deleted");
        }
        Ok(())
    }

    /// Withdraws a message that a device has not received yet. A received or expired message stays unchanged. Fails with NotFound if there
    /// is no such message.
    pub async fn withdraw_message(
        &self,
        identity: DeviceIdentity,
        message: MessageId,
    ) -> Result<(), StoreError> {
        let DeviceIdentity { app, device } = identity;
        let now = self.clock().now();
        let change = Change::Act(app, message.into(), CampaignAction::Cancel, now);
        match self.store().change(change, None).await {
            // On a conflict all of it is settled; the waiting delivery is dropped below.
            Ok(_) | Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
        // After the cancellation, so that deliveries settled before it are found here.
        let pending = self.state().pending_of(identity).await?;
        let kind = ReceiptKind::Dropped(Reason::CampaignCanceled);
        let of_message = pending.iter().filter(|one| one.message == message);
        let receipts: Vec<_> = of_message.map(|one| Receipt { chunk: one.chunk, device, kind }).collect();
        if !receipts.is_empty() {
            self.store().receive(receipts, now).await?;
        }
        Ok(())
    }
}
