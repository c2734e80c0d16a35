//! The topics that a device joins and leaves by itself: so many changes a day, and nothing of it stays once nobody needs it.

use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{StoreError, SubscriptionChange};

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;

impl Gateway {
    /// Subscribes a device that asks for it; LimitReached when it has changed too much today.
    pub(crate) async fn join_topic(
        &self,
        DeviceIdentity { app, device }: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<SubscriptionChange, StoreError> {
        self.state().device_changes.check(device, self.clock().now())?;
        let change = self.store().subscribe(app, topic, &[device]).await?;
        // What it has already it may ask for as often as it connects.
        if change.changed > 0 {
            self.note_device_change(device)?;
        }
        Ok(change)
    }

    /// Takes a device's subscription away. A topic that nobody else has, and that has no last state, goes with it.
    pub async fn leave_topic(
        &self,
        DeviceIdentity { app, device }: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<SubscriptionChange, StoreError> {
        let change = self.store().unsubscribe(app, topic, &[device]).await?;
        if change.changed > 0 {
            let topics = std::slice::from_ref(topic);
            self.store().remove_unused_topics(app, topics, self.clock().now()).await?;
        }
        Ok(change)
    }

    /// Counts one change that a device makes; LimitReached when it was one too many today.
    pub(crate) fn note_device_change(&self, device: DeviceId) -> Result<(), StoreError> {
        self.state().device_changes.note(device, self.clock().now())
    }
}
