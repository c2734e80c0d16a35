//! Devices that register themselves, and change their tokens.

use stentor_core::campaign::CampaignAction;
use stentor_core::device::{Platform, ProviderKind, Registration};
use stentor_core::id::{AppId, MessageId};
use stentor_core::name::{ExternalId, Locale, Tag, TimeZoneName, TopicName};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Change, Receipt, ReceiptKind, StoreError, SubscriptionChange};

use crate::gateway::Gateway;
use crate::identity::{DeviceCredentials, DeviceIdentity};

/// What a device tells of itself when it registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDetails {
    /// OS family.
    pub platform: Platform,
    /// Whose device it is.
    pub user: Option<ExternalId>,
    /// Language of its user.
    pub locale: Option<Locale>,
    /// Time zone of its user.
    pub time_zone: Option<TimeZoneName>,
    /// The device's tags.
    pub tags: Vec<Tag>,
    /// Topics to subscribe to.
    pub topics: Vec<TopicName>,
}

impl DeviceDetails {
    /// Starts with nothing optional.
    #[must_use]
    pub const fn new(platform: Platform) -> Self {
        let (user, locale, time_zone) = (None, None, None);
        Self { platform, user, locale, time_zone, tags: Vec::new(), topics: Vec::new() }
    }
}

impl Gateway {
    /// Registers a new device of an app; returns what it proves itself with from then on. Whether it may, the caller has found out.
    pub async fn register_device(
        &self,
        app: AppId,
        told: DeviceDetails,
    ) -> Result<(DeviceIdentity, DeviceCredentials), StoreError> {
        let credentials = self.key().issue(app);
        let DeviceDetails { platform, user, locale, time_zone, tags, topics } = told;
        let base = Registration::new(platform, ProviderKind::Gateway, credentials.token.clone());
        let registration = Registration { user, locale, time_zone, tags, topics, ..base };
        let registration =
            registration.checked().map_err(|invalid| StoreError::Conflict(invalid.to_string()))?;
        let registered = self.store().register(app, &[registration], self.clock().now()).await?;
        let device = registered.first().ok_or(StoreError::NotFound("device"))?.device;
        Ok((DeviceIdentity { app, device }, credentials))
    }

    /// Offers a device another token and secret. The old ones are good until the device logs in with the new ones, so that one
    /// that crashes before it has kept them is not locked out; then they open nothing. Only the latest offer counts.
    pub async fn rotate(&self, identity: DeviceIdentity) -> Result<DeviceCredentials, StoreError> {
        let DeviceIdentity { app, device } = identity;
        self.note_device_change(device)?;
        let credentials = self.key().issue(app);
        self.store().offer_token(app, device, &credentials.token, self.clock().now()).await?;
        Ok(credentials)
    }

    /// Subscribes a device that asks for it to a topic; `None` where only its app's backend may do that. Every protocol asks here.
    pub async fn subscribe(
        &self,
        identity: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<Option<SubscriptionChange>, StoreError> {
        let DeviceIdentity { app, device } = identity;
        // What the backend has subscribed it to, it may ask for again: a session of MQTT does so with each connection.
        if topic.is_private() && !self.store().topics_of(app, device).await?.contains(topic) {
            return Ok(None);
        }
        self.join_topic(identity, topic).await.map(Some)
    }

    /// Removes a device that wants no messages any more, and ends its session.
    pub async fn withdraw(&self, identity: DeviceIdentity) -> Result<(), StoreError> {
        let DeviceIdentity { app, device } = identity;
        let topics = self.store().topics_of(app, device).await.unwrap_or_default();
        let done = self.store().remove_device(app, device).await;
        // Whatever the store says: it wants no messages any more.
        self.cut_off(device);
        done?;
        if let Err(error) = self.store().remove_unused_topics(app, &topics, self.clock().now()).await {
            // It is gone all the same.
            tracing::warn!(%error, %device, "topics that only a removed device had are left");
        }
        Ok(())
    }

    /// Takes back a message that a device has not got yet. One that it has got, or that has expired, changes nothing; NotFound
    /// when there is none.
    pub async fn withdraw_message(
        &self,
        identity: DeviceIdentity,
        message: MessageId,
    ) -> Result<(), StoreError> {
        let DeviceIdentity { app, device } = identity;
        let now = self.clock().now();
        let change = Change::Act(app, message.into(), CampaignAction::Cancel, now);
        match self.store().change(change, None).await {
            // All of it is settled: what waits for its device is dropped there.
            Ok(_) | Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
        // After the cancel: what was settled until then is found here.
        let pending = self.state().pending.pending(identity).await?;
        let kind = ReceiptKind::Dropped(Reason::CampaignCanceled);
        let of_message = pending.iter().filter(|one| one.message == message);
        let receipts: Vec<_> = of_message.map(|one| Receipt { chunk: one.chunk, device, kind }).collect();
        if !receipts.is_empty() {
            self.store().receive(receipts, now).await?;
        }
        Ok(())
    }
}
