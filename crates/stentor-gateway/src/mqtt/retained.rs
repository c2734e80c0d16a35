//! The last state of a topic.

use std::sync::Arc;

use stentor_core::campaign::CampaignState;
use stentor_core::id::AppId;
use stentor_core::message::Message;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Page, StoreError};
use stentor_core::target::Target;

use super::content::is_retained;
use crate::gateway::Gateway;

/// The newest messages of an app among which the last state of a topic is looked for.
const LOOK_BACK_MAX_COUNT: usize = 200;

/// Returns the newest live message to a topic that was sent to be retained, among the app's newest ones. The ledger has no index of
/// them, so that older ones are not found.
pub(super) async fn retained_of(
    gateway: &Gateway,
    app: AppId,
    topic: &TopicName,
) -> Result<Option<Arc<Message>>, StoreError> {
    let now = gateway.clock().now();
    let page = Page { after: 0, limit: LOOK_BACK_MAX_COUNT };
    for campaign in gateway.store().campaigns(app, page).await? {
        let is_live = campaign.due_at <= now && now < campaign.expires_at;
        if !is_live || campaign.state == CampaignState::Canceled {
            continue;
        }
        let Some(message) = gateway.accepted_message(app, campaign.id.into()).await? else { continue };
        if message.spec.target == Target::Topic(topic.clone()) && is_retained(&message) {
            return Ok(Some(message));
        }
    }
    Ok(None)
}
