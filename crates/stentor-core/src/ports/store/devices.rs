use async_trait::async_trait;

use super::{Page, Precondition, StoreError};
use crate::device::{Device, DeviceKeys, DevicePatch, DeviceState, ProviderKind, PushToken, Registration};
use crate::group::{Group, Member};
use crate::id::{AppId, DeviceId};
use crate::name::{ExternalId, GroupName, Tag, TopicName};
use crate::time::Timestamp;
use crate::topic::TopicSummary;
use crate::user::User;

/// What a registration came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// The device.
    pub device: DeviceId,
    /// False when the token was known.
    pub created: bool,
}

/// Which devices to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceFilter {
    /// Only this provider's.
    pub provider: Option<ProviderKind>,
    /// Only this person's.
    pub user: Option<ExternalId>,
    /// Only with this mark.
    pub tag: Option<Tag>,
    /// Only those that are here; without it all but unlisted ones.
    pub state: Option<DeviceState>,
}

impl DeviceFilter {
    /// Returns whether a device that is here is meant.
    #[must_use]
    pub fn means(&self, state: DeviceState, listed: bool) -> bool {
        self.state.map_or(listed, |meant| meant == state)
    }
}

/// What a change of subscriptions or of members came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// Subscriptions or members added or removed.
    pub changed: u64,
    /// Devices and people for whom nothing was to do.
    pub unchanged: u64,
    /// Devices that are not this app's, in the order in which they were named.
    pub unknown_devices: Vec<DeviceId>,
    /// People whom this app does not know, in the order in which they were named.
    pub unknown_users: Vec<ExternalId>,
}

impl SubscriptionChange {
    /// Notes what became of one device: whether something changed for it, or nothing where it is not known.
    pub fn note_device(&mut self, device: DeviceId, changed: Option<bool>) {
        match changed {
            Some(changed) => self.note_known(changed),
            None => self.unknown_devices.push(device),
        }
    }

    /// Notes what became of one member, like [`Self::note_device`].
    pub fn note_member(&mut self, member: &Member, changed: Option<bool>) {
        match (member, changed) {
            (Member::Device(device), _) => self.note_device(*device, changed),
            (Member::User(_), Some(changed)) => self.note_known(changed),
            (Member::User(user), None) => self.unknown_users.push(user.clone()),
        }
    }

    /// Counts devices and people that are not known.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        (self.unknown_devices.len() + self.unknown_users.len()) as u64
    }

    const fn note_known(&mut self, changed: bool) {
        match changed {
            true => self.changed += 1,
            false => self.unchanged += 1,
        }
    }
}

/// What is asked of devices.
#[async_trait]
pub trait DeviceStore: Send + Sync {
    /// Registers the first of some devices in one transaction, in order: as many as it can take without holding others up,
    /// one at least. A known (provider, token) of the app is updated: fields that are given replace those kept (no tags: as
    /// they are), topics are added, a retired or unlisted device is revived and listed, `token_since` becomes `now`. Reply i
    /// belongs to registration i; what has no reply is to be given again.
    async fn register_some(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError>;

    /// Refuses what [`DeviceStore::register_some`] would refuse, and keeps nothing; returns how many were looked at.
    async fn validate_some_registrations(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<usize, StoreError>;

    /// Registers devices in as many transactions as it takes; what was registered before a refusal stays.
    async fn register(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError> {
        let mut registered = self.register_some(app, registrations, now).await?;
        while let Some(rest) = registrations.get(registered.len()..).filter(|rest| !rest.is_empty()) {
            registered.extend(self.register_some(app, rest, now).await?);
        }
        Ok(registered)
    }

    /// Returns one device.
    async fn device(&self, app: AppId, id: DeviceId) -> Result<Device, StoreError>;

    /// Finds the device that holds each token at one push service, unlisted and retired ones too; `None` where none does.
    async fn holders(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
    ) -> Result<Vec<Option<Device>>, StoreError>;

    /// Lists devices in order of id, starting after the page's cursor; where the filter names no state, retired ones too and
    /// unlisted ones not.
    async fn devices(&self, app: AppId, filter: &DeviceFilter, page: Page)
    -> Result<Vec<Device>, StoreError>;

    /// Changes one device; a token that another device of the app holds is a Conflict.
    async fn update_device(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> Result<Device, StoreError> {
        self.update_device_if(app, id, patch, now, &Precondition::none()).await
    }

    /// Changes one device of which a precondition holds.
    async fn update_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        precondition: &Precondition<Device>,
    ) -> Result<Device, StoreError>;

    /// Keeps the keys of one device of the gateway in place of those that it told before; `None` leaves it without any.
    async fn put_device_keys(
        &self,
        app: AppId,
        id: DeviceId,
        keys: Option<&DeviceKeys>,
    ) -> Result<(), StoreError>;

    /// Removes one device with its subscriptions and memberships.
    async fn remove_device(&self, app: AppId, id: DeviceId) -> Result<(), StoreError> {
        self.remove_device_if(app, id, &Precondition::none()).await
    }

    /// Removes one device of which a precondition holds.
    async fn remove_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        precondition: &Precondition<Device>,
    ) -> Result<(), StoreError>;
}

/// What is asked of topics.
#[async_trait]
pub trait TopicStore: Send + Sync {
    /// Subscribes devices to a topic, which exists from then on; LimitReached when one would exceed its topics. Many take
    /// more than one transaction.
    async fn subscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Takes subscriptions away.
    async fn unsubscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Lists topics by name, after the one given.
    async fn topics(
        &self,
        app: AppId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicSummary>, StoreError>;

    /// Returns one topic.
    async fn topic(&self, app: AppId, topic: &TopicName) -> Result<TopicSummary, StoreError>;

    /// Removes a topic; its subscriptions go by and by.
    async fn remove_topic(&self, app: AppId, topic: &TopicName) -> Result<(), StoreError> {
        self.remove_topic_if(app, topic, &Precondition::none()).await
    }

    /// Removes a topic of which a precondition holds.
    async fn remove_topic_if(
        &self,
        app: AppId,
        topic: &TopicName,
        precondition: &Precondition<TopicSummary>,
    ) -> Result<(), StoreError>;

    /// Removes those of some topics that have neither subscribers nor a message that is retained, as a device leaves them behind that made
    /// them; returns how many went.
    async fn remove_unused_topics(
        &self,
        app: AppId,
        topics: &[TopicName],
        now: Timestamp,
    ) -> Result<u64, StoreError>;

    /// Lists a device's topics by name.
    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError>;
}

/// What is asked of people.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Makes a person known; harmless when known. Registering a device with a user does the same by itself.
    async fn put_user(&self, app: AppId, user: &ExternalId, now: Timestamp) -> Result<User, StoreError> {
        self.put_user_if(app, user, now, &Precondition::none()).await
    }

    /// Makes a person known where a precondition holds of the person, or of nobody.
    async fn put_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        now: Timestamp,
        precondition: &Precondition<User>,
    ) -> Result<User, StoreError>;

    /// Returns a person with at most 1,000 devices.
    async fn user(&self, app: AppId, user: &ExternalId) -> Result<User, StoreError>;

    /// Lists people by external id, after the one given, without devices.
    async fn users(
        &self,
        app: AppId,
        after: Option<&ExternalId>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError>;

    /// Forgets a person; the devices stay, without owner. What is much of it goes by and by.
    async fn remove_user(&self, app: AppId, user: &ExternalId) -> Result<(), StoreError> {
        self.remove_user_if(app, user, &Precondition::none()).await
    }

    /// Forgets a person of whom a precondition holds.
    async fn remove_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        precondition: &Precondition<User>,
    ) -> Result<(), StoreError>;
}

/// What is asked of groups.
#[async_trait]
pub trait GroupStore: Send + Sync {
    /// Makes a group; harmless when it exists.
    async fn put_group(&self, app: AppId, group: &GroupName, now: Timestamp) -> Result<Group, StoreError> {
        self.put_group_if(app, group, now, &Precondition::none()).await
    }

    /// Makes a group where a precondition holds of the group, or of none.
    async fn put_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        now: Timestamp,
        precondition: &Precondition<Group>,
    ) -> Result<Group, StoreError>;

    /// Returns a group.
    async fn group(&self, app: AppId, group: &GroupName) -> Result<Group, StoreError>;

    /// Lists groups by name, after the one given.
    async fn groups(
        &self,
        app: AppId,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<Group>, StoreError>;

    /// Lists members in order, after the one given.
    async fn members(
        &self,
        app: AppId,
        group: &GroupName,
        after: Option<&Member>,
        limit: usize,
    ) -> Result<Vec<Member>, StoreError>;

    /// Adds members; unknown devices are named, unknown people are made known. LimitReached when one would be in too many
    /// groups, or when one is new and the group had more than `max_count` members then; in both cases nobody is added.
    async fn add_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        max_count: Option<usize>,
        now: Timestamp,
    ) -> Result<SubscriptionChange, StoreError>;

    /// Takes members out.
    async fn remove_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Removes a group. What is much of it goes by and by.
    async fn remove_group(&self, app: AppId, group: &GroupName) -> Result<(), StoreError> {
        self.remove_group_if(app, group, &Precondition::none()).await
    }

    /// Removes a group of which a precondition holds.
    async fn remove_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        precondition: &Precondition<Group>,
    ) -> Result<(), StoreError>;
}
