//! Topics and subscriptions.

use stentor_core::id::DeviceId;
use stentor_core::limits::TARGET_DEVICES_MAX_COUNT;
use stentor_core::name::TopicName;
use stentor_core::ports::store::{Removal, SubscriptionAction};

use super::long_list::LongList;
use super::precondition::precondition;
use super::{Caller, Problem, Service, ServiceResult};
use crate::contract::devices::DeviceTopics;
use crate::contract::table::{
    ListDeviceTopics, ListTopics, RemoveTopic, ShowTopic, Subscribe, SubscribeDevice, Unsubscribe,
    UnsubscribeDevice,
};
use crate::contract::topics::{SubscriptionChangeView, SubscriptionRequest, TopicList, TopicView};
use crate::contract::{After, Conditional, Serve};

impl Serve<ListTopics> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<TopicList> {
        let (limit, mut after) = (page.limit()?, page.name(TopicName::new)?);
        caller.allow::<ListTopics>()?;
        let mut list = LongList::new(limit);
        while let Some(limit) = list.wanted() {
            let found = self.store.topics(caller.app(), after.as_ref(), limit).await?;
            after = found.last().map(|last| last.name.clone()).or(after);
            list.add(limit, found.into_iter().map(|one| (one.name.to_string(), TopicView::from(one))));
        }
        let (topics, next) = list.page();
        Ok(TopicList { topics, next })
    }
}

impl Serve<ShowTopic> for Service {
    async fn serve(&self, caller: Caller, topic: TopicName, (): ()) -> ServiceResult<TopicView> {
        caller.allow::<ShowTopic>()?;
        Ok(self.store.topic(caller.app(), &topic).await?.into())
    }
}

impl Serve<RemoveTopic> for Service {
    async fn serve(
        &self,
        caller: Caller,
        topic: TopicName,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        caller.allow::<RemoveTopic>()?;
        let removal = Removal::Topic(topic, precondition(condition, TopicView::from));
        Ok(self.store.remove(caller.app(), removal).await?)
    }
}

impl Serve<Subscribe> for Service {
    async fn serve(
        &self,
        caller: Caller,
        topic: TopicName,
        SubscriptionRequest { devices }: SubscriptionRequest,
    ) -> ServiceResult<SubscriptionChangeView> {
        caller.allow::<Subscribe>()?;
        self.change_subscriptions(caller, &topic, &devices, SubscriptionAction::Subscribe).await
    }
}

impl Serve<Unsubscribe> for Service {
    async fn serve(
        &self,
        caller: Caller,
        topic: TopicName,
        SubscriptionRequest { devices }: SubscriptionRequest,
    ) -> ServiceResult<SubscriptionChangeView> {
        caller.allow::<Unsubscribe>()?;
        self.change_subscriptions(caller, &topic, &devices, SubscriptionAction::Unsubscribe).await
    }
}

impl Service {
    async fn change_subscriptions(
        &self,
        caller: Caller,
        topic: &TopicName,
        devices: &[DeviceId],
        action: SubscriptionAction,
    ) -> ServiceResult<SubscriptionChangeView> {
        check_count("devices", devices.len())?;
        Ok(self.store.change_subscriptions(caller.app(), topic, devices, action).await?.into())
    }
}

impl Serve<ListDeviceTopics> for Service {
    async fn serve(&self, caller: Caller, device: DeviceId, (): ()) -> ServiceResult<DeviceTopics> {
        caller.allow::<ListDeviceTopics>()?;
        // A device of another app counts as not found, even if it has topics.
        self.store.device(caller.app(), device).await?;
        let topics = self.store.topics_of(caller.app(), device).await?;
        Ok(DeviceTopics { topics: topics.into_iter().map(String::from).collect() })
    }
}

impl Serve<SubscribeDevice> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (device, topic): (DeviceId, TopicName),
        (): (),
    ) -> ServiceResult<()> {
        caller.allow::<SubscribeDevice>()?;
        self.store.device(caller.app(), device).await?;
        self.change_subscriptions(caller, &topic, &[device], SubscriptionAction::Subscribe).await?;
        Ok(())
    }
}

impl Serve<UnsubscribeDevice> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (device, topic): (DeviceId, TopicName),
        (): (),
    ) -> ServiceResult<()> {
        caller.allow::<UnsubscribeDevice>()?;
        self.store.device(caller.app(), device).await?;
        self.change_subscriptions(caller, &topic, &[device], SubscriptionAction::Unsubscribe).await?;
        Ok(())
    }
}

/// Rejects empty lists and lists that are too long.
pub(super) fn check_count(field: &str, count: usize) -> ServiceResult<()> {
    if (1..=TARGET_DEVICES_MAX_COUNT).contains(&count) {
        return Ok(());
    }
    Err(Problem::field(field, format!("must name 1 to {TARGET_DEVICES_MAX_COUNT}, not {count}")))
}
