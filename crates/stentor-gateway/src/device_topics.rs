//! Subscriptions that a device changes by itself. Their daily number is limited, and unused topics are removed.

use stentor_core::id::DeviceId;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Removal, StoreError, SubscriptionAction, SubscriptionChange};

use crate::gateway::Gateway;
use crate::identity::DeviceIdentity;

impl Gateway {
    /// Subscribes a device at its own request; fails with LimitReached if it has changed too much today.
    pub(crate) async fn join_topic(
        &self,
        DeviceIdentity { app, device }: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<SubscriptionChange, StoreError> {
        self.state().device_changes.check(device, self.clock().now())?;
        let change =
            self.store().change_subscriptions(app, topic, &[device], SubscriptionAction::Subscribe).await?;
        // Repeated requests for an existing subscription, as at each connection, do not count.
        if change.changed > 0 {
            self.note_device_change(device)?;
        }
        Ok(change)
    }

    /// Removes a device's subscription. A topic without other subscribers and without a last state is removed with it.
    pub async fn leave_topic(
        &self,
        DeviceIdentity { app, device }: DeviceIdentity,
        topic: &TopicName,
    ) -> Result<SubscriptionChange, StoreError> {
        let change =
            self.store().change_subscriptions(app, topic, &[device], SubscriptionAction::Unsubscribe).await?;
        if change.changed > 0 {
            let unused = Removal::UnusedTopics(vec![topic.clone()], self.clock().now());
            self.store().remove(app, unused).await?;
        }
        Ok(change)
    }

    /// Counts one change by a device; fails with LimitReached if it exceeds the daily limit.
    pub(crate) fn note_device_change(&self, device: DeviceId) -> Result<(), StoreError> {
        self.state().device_changes.note(device, self.clock().now())
    }
}
