use std::collections::BTreeSet;
use std::ops::Bound;

use async_trait::async_trait;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Precondition, StoreError, SubscriptionChange, TopicStore};
use stentor_core::time::Timestamp;
use stentor_core::topic::TopicSummary;

use super::MemoryStore;
use super::state::AppRow;

#[async_trait]
impl TopicStore for MemoryStore {
    async fn subscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        self.lock().app_mut(app)?.subscribe(topic, devices)
    }

    async fn unsubscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        self.lock().app_mut(app)?.unsubscribe(topic, devices)
    }

    async fn topics(
        &self,
        app: AppId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicSummary>, StoreError> {
        let state = self.lock();
        let topics = state.app(app)?.topics.range((after_name(after), Bound::Unbounded));
        Ok(topics.take(limit).map(|(name, devices)| summary(name, devices)).collect())
    }

    async fn topic(&self, app: AppId, topic: &TopicName) -> Result<TopicSummary, StoreError> {
        self.lock().app(app)?.topic(topic)
    }

    async fn remove_topic_if(
        &self,
        app: AppId,
        topic: &TopicName,
        precondition: &Precondition<TopicSummary>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| row.topic(topic).map(Some))?;
        row.topics.remove(topic).ok_or(StoreError::NotFound("topic"))?;
        row.subscriptions.values_mut().for_each(|topics| _ = topics.remove(topic));
        Ok(())
    }

    async fn remove_unused_topics(
        &self,
        app: AppId,
        topics: &[TopicName],
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut gone = 0;
        let mut state = self.lock();
        for topic in topics {
            let is_retained = state.retained(app, topic, now).is_some();
            let all = &mut state.app_mut(app)?.topics;
            if !is_retained && all.get(topic).is_some_and(BTreeSet::is_empty) {
                all.remove(topic);
                gone += 1;
            }
        }
        Ok(gone)
    }

    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        row.device(device)?;
        Ok(row.subscriptions.get(&device).into_iter().flatten().cloned().collect())
    }
}

/// Starts a listing after a name, or at the front.
pub(super) fn after_name<T>(after: Option<&T>) -> Bound<&T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

pub(super) fn too_many() -> StoreError {
    StoreError::LimitReached(format!("a device has at most {TOPICS_PER_DEVICE_MAX_COUNT} topics"))
}

fn summary(name: &TopicName, devices: &BTreeSet<DeviceId>) -> TopicSummary {
    TopicSummary { name: name.clone(), device_count: devices.len() as u64 }
}

impl AppRow {
    fn topic(&self, topic: &TopicName) -> Result<TopicSummary, StoreError> {
        let devices = self.topics.get(topic).ok_or(StoreError::NotFound("topic"))?;
        Ok(summary(topic, devices))
    }

    /// Subscribes a known device; returns whether it was not before.
    pub(super) fn subscribe_one(&mut self, topic: &TopicName, device: DeviceId) -> bool {
        self.subscriptions.entry(device).or_default().insert(topic.clone());
        self.topics.entry(topic.clone()).or_default().insert(device)
    }

    fn subscribe(
        &mut self,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        let is_full = |device| {
            let topics = self.subscriptions.get(device);
            topics
                .is_some_and(|topics| topics.len() >= TOPICS_PER_DEVICE_MAX_COUNT && !topics.contains(topic))
        };
        if devices.iter().any(is_full) {
            return Err(too_many());
        }
        self.topics.entry(topic.clone()).or_default();
        let mut change = SubscriptionChange::default();
        for device in devices {
            let is_known = self.devices.contains_key(device);
            let changed = is_known.then(|| self.subscribe_one(topic, *device));
            change.note_device(*device, changed);
        }
        Ok(change)
    }

    fn unsubscribe(
        &mut self,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError> {
        let subscribed = self.topics.get_mut(topic).ok_or(StoreError::NotFound("topic"))?;
        let mut change = SubscriptionChange::default();
        for device in devices {
            let changed = self.devices.contains_key(device).then(|| subscribed.remove(device));
            if changed == Some(true) {
                self.subscriptions.entry(*device).or_default().remove(topic);
            }
            change.note_device(*device, changed);
        }
        Ok(change)
    }
}
