//! The ports for devices, topics, users and groups.

use async_trait::async_trait;

use super::{Page, Precondition, StoreError};
use crate::device::{
    Device, DeviceKeys, DevicePatch, DeviceState, ProviderKind, PushToken, Registration, TokenForm,
};
use crate::group::{Group, Member};
use crate::id::{AppId, DeviceId};
use crate::name::{ExternalId, GroupName, ServiceName, Tag, TopicName};
use crate::time::Timestamp;
use crate::topic::TopicSummary;
use crate::user::User;

/// The result of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// The device.
    pub device: DeviceId,
    /// False when the token, or the one that it replaces, was known.
    pub created: bool,
    /// The effect of the token that it replaces.
    pub replacement: Replacement,
}

/// The effect of the former token that a registration names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replacement {
    /// It names none, or no device has that token.
    #[default]
    None,
    /// The device that had it has the new token.
    Renewed,
    /// The device that had it and the one that already had the new token are one device.
    Merged,
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
    /// Only devices with tokens of a kind.
    pub kind: Option<TokenKind>,
}

/// A kind of tokens: those that have a form, or those that have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenKind {
    /// The form.
    pub form: TokenForm,
    /// False for the tokens that have another form.
    pub has_it: bool,
}

impl TokenKind {
    /// Returns true if a token is of this kind.
    #[must_use]
    pub fn includes(&self, token: &str) -> bool {
        self.form.fits(token) == self.has_it
    }
}

impl DeviceFilter {
    /// Returns true if a device in this state matches.
    #[must_use]
    pub fn means(&self, state: DeviceState, listed: bool) -> bool {
        self.state.map_or(listed, |meant| meant == state)
    }
}

/// A change of subscriptions to a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionAction {
    /// The devices are subscribed.
    Subscribe,
    /// Their subscriptions are removed.
    Unsubscribe,
}

/// A change of the members of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberAction {
    /// The members are added.
    Add {
        /// The largest number of members that the group may have with them; `None` for no limit.
        max_count: Option<usize>,
        /// The time at which unknown users are created.
        now: Timestamp,
    },
    /// The members are removed.
    Remove,
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
    ///
    /// A registration that names a former token is of the device that has it: this device gets the new token and keeps its id. If another
    /// device has the new token already, both become one. The one that was registered first stays, with the subscriptions and memberships
    /// of both. Of the facts that the registration leaves out, those of the device that had the new token win.
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

    /// Changes one device if the precondition holds. Fails with Conflict if another device of the app holds the new token.
    async fn update_device(
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
}

/// Operations on topics.
#[async_trait]
pub trait TopicStore: Send + Sync {
    /// Changes subscriptions of devices to a topic. A new subscription creates the topic if needed; LimitReached if a device would exceed
    /// its limit of topics. Many devices take more than one transaction.
    async fn change_subscriptions(
        &self,
        app: AppId,
        topic: &TopicName,
        devices: &[DeviceId],
        action: SubscriptionAction,
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

    /// Lists a device's topics by name.
    async fn topics_of(&self, app: AppId, device: DeviceId) -> Result<Vec<TopicName>, StoreError>;
}

/// Operations on users.
#[async_trait]
pub trait UserStore: Send + Sync {
    /// Creates a user if the precondition holds, which gets the existing user, or none; harmless if the user exists. Registering a device
    /// with a user has the same effect.
    async fn put_user(
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
}

/// Operations on groups.
#[async_trait]
pub trait GroupStore: Send + Sync {
    /// Creates a group if the precondition holds, which gets the existing group, or none; harmless if the group exists.
    async fn put_group(
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

    /// Changes the members of a group. Unknown devices are reported, and new members that are unknown users are created. LimitReached if a
    /// member would be in too many groups, or if a member is new and the group would exceed its limit; in both cases no member is added.
    async fn change_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        action: MemberAction,
    ) -> Result<SubscriptionChange, StoreError>;
}

/// Things of an app that are removed.
#[derive(Debug, Clone)]
pub enum Removal {
    /// A device with its subscriptions and memberships.
    Device(DeviceId, Precondition<Device>),
    /// A topic. Its subscriptions are removed gradually.
    Topic(TopicName, Precondition<TopicSummary>),
    /// Those of the topics that have neither subscribers nor a retained message at this instant, as left behind by a device that created
    /// them.
    UnusedTopics(Vec<TopicName>, Timestamp),
    /// A user. Their devices stay, without an owner. Large amounts of data are removed gradually.
    User(ExternalId, Precondition<User>),
    /// A group. Large amounts of data are removed gradually.
    Group(GroupName, Precondition<Group>),
    /// A service that is published at this instant.
    Service(ServiceName, Timestamp),
}

/// The removal of things that an app server or a device made.
#[async_trait]
pub trait RemovalStore: Send + Sync {
    /// Removes something of an app, if its precondition holds. NotFound if it does not exist.
    async fn remove(&self, app: AppId, removal: Removal) -> Result<(), StoreError>;
}
