//! The last states of topics.

use std::collections::BTreeSet;
use std::sync::Arc;

use stentor_core::id::AppId;
use stentor_core::message::Message;
use stentor_core::name::TopicName;
use stentor_core::ports::store::StoreError;

use super::subscriptions::{MqttFilter, is_of_all_topics};
use crate::gateway::Gateway;

/// The last states to send for a SUBSCRIBE: each once, even if several of its filters match it.
#[derive(Debug)]
pub(super) enum LastStates {
    /// The last states of these topics.
    Topics(BTreeSet<TopicName>),
    /// The last states of all topics to which the device is subscribed.
    AllTopics,
}

impl Default for LastStates {
    fn default() -> Self {
        Self::Topics(BTreeSet::new())
    }
}

impl LastStates {
    /// Adds the topics that a filter matches.
    pub(super) fn add(&mut self, filter: &str, meant: MqttFilter) {
        match (&mut *self, meant) {
            (Self::Topics(topics), MqttFilter::Topic(topic)) => {
                topics.insert(topic);
            }
            (_, MqttFilter::Mailbox) if is_of_all_topics(filter) => *self = Self::AllTopics,
            (Self::AllTopics, _) | (_, MqttFilter::Mailbox) => {}
        }
    }
}

/// Returns the newest unexpired retained message of a topic.
pub(super) async fn retained_of(
    gateway: &Gateway,
    app: AppId,
    topic: &TopicName,
) -> Result<Option<Arc<Message>>, StoreError> {
    let newest = gateway.store().retained(app, topic, gateway.clock().now()).await?;
    let Some(newest) = newest else { return Ok(None) };
    Ok(gateway.state().messages(app, &[newest]).await?.into_iter().flatten().next())
}
