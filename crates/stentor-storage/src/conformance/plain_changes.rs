//! Changes without an entry in the audit trail and without a precondition, each as a method, for the setup of cases.

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
    Precondition, PruneTask, Registered, Removal, Store, StoreError,
    SubscriptionAction::{Subscribe, Unsubscribe},
    SubscriptionChange,
};
use stentor_core::schedule::{Schedule, ScheduleState};
use stentor_core::time::Timestamp;
use stentor_core::upstream::UpstreamWebhook;
use stentor_core::user::User;

type Done<T> = Result<T, StoreError>;

/// Declares the methods of [`PlainChanges`].
macro_rules! plain {
    ($($name:ident(&$store:ident $(, $arg:ident: $kind:ty)*) -> $result:ty { $($work:tt)+ })+) => {$(
        fn $name(&self $(, $arg: $kind)*) -> impl Future<Output = Done<$result>> + Send {
            let $store = self;
            async move { $($work)+ }
        }
    )+};
}

/// Each change of the port, without an entry and without a precondition.
pub trait PlainChanges: Store {
    plain! {
        plain(&store, change: Change) -> () { store.change(change, None).await.map(drop) }
        create_app(&store, app: &App) -> () { store.plain(Change::CreateApp(app.clone())).await }
        delete_app(&store, app: AppId) -> () { store.plain(Change::DeleteApp(app, Precondition::none())).await }
        create_key(&store, key: &ApiKey) -> () { store.plain(Change::CreateKey(key.clone())).await }
        delete_key(&store, app: AppId, key: KeyId) -> () { store.plain(Change::DeleteKey(app, key)).await }
        create_account(&store, account: &IssuedAccount) -> () {
            store.plain(Change::CreateAccount(account.clone())).await
        }
        delete_account(&store, app: AppId, id: KeyId) -> () { store.plain(Change::DeleteAccount(app, id)).await }
        put_credential(&store, credential: &Credential) -> () {
            store.plain(Change::PutCredential(credential.clone())).await
        }
        delete_credential(&store, app: AppId, provider: ProviderKind) -> () {
            store.plain(Change::DeleteCredential(app, provider)).await
        }
        put_webhook(&store, webhook: &UpstreamWebhook) -> () {
            store.plain(Change::PutUpstreamWebhook(webhook.clone())).await
        }
        delete_webhook(&store, app: AppId) -> () { store.plain(Change::DeleteUpstreamWebhook(app)).await }
        create_schedule(&store, schedule: &Schedule, idempotency: Option<IdempotentReply>) -> Idempotent<()> {
            let new = NewSchedule { schedule: schedule.clone(), idempotency, max_count: None };
            match store.change(Change::CreateSchedule(Box::new(new)), None).await? {
                Changed::Stored(stored) => Ok(stored),
                other => Err(unlike(&other)),
            }
        }
        delete_broken_schedule(&store, app: AppId, id: ScheduleId) -> () {
            store.plain(Change::DeleteBrokenSchedule(app, id)).await
        }
        set_schedule(
            &store, app: AppId, id: ScheduleId, state: ScheduleState, next_due: Option<Timestamp>
        ) -> Schedule {
            match store.change(Change::SetSchedule(app, id, state, next_due), None).await? {
                Changed::Schedule(schedule) => Ok(*schedule),
                other => Err(unlike(&other)),
            }
        }
        act(&store, app: AppId, id: CampaignId, action: CampaignAction, now: Timestamp) -> (Campaign, Vec<Ticket>) {
            match store.change(Change::Act(app, id, action, now), None).await? {
                Changed::Campaign(campaign, tickets) => Ok((*campaign, tickets)),
                other => Err(unlike(&other)),
            }
        }
        register(&store, app: AppId, given: &[Registration], now: Timestamp) -> Vec<Registered> {
            let mut registered = store.register_some(app, given, now).await?;
            while let Some(rest) = given.get(registered.len()..).filter(|rest| !rest.is_empty()) {
                registered.extend(store.register_some(app, rest, now).await?);
            }
            Ok(registered)
        }
        remove_device(&store, app: AppId, id: DeviceId) -> () {
            store.remove(app, Removal::Device(id, Precondition::none())).await
        }
        remove_topic(&store, app: AppId, topic: &TopicName) -> () {
            store.remove(app, Removal::Topic(topic.clone(), Precondition::none())).await
        }
        remove_user(&store, app: AppId, user: &ExternalId) -> () {
            store.remove(app, Removal::User(user.clone(), Precondition::none())).await
        }
        remove_group(&store, app: AppId, group: &GroupName) -> () {
            store.remove(app, Removal::Group(group.clone(), Precondition::none())).await
        }
        create_user(&store, app: AppId, user: &ExternalId, now: Timestamp) -> User {
            store.put_user(app, user, now, &Precondition::none()).await
        }
        create_group(&store, app: AppId, group: &GroupName, now: Timestamp) -> Group {
            store.put_group(app, group, now, &Precondition::none()).await
        }
        patch_device(&store, app: AppId, id: DeviceId, patch: &DevicePatch, now: Timestamp) -> Device {
            store.update_device(app, id, patch, now, &Precondition::none()).await
        }
        subscribe(&store, app: AppId, topic: &TopicName, devices: &[DeviceId]) -> SubscriptionChange {
            store.change_subscriptions(app, topic, devices, Subscribe).await
        }
        unsubscribe(&store, app: AppId, topic: &TopicName, devices: &[DeviceId]) -> SubscriptionChange {
            store.change_subscriptions(app, topic, devices, Unsubscribe).await
        }
        add_members(
            &store, app: AppId, group: &GroupName, members: &[Member], now: Timestamp
        ) -> SubscriptionChange {
            store.change_members(app, group, members, MemberAction::Add { max_count: None, now }).await
        }
        remove_members(&store, app: AppId, group: &GroupName, members: &[Member]) -> SubscriptionChange {
            store.change_members(app, group, members, MemberAction::Remove).await
        }
        put_channel(&store, agent: &str, channel: &Channel) -> () {
            store.change_channel(agent, ChannelChange::Put(channel.clone())).await.map(drop)
        }
        prune_campaigns(&store, ended_before: Timestamp, replies_before: Timestamp, limit: usize) -> u64 {
            let task = PruneTask::Campaigns { ended_before, replies_before };
            store.prune(task, limit).await.map(|pruned| pruned.count)
        }
    }
}

impl<T: Store + ?Sized> PlainChanges for T {}

fn unlike(changed: &Changed) -> StoreError {
    StoreError::Damaged(format!("a change came to {changed:?}"))
}
