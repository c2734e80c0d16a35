//! The ports for devices, topics, users and groups.

use async_trait::async_trait;

use super::{Page, Precondition, StoreError};
use crate::device::{Device, DeviceKeys, DevicePatch, DeviceState, ProviderKind, PushToken, Registration};
use crate::group::{Group, Member};
use crate::id::{AppId, DeviceId};
use crate::name::{ExternalId, GroupName, Tag, TopicName};
use crate::time::Timestamp;
use crate::topic::TopicSummary;
use crate::user::User;

/// The result of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// The device.
    pub device: DeviceId,
    /// False when the token was known.
    pub created: bool,
}

/// The filter of a list of devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceFilter {
    /// Only devices of this provider.
    pub provider: Option<ProviderKind>,
    /// Only devices of this user.
    pub user: Option<ExternalId>,
    /// Only devices with this tag.
    pub tag: Option<Tag>,
    /// Only devices in this state; without it all except unlisted ones.
    pub state: Option<DeviceState>,
}

impl DeviceFilter {
    /// Returns true if a device in this state matches.
    #[must_use]
    pub fn means(&self, state: DeviceState, listed: bool) -> bool {
        self.state.map_or(listed, |meant| meant == state)
    }
}

/// The result of a change of subscriptions or members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// Subscriptions or members added or removed.
    pub changed: u64,
    /// Devices and users that needed no change.
    pub unchanged: u64,
    /// Devices that do not belong to this app, in the order of the request.
    pub unknown_devices: Vec<DeviceId>,
    /// Users unknown to this app, in the order of the request.
    pub unknown_users: Vec<ExternalId>,
}

impl SubscriptionChange {
    /// Records the result for one device: changed or not, or `None` if the device is unknown.
    pub fn note_device(&mut self, device: DeviceId, changed: Option<bool>) {
        match changed {
            Some(changed) => self.note_known(changed),
            None => self.unknown_devices.push(device),
        }
    }

    /// Records the result for one member, like [`Self::note_device`].
    pub fn note_member(&mut self, member: &Member, changed: Option<bool>) {
        match (member, changed) {
            (Member::Device(device), _) => self.note_device(*device, changed),
            (Member::User(_), Some(changed)) => self.note_known(changed),
            (Member::User(user), None) => self.unknown_users.push(user.clone()),
        }
    }

    /// Counts unknown devices and users.
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

/// Operations on devices.
#[async_trait]
pub trait DeviceStore: Send + Sync {
    /// Registers devices in one transaction, in order, as many of the first as it can without delaying other work, but at least one. A
    /// known (provider, token) of the app is updated: given fields replace stored ones (no tags: they stay), topics are added, a retired or
    /// unlisted device is revived and listed, `token_since` becomes `now`. Reply i belongs to registration i; registrations without a reply
    /// must be passed again.
    async fn register_some(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError>;

    /// Fails if [`DeviceStore::register_some`] would, and stores nothing; returns the number of checked registrations.
    async fn validate_some_registrations(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<usize, StoreError>;

    /// Registers devices in as many transactions as needed; devices registered before a refusal stay.
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

    /// Finds the device that holds each token at one push service, including unlisted and retired ones; `None` if no device does.
    async fn holders(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
    ) -> Result<Vec<Option<Device>>, StoreError>;

    /// Lists devices in order of id, starting after the page's cursor. A filter without a state includes retired devices and excludes
    /// unlisted ones.
    async fn devices(&self, app: AppId, filter: &DeviceFilter, page: Page)
    -> Result<Vec<Device>, StoreError>;

    /// Changes one device. Fails with Conflict if another device of the app holds the new token.
    async fn update_device(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> Result<Device, StoreError> {
        self.update_device_if(app, id, patch, now, &Precondition::none()).await
    }

    /// Changes one device if a precondition holds.
    async fn update_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        precondition: &Precondition<Device>,
    ) -> Result<Device, StoreError>;

    /// Replaces the keys of one device of the gateway; `None` removes them.
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

    /// Removes one device if a precondition holds.
    async fn remove_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        precondition: &Precondition<Device>,
    ) -> Result<(), StoreError>;
}

/// Operations on topics.
#[async_trait]
pub trait TopicStore: Send + Sync {
    /// Subscribes devices to a topic, which is created if needed; LimitReached if a device would exceed its limit of topics. Many devices
    /// take more than one transaction.
    async fn subscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Removes subscriptions.
    async fn unsubscribe(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Lists topics by name, after a given one.
    async fn topics(
        &self,
        app: AppId,
        after: Option<&TopicName>,
        limit: usize,
    ) -> Result<Vec<TopicSummary>, StoreError>;

    /// Returns one topic.
    async fn topic(&self, app: AppId, topic: &TopicName) -> Result<TopicSummary, StoreError>;

    /// Removes a topic; its subscriptions are removed gradually.
    async fn remove_topic(&self, app: AppId, topic: &TopicName) -> Result<(), StoreError> {
        self.remove_topic_if(app, topic, &Precondition::none()).await
    }

    /// Removes a topic if a precondition holds.
    async fn remove_topic_if(
        &self,
        app: AppId,
        topic: &TopicName,
        precondition: &Precondition<TopicSummary>,
    ) -> Result<(), StoreError>;

    /// Removes those of the given topics that have neither subscribers nor a retained message, as left behind by a device that created
    /// them. Returns the number of removed topics.
    async fn remove_unused_topics(
        &self,
        app: AppId,
        topics: &[TopicName],
        now: Timestamp,
    ) -> Result<u64, StoreError>;

    /// Lists a device's topics by name.
    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError>;
}

/// Operations on users.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Creates a user; harmless if the user exists. Registering a device with a user has the same effect.
    async fn put_user(&self, app: AppId, user: &ExternalId, now: Timestamp) -> Result<User, StoreError> {
        self.put_user_if(app, user, now, &Precondition::none()).await
    }

    /// Creates a user if a precondition holds; the precondition gets the existing user, or none.
    async fn put_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        now: Timestamp,
        precondition: &Precondition<User>,
    ) -> Result<User, StoreError>;

    /// Returns a user with at most 1,000 devices.
    async fn user(&self, app: AppId, user: &ExternalId) -> Result<User, StoreError>;

    /// Lists users by external id, after a given one, without devices.
    async fn users(
        &self,
        app: AppId,
        after: Option<&ExternalId>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError>;

    /// Deletes a user. Their devices stay, without an owner. Large amounts of data are removed gradually.
    async fn remove_user(&self, app: AppId, user: &ExternalId) -> Result<(), StoreError> {
        self.remove_user_if(app, user, &Precondition::none()).await
    }

    /// Deletes a user if a precondition holds.
    async fn remove_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        precondition: &Precondition<User>,
    ) -> Result<(), StoreError>;
}

/// Operations on groups.
#[async_trait]
pub trait GroupStore: Send + Sync {
    /// Creates a group; harmless if it exists.
    async fn put_group(&self, app: AppId, group: &GroupName, now: Timestamp) -> Result<Group, StoreError> {
        self.put_group_if(app, group, now, &Precondition::none()).await
    }

    /// Creates a group if a precondition holds; the precondition gets the existing group, or none.
    async fn put_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        now: Timestamp,
        precondition: &Precondition<Group>,
    ) -> Result<Group, StoreError>;

    /// Returns a group.
    async fn group(&self, app: AppId, group: &GroupName) -> Result<Group, StoreError>;

    /// Lists groups by name, after a given one.
    async fn groups(
        &self,
        app: AppId,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<Group>, StoreError>;

    /// Lists members in order, after a given one.
    async fn members(
        &self,
        app: AppId,
        group: &GroupName,
        after: Option<&Member>,
        limit: usize,
    ) -> Result<Vec<Member>, StoreError>;

    /// Adds members. Unknown devices are reported, unknown users are created. LimitReached if a member would be in too many groups, or if a
    /// member is new and the group would exceed `max_count` members; in both cases no member is added.
    async fn add_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        max_count: Option<usize>,
        now: Timestamp,
    ) -> Result<SubscriptionChange, StoreError>;

    /// Removes members.
    async fn remove_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
    ) -> Result<SubscriptionChange, StoreError>;

    /// Removes a group. Large amounts of data are removed gradually.
    async fn remove_group(&self, app: AppId, group: &GroupName) -> Result<(), StoreError> {
        self.remove_group_if(app, group, &Precondition::none()).await
    }

    /// Removes a group if a precondition holds.
    async fn remove_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        precondition: &Precondition<Group>,
    ) -> Result<(), StoreError>;
}
