use std::collections::BTreeSet;
use std::ops::Bound;

use async_trait::async_trait;
use stentor_core::group::Member;
use stentor_core::id::AppId;
use stentor_core::name::ExternalId;
use stentor_core::ports::store::{Precondition, StoreError, UserStore};
use stentor_core::time::Timestamp;
use stentor_core::user::User;

use super::MemoryStore;
use super::state::{AppRow, UserRow};
use super::topics::after_name;

/// Most devices shown with a person.
const DEVICES_SHOWN_MAX_COUNT: usize = 1_000;

#[async_trait]
impl UserStore for MemoryStore {
    async fn put_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        now: Timestamp,
        precondition: &Precondition<User>,
    ) -> Result<User, StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| Ok::<_, StoreError>(row.user(user, DEVICES_SHOWN_MAX_COUNT).ok()))?;
        row.know_user(user, now);
        row.user(user, DEVICES_SHOWN_MAX_COUNT)
    }

    async fn user(&self, app: AppId, user: &ExternalId) -> Result<User, StoreError> {
        self.lock().app(app)?.user(user, DEVICES_SHOWN_MAX_COUNT)
    }

    async fn users(
        &self,
        app: AppId,
        after: Option<&ExternalId>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        let names = row.users.range((after_name(after), Bound::Unbounded));
        names.take(limit).map(|(name, _)| row.user(name, 0)).collect()
    }

    async fn remove_user_if(
        &self,
        app: AppId,
        user: &ExternalId,
        precondition: &Precondition<User>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| row.user(user, DEVICES_SHOWN_MAX_COUNT).map(Some))?;
        row.remove_user(user)
    }
}

impl AppRow {
    /// Makes a person known.
    pub(super) fn know_user(&mut self, user: &ExternalId, now: Timestamp) -> &mut UserRow {
        let fresh = || UserRow { created_at: now, devices: BTreeSet::new() };
        self.users.entry(user.clone()).or_insert_with(fresh)
    }

    fn user(&self, user: &ExternalId, limit: usize) -> Result<User, StoreError> {
        let row = self.users.get(user).ok_or(StoreError::NotFound("user"))?;
        Ok(User {
            app: self.app.id,
            external_id: user.clone(),
            created_at: row.created_at,
            devices: row.devices.iter().take(limit).copied().collect(),
        })
    }

    fn remove_user(&mut self, user: &ExternalId) -> Result<(), StoreError> {
        let row = self.users.remove(user).ok_or(StoreError::NotFound("user"))?;
        for id in row.devices {
            if let Some(device) = self.devices.get_mut(&id) {
                device.registration.user = None;
            }
        }
        let member = Member::User(user.clone());
        self.groups.values_mut().for_each(|group| _ = group.members.remove(&member));
        Ok(())
    }
}
