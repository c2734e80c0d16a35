//! The last state of a topic.

use std::sync::Arc;

use stentor_core::id::AppId;
use stentor_core::message::Message;
use stentor_core::name::TopicName;
use stentor_core::ports::store::StoreError;

use crate::gateway::Gateway;

/// Returns the newest live message to a topic that was sent to be retained.
pub(super) async fn retained_of(
    gateway: &Gateway,
    app: AppId,
    topic: &TopicName,
) -> Result<Option<Arc<Message>>, StoreError> {
    let newest = gateway.store().retained(app, topic, gateway.clock().now()).await?;
    let Some(newest) = newest else { return Ok(None) };
    Ok(gateway.state().messages(app, &[newest]).await?.into_iter().flatten().next())
}
