//! Changes without an entry in the audit trail and without a precondition, each as a method, for the setup of cases.

use async_trait::async_trait;
use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, App, Credential};
use stentor_core::campaign::{Campaign, CampaignAction};
use stentor_core::chunk::Ticket;
use stentor_core::device::{Device, DevicePatch, ProviderKind, Registration};
use stentor_core::group::{Group, Member};
use stentor_core::id::{AppId, CampaignId, DeviceId, KeyId, ScheduleId};
use stentor_core::name::{ExternalId, GroupName, TopicName};
use stentor_core::ports::store::{
    Change, Changed, Channel, ChannelChange, Idempotent, IdempotentReply, MemberAction, NewSchedule,
    Precondition, PruneTask, Registered, Removal, Store, StoreError, SubscriptionAction, SubscriptionChange,
};
use stentor_core::schedule::{Schedule, ScheduleState};
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamWebhook;
use stentor_core::user::User;

type Done<T> = Result<T, StoreError>;

/// Each change of the port, without an entry and without a precondition.
#[async_trait]
pub trait PlainChanges: Store {
    async fn create_app(&self, app: &App) -> Done<()> {
        self.change(Change::CreateApp(app.clone()), None).await.map(drop)
    }

    async fn delete_app(&self, app: AppId) -> Done<()> {
        self.change(Change::DeleteApp(app, Precondition::none()), None).await.map(drop)
    }

    async fn create_key(&self, key: &ApiKey) -> Done<()> {
        self.change(Change::CreateKey(key.clone()), None).await.map(drop)
    }

    async fn delete_key(&self, app: AppId, key: KeyId) -> Done<()> {
        self.change(Change::DeleteKey(app, key), None).await.map(drop)
    }

    async fn create_account(&self, account: &IssuedAccount) -> Done<()> {
        self.change(Change::CreateAccount(account.clone()), None).await.map(drop)
    }

    async fn delete_account(&self, app: AppId, id: KeyId) -> Done<()> {
        self.change(Change::DeleteAccount(app, id), None).await.map(drop)
    }

    async fn put_credential(&self, credential: &Credential) -> Done<()> {
        self.change(Change::PutCredential(credential.clone()), None).await.map(drop)
    }

    async fn delete_credential(&self, app: AppId, provider: ProviderKind) -> Done<()> {
        self.change(Change::DeleteCredential(app, provider), None).await.map(drop)
    }

    async fn put_webhook(&self, webhook: &UpstreamWebhook) -> Done<()> {
        self.change(Change::PutUpstreamWebhook(webhook.clone()), None).await.map(drop)
    }

    async fn delete_webhook(&self, app: AppId) -> Done<()> {
        self.change(Change::DeleteUpstreamWebhook(app), None).await.map(drop)
    }

    async fn create_schedule(
        &self,
        schedule: &Schedule,
        idempotency: Option<IdempotentReply>,
    ) -> Done<Idempotent<()>> {
        let new = NewSchedule { schedule: schedule.clone(), idempotency, max_count: usize::MAX };
        match self.change(Change::CreateSchedule(Box::new(new)), None).await? {
            Changed::Stored(stored) => Ok(stored),
            other => Err(unlike(&other)),
        }
    }

    async fn delete_broken_schedule(&self, app: AppId, id: ScheduleId) -> Done<()> {
        self.change(Change::DeleteBrokenSchedule(app, id), None).await.map(drop)
    }

    async fn set_schedule(
        &self,
        app: AppId,
        id: ScheduleId,
        state: ScheduleState,
        next_due: Option<Timestamp>,
    ) -> Done<Schedule> {
        match self.change(Change::SetSchedule(app, id, state, next_due), None).await? {
            Changed::Schedule(schedule) => Ok(*schedule),
            other => Err(unlike(&other)),
        }
    }

    async fn act(
        &self,
        app: AppId,
        id: CampaignId,
        action: CampaignAction,
        now: Timestamp,
    ) -> Done<(Campaign, Vec<Ticket>)> {
        match self.change(Change::Act(app, id, action, now), None).await? {
            Changed::Campaign(campaign, tickets) => Ok((*campaign, tickets)),
            other => Err(unlike(&other)),
        }
    }

    /// Registers devices in as many transactions as needed.
    async fn register(&self, app: AppId, given: &[Registration], now: Timestamp) -> Done<Vec<Registered>> {
        let mut registered = self.register_some(app, given, now).await?;
        while let Some(rest) = given.get(registered.len()..).filter(|rest| !rest.is_empty()) {
            registered.extend(self.register_some(app, rest, now).await?);
        }
        Ok(registered)
    }

    async fn remove_device(&self, app: AppId, id: DeviceId) -> Done<()> {
        self.remove(app, Removal::Device(id, Precondition::none())).await
    }

    async fn remove_topic(&self, app: AppId, topic: &TopicName) -> Done<()> {
        self.remove(app, Removal::Topic(topic.clone(), Precondition::none())).await
    }

    async fn remove_user(&self, app: AppId, user: &ExternalId) -> Done<()> {
        self.remove(app, Removal::User(user.clone(), Precondition::none())).await
    }

    async fn remove_group(&self, app: AppId, group: &GroupName) -> Done<()> {
        self.remove(app, Removal::Group(group.clone(), Precondition::none())).await
    }

    async fn create_user(&self, app: AppId, user: &ExternalId, now: Timestamp) -> Done<User> {
        self.put_user(app, user, now, &Precondition::none()).await
    }

    async fn create_group(&self, app: AppId, group: &GroupName, now: Timestamp) -> Done<Group> {
        self.put_group(app, group, now, &Precondition::none()).await
    }

    async fn patch_device(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> Done<Device> {
        self.update_device(app, id, patch, now, &Precondition::none()).await
    }

    async fn subscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Done<SubscriptionChange> {
        self.change_subscriptions(app, topic, devices, SubscriptionAction::Subscribe).await
    }

    async fn unsubscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Done<SubscriptionChange> {
        self.change_subscriptions(app, topic, devices, SubscriptionAction::Unsubscribe).await
    }

    async fn add_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        now: Timestamp,
    ) -> Done<SubscriptionChange> {
        self.change_members(app, group, members, MemberAction::Add { max_count: None, now }).await
    }

    async fn remove_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
    ) -> Done<SubscriptionChange> {
        self.change_members(app, group, members, MemberAction::Remove).await
    }

    async fn put_channel(&self, agent: &str, channel: &Channel) -> Done<()> {
        self.change_channel(agent, ChannelChange::Put(channel.clone())).await.map(drop)
    }

    /// Deletes old campaigns and replies; returns the number of rows.
    async fn prune_campaigns(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Done<u64> {
        let task = PruneTask::Campaigns { ended_before, replies_before };
        self.prune(task, limit).await.map(|pruned| pruned.count)
    }
}

impl<T: Store + ?Sized> PlainChanges for T {}

fn unlike(changed: &Changed) -> StoreError {
    StoreError::Damaged(format!("a change came to {changed:?}"))
}
