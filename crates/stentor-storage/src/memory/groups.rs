use std::collections::BTreeSet;
use std::ops::Bound;

use async_trait::async_trait;
use stentor_core::group::{Group, Member};
use stentor_core::id::AppId;
use stentor_core::limits::GROUPS_PER_MEMBER_MAX_COUNT;
use stentor_core::name::GroupName;
use stentor_core::ports::store::{GroupStore, Precondition, StoreError, SubscriptionChange};
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::{AppRow, GroupRow};
use super::topics::after_name;

#[async_trait]
impl GroupStore for MemoryStore {
    async fn put_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        now: Timestamp,
        precondition: &Precondition<Group>,
    ) -> Result<Group, StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        let present = row.groups.get(group).map(|present| row.shown(group, present));
        precondition.check(|| Ok::<_, StoreError>(present))?;
        let fresh = || GroupRow { created_at: now, members: BTreeSet::new() };
        row.groups.entry(group.clone()).or_insert_with(fresh);
        Ok(row.shown(group, row.group(group)?))
    }

    async fn group(&self, app: AppId, group: &GroupName) -> Result<Group, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        Ok(row.shown(group, row.group(group)?))
    }

    async fn groups(
        &self,
        app: AppId,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Result<Vec<Group>, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        let groups = row.groups.range((after_name(after), Bound::Unbounded));
        Ok(groups.take(limit).map(|(name, group)| row.shown(name, group)).collect())
    }

    async fn members(
        &self,
        app: AppId,
        group: &GroupName,
        after: Option<&Member>,
        limit: usize,
    ) -> Result<Vec<Member>, StoreError> {
        let state = self.lock();
        let members = &state.app(app)?.group(group)?.members;
        Ok(members.range((after_name(after), Bound::Unbounded)).take(limit).cloned().collect())
    }

    async fn add_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
        max_count: Option<usize>,
        now: Timestamp,
    ) -> Result<SubscriptionChange, StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        if let Some(max_count) = max_count {
            row.check_room(group, members, max_count)?;
        }
        row.add_members(group, members, now)
    }

    async fn remove_members(
        &self,
        app: AppId,
        group: &GroupName,
        members: &[Member],
    ) -> Result<SubscriptionChange, StoreError> {
        self.lock().app_mut(app)?.remove_members(group, members)
    }

    async fn remove_group_if(
        &self,
        app: AppId,
        group: &GroupName,
        precondition: &Precondition<Group>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| row.group(group).map(|present| Some(row.shown(group, present))))?;
        row.groups.remove(group).map(drop).ok_or(StoreError::NotFound("group"))
    }
}

impl AppRow {
    pub(super) fn group(&self, group: &GroupName) -> Result<&GroupRow, StoreError> {
        self.groups.get(group).ok_or(StoreError::NotFound("group"))
    }

    fn shown(&self, name: &GroupName, group: &GroupRow) -> Group {
        let member_count = group.members.len() as u64;
        Group { app: self.app.id, name: name.clone(), created_at: group.created_at, member_count }
    }

    /// Refuses members with whom a group would have too many.
    fn check_room(&self, group: &GroupName, members: &[Member], max_count: usize) -> Result<(), StoreError> {
        let own = &self.group(group)?.members;
        let joins = |member: &&Member| {
            (matches!(member, Member::User(_)) || self.knows(member)) && !own.contains(*member)
        };
        let joining: BTreeSet<_> = members.iter().filter(joins).collect();
        if !joining.is_empty() && own.len() + joining.len() > max_count {
            return Err(StoreError::LimitReached(format!("this group has at most {max_count} members")));
        }
        Ok(())
    }

    fn add_members(
        &mut self,
        group: &GroupName,
        members: &[Member],
        now: Timestamp,
    ) -> Result<SubscriptionChange, StoreError> {
        let own = &self.group(group)?.members;
        let in_groups = |member| self.groups.values().filter(|row| row.members.contains(member)).count();
        let mut joining = members.iter().filter(|member| !own.contains(member));
        if joining.any(|member| in_groups(member) >= GROUPS_PER_MEMBER_MAX_COUNT) {
            let why = format!("a person or device is in at most {GROUPS_PER_MEMBER_MAX_COUNT} groups");
            return Err(StoreError::LimitReached(why));
        }
        let mut change = SubscriptionChange::default();
        for member in members {
            if let Member::User(user) = member {
                self.know_user(user, now);
            }
            let known = self.knows(member);
            let added =
                known && self.groups.get_mut(group).is_some_and(|row| row.members.insert(member.clone()));
            change.note_member(member, known.then_some(added));
        }
        Ok(change)
    }

    fn remove_members(
        &mut self,
        group: &GroupName,
        members: &[Member],
    ) -> Result<SubscriptionChange, StoreError> {
        self.group(group)?;
        let mut change = SubscriptionChange::default();
        for member in members {
            let known = self.knows(member);
            let removed = self.groups.get_mut(group).is_some_and(|row| row.members.remove(member));
            change.note_member(member, known.then_some(removed));
        }
        Ok(change)
    }

    fn knows(&self, member: &Member) -> bool {
        match member {
            Member::User(user) => self.users.contains_key(user),
            Member::Device(device) => self.devices.contains_key(device),
        }
    }
}
