//! Groups and their members.

use stentor_core::app::Scope::{Register, Send};
use stentor_core::group::{Group, Member};
use stentor_core::id::DeviceId;
use stentor_core::name::{ExternalId, GroupName};
use stentor_core::ports::store::SubscriptionChange;

use super::topics::check_count;
use super::{Caller, Service, ServiceResult};

/// Members named in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// People, with all their devices.
    pub users: Vec<ExternalId>,
    /// Single devices.
    pub devices: Vec<DeviceId>,
}

impl Members {
    fn checked(self) -> ServiceResult<Vec<Member>> {
        let (users, devices) = (self.users.len(), self.devices.len());
        if users + devices == 0 {
            check_count("users and devices", 0)?;
        }
        check_count("users", users.max(1))?;
        check_count("devices", devices.max(1))?;
        let users = self.users.into_iter().map(Member::User);
        Ok(users.chain(self.devices.into_iter().map(Member::Device)).collect())
    }
}

impl Service {
    /// Makes a group.
    pub async fn put_group(&self, caller: Caller, group: &GroupName) -> ServiceResult<Group> {
        caller.require(Register)?;
        Ok(self.store.put_group(caller.app(), group, self.now()).await?)
    }

    /// Returns a group.
    pub async fn group(&self, caller: Caller, group: &GroupName) -> ServiceResult<Group> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.group(caller.app(), group).await?)
    }

    /// Lists groups by name.
    pub async fn groups(
        &self,
        caller: Caller,
        after: Option<&GroupName>,
        limit: usize,
    ) -> ServiceResult<Vec<Group>> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.groups(caller.app(), after, limit).await?)
    }

    /// Removes a group; its members stay.
    pub async fn remove_group(&self, caller: Caller, group: &GroupName) -> ServiceResult<()> {
        caller.require(Register)?;
        Ok(self.store.remove_group(caller.app(), group).await?)
    }

    /// Lists a group's members.
    pub async fn members(
        &self,
        caller: Caller,
        group: &GroupName,
        after: Option<&Member>,
        limit: usize,
    ) -> ServiceResult<Vec<Member>> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.members(caller.app(), group, after, limit).await?)
    }

    /// Adds members; at most 1,000 at once.
    pub async fn add_members(
        &self,
        caller: Caller,
        group: &GroupName,
        members: Members,
    ) -> ServiceResult<SubscriptionChange> {
        caller.require(Register)?;
        let members = members.checked()?;
        Ok(self.store.add_members(caller.app(), group, &members, self.now()).await?)
    }

    /// Takes members out; at most 1,000 at once.
    pub async fn remove_members(
        &self,
        caller: Caller,
        group: &GroupName,
        members: Members,
    ) -> ServiceResult<SubscriptionChange> {
        caller.require(Register)?;
        let members = members.checked()?;
        Ok(self.store.remove_members(caller.app(), group, &members).await?)
    }
}
