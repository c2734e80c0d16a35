//! Topics and subscriptions.

use stentor_core::app::Scope::{Register, Send};
use stentor_core::id::DeviceId;
use stentor_core::limits::TARGET_DEVICES_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::SubscriptionChange;
use stentor_core::topic::TopicSummary;

use super::{Caller, Problem, Service, ServiceResult};

impl Service {
    /// Lists topics by name.
    pub async fn topics(
        &self,
        caller: Caller,
        after: Option<&TopicName>,
        limit: usize,
    ) -> ServiceResult<Vec<TopicSummary>> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.topics(caller.app(), after, limit).await?)
    }

    /// Returns one topic.
    pub async fn topic(&self, caller: Caller, topic: &TopicName) -> ServiceResult<TopicSummary> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.topic(caller.app(), topic).await?)
    }

    /// Removes a topic with its subscriptions.
    pub async fn remove_topic(&self, caller: Caller, topic: &TopicName) -> ServiceResult<()> {
        caller.require(Register)?;
        Ok(self.store.remove_topic(caller.app(), topic).await?)
    }

    /// Subscribes devices; at most 1,000 at once.
    pub async fn subscribe(
        &self,
        caller: Caller,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> ServiceResult<SubscriptionChange> {
        caller.require(Register)?;
        check_count("devices", devices.len())?;
        Ok(self.store.subscribe(caller.app(), topic, devices).await?)
    }

    /// Takes subscriptions away; at most 1,000 at once.
    pub async fn unsubscribe(
        &self,
        caller: Caller,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> ServiceResult<SubscriptionChange> {
        caller.require(Register)?;
        check_count("devices", devices.len())?;
        Ok(self.store.unsubscribe(caller.app(), topic, devices).await?)
    }

    /// Lists a device's topics.
    pub async fn topics_of(&self, caller: Caller, device: DeviceId) -> ServiceResult<Vec<TopicName>> {
        caller.require_any(&[Register, Send])?;
        self.store.device(caller.app(), device).await?;
        Ok(self.store.topics_of(caller.app(), device).await?)
    }

    /// Subscribes one device, which must exist.
    pub async fn subscribe_device(
        &self,
        caller: Caller,
        device: DeviceId,
        topic: &TopicName,
    ) -> ServiceResult<()> {
        caller.require(Register)?;
        self.store.device(caller.app(), device).await?;
        self.store.subscribe(caller.app(), topic, &[device]).await?;
        Ok(())
    }

    /// Takes one device's subscription away; the device must exist.
    pub async fn unsubscribe_device(
        &self,
        caller: Caller,
        device: DeviceId,
        topic: &TopicName,
    ) -> ServiceResult<()> {
        caller.require(Register)?;
        self.store.device(caller.app(), device).await?;
        self.store.unsubscribe(caller.app(), topic, &[device]).await?;
        Ok(())
    }
}

/// Refuses empty and too long lists.
pub(super) fn check_count(field: &str, count: usize) -> ServiceResult<()> {
    if (1..=TARGET_DEVICES_MAX_COUNT).contains(&count) {
        return Ok(());
    }
    Err(Problem::field(field, format!("must name 1 to {TARGET_DEVICES_MAX_COUNT}, not {count}")))
}
