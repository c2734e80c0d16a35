//! Topics and subscriptions.

use stentor_core::id::DeviceId;
use stentor_core::limits::TARGET_DEVICES_MAX_COUNT;
use stentor_core::name::TopicName;

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
        Ok(self
            .store
            .remove_topic_if(caller.app(), &topic, &precondition(condition, TopicView::from))
            .await?)
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
        check_count("devices", devices.len())?;
        Ok(self.store.subscribe(caller.app(), &topic, &devices).await?.into())
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
        check_count("devices", devices.len())?;
        Ok(self.store.unsubscribe(caller.app(), &topic, &devices).await?.into())
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
        self.store.subscribe(caller.app(), &topic, &[device]).await?;
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
        self.store.unsubscribe(caller.app(), &topic, &[device]).await?;
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
