//! The last state of a topic.

use std::sync::Arc;

use stentor_core::campaign::{Campaign, CampaignState};
use stentor_core::id::{AppId, MessageId};
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
    let is_live = |campaign: &Campaign| campaign.due_at <= now && now < campaign.expires_at;
    let newest = gateway.store().campaigns(app, page).await?.into_iter();
    let live = newest.filter(|campaign| is_live(campaign) && campaign.state != CampaignState::Canceled);
    let live: Vec<MessageId> = live.map(|campaign| campaign.id.into()).collect();
    let target = Target::Topic(topic.clone());
    let messages = gateway.state().messages(app, &live).await?.into_iter().flatten();
    Ok(messages.into_iter().find(|message| message.spec.target == target && is_retained(message)))
}
