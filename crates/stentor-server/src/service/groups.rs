//! Groups and their members.

use serde::Serialize;
use stentor_core::error::Invalid;
use stentor_core::group::{Group, Member};
use stentor_core::id::DeviceId;
use stentor_core::name::{ExternalId, GroupName};
use stentor_core::ports::store::{MemberAction, Precondition, Removal, StoreError};

use super::long_list::LongList;
use super::precondition::precondition;
use super::topics::check_count;
use super::{Caller, Service, ServiceResult};
use crate::contract::groups::{GroupList, GroupView, MemberList, MembersRequest};
use crate::contract::table::{
    AddMembers, ListGroups, ListMembers, PutGroup, RemoveGroup, RemoveMembers, ShowGroup,
};
use crate::contract::topics::SubscriptionChangeView;
use crate::contract::{After, Conditional, Serve};

const USER_CURSOR: &str = "user:";
const DEVICE_CURSOR: &str = "device:";

impl MembersRequest {
    fn checked(self) -> ServiceResult<Vec<Member>> {
        let (users, devices) = (self.users.len(), self.devices.len());
        if users + devices == 0 {
            check_count("users and devices", 0)?;
        }
        // Either list may be empty, which `check_count` alone would refuse.
        check_count("users", users.max(1))?;
        check_count("devices", devices.max(1))?;
        let users = self.users.into_iter().map(Member::User);
        Ok(users.chain(self.devices.into_iter().map(Member::Device)).collect())
    }
}

impl Serve<PutGroup> for Service {
    async fn serve(
        &self,
        caller: Caller,
        group: GroupName,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<GroupView> {
        caller.allow::<PutGroup>()?;
        let precondition = precondition(condition, GroupView::from);
        Ok(self.store.put_group(caller.app(), &group, self.now(), &precondition).await?.into())
    }
}

impl Serve<ShowGroup> for Service {
    async fn serve(&self, caller: Caller, group: GroupName, (): ()) -> ServiceResult<GroupView> {
        caller.allow::<ShowGroup>()?;
        Ok(self.store.group(caller.app(), &group).await?.into())
    }
}

impl Serve<ListGroups> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<GroupList> {
        let (limit, mut after) = (page.limit()?, page.name(GroupName::new)?);
        caller.allow::<ListGroups>()?;
        let mut list = LongList::new(limit);
        while let Some(limit) = list.wanted() {
            let found = self.store.groups(caller.app(), after.as_ref(), limit).await?;
            after = found.last().map(|last| last.name.clone()).or(after);
            list.add(limit, found.into_iter().map(|one| (one.name.to_string(), GroupView::from(one))));
        }
        let (groups, next) = list.page();
        Ok(GroupList { groups, next })
    }
}

impl Serve<RemoveGroup> for Service {
    async fn serve(
        &self,
        caller: Caller,
        group: GroupName,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        caller.allow::<RemoveGroup>()?;
        let removal = Removal::Group(group, precondition(condition, GroupView::from));
        Ok(self.store.remove(caller.app(), removal).await?)
    }
}

/// A member, as measured for the size of a page.
#[derive(Serialize)]
enum MemberView {
    User(String),
    Device(DeviceId),
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        match member {
            Member::User(user) => Self::User(user.into()),
            Member::Device(device) => Self::Device(device),
        }
    }
}

impl Serve<ListMembers> for Service {
    async fn serve(&self, caller: Caller, group: GroupName, page: After) -> ServiceResult<MemberList> {
        let (limit, mut after) = (page.limit()?, page.name(member_of)?);
        caller.allow::<ListMembers>()?;
        let mut list = LongList::new(limit);
        while let Some(limit) = list.wanted() {
            let found = self.store.members(caller.app(), &group, after.as_ref(), limit).await?;
            after = found.last().cloned().or(after);
            list.add(limit, found.into_iter().map(|one| (cursor_of(&one), MemberView::from(one))));
        }
        let (members, next) = list.page();
        let mut list = MemberList { users: Vec::new(), devices: Vec::new(), next };
        for member in members {
            match member {
                MemberView::User(user) => list.users.push(user),
                MemberView::Device(device) => list.devices.push(device),
            }
        }
        Ok(list)
    }
}

impl Serve<AddMembers> for Service {
    async fn serve(
        &self,
        caller: Caller,
        group: GroupName,
        members: MembersRequest,
    ) -> ServiceResult<SubscriptionChangeView> {
        caller.allow::<AddMembers>()?;
        self.join(caller, &group, members, None).await
    }
}

impl Service {
    /// Adds members to a group of at most `max_count` members, for fronts of servers with such groups.
    pub(crate) async fn add_within(
        &self,
        caller: Caller,
        group: &GroupName,
        members: MembersRequest,
        max_count: usize,
    ) -> ServiceResult<SubscriptionChangeView> {
        caller.allow::<AddMembers>()?;
        self.join(caller, group, members, Some(max_count)).await
    }

    /// Removes a group without members, for fronts of servers that do so.
    pub(crate) async fn remove_if_empty(&self, caller: Caller, group: &GroupName) -> ServiceResult<()> {
        caller.allow::<RemoveGroup>()?;
        // Checked inside the transaction, so that a concurrently added member is not lost with the group.
        let is_empty =
            Precondition::new(|present: Option<&Group>| present.is_some_and(|group| group.member_count == 0));
        match self.store.remove(caller.app(), Removal::Group(group.clone(), is_empty)).await {
            Ok(()) | Err(StoreError::PreconditionFailed | StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn join(
        &self,
        caller: Caller,
        group: &GroupName,
        members: MembersRequest,
        max_count: Option<usize>,
    ) -> ServiceResult<SubscriptionChangeView> {
        let members = members.checked()?;
        let action = MemberAction::Add { max_count, now: self.now() };
        Ok(self.store.change_members(caller.app(), group, &members, action).await?.into())
    }
}

impl Serve<RemoveMembers> for Service {
    async fn serve(
        &self,
        caller: Caller,
        group: GroupName,
        members: MembersRequest,
    ) -> ServiceResult<SubscriptionChangeView> {
        caller.allow::<RemoveMembers>()?;
        let members = members.checked()?;
        Ok(self.store.change_members(caller.app(), &group, &members, MemberAction::Remove).await?.into())
    }
}

fn cursor_of(member: &Member) -> String {
    match member {
        Member::User(user) => format!("{USER_CURSOR}{user}"),
        Member::Device(device) => format!("{DEVICE_CURSOR}{device}"),
    }
}

fn member_of(cursor: String) -> Result<Member, Invalid> {
    if let Some(user) = cursor.strip_prefix(USER_CURSOR) {
        return ExternalId::new(user).map(Member::User);
    }
    let device = cursor.strip_prefix(DEVICE_CURSOR).and_then(|id| id.parse().ok());
    device.map(Member::Device).ok_or_else(|| Invalid::new("after", "is no member"))
}
