//! People of an app.

use stentor_core::app::Scope::{Register, Send};
use stentor_core::name::ExternalId;
use stentor_core::user::User;

use super::{Caller, Service, ServiceResult};

impl Service {
    /// Makes a person known.
    pub async fn put_user(&self, caller: Caller, user: &ExternalId) -> ServiceResult<User> {
        caller.require(Register)?;
        Ok(self.store.put_user(caller.app(), user, self.now()).await?)
    }

    /// Returns a person with devices.
    pub async fn user(&self, caller: Caller, user: &ExternalId) -> ServiceResult<User> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.user(caller.app(), user).await?)
    }

    /// Lists people.
    pub async fn users(
        &self,
        caller: Caller,
        after: Option<&ExternalId>,
        limit: usize,
    ) -> ServiceResult<Vec<User>> {
        caller.require_any(&[Register, Send])?;
        Ok(self.store.users(caller.app(), after, limit).await?)
    }

    /// Forgets a person; the devices stay.
    pub async fn remove_user(&self, caller: Caller, user: &ExternalId) -> ServiceResult<()> {
        caller.require(Register)?;
        Ok(self.store.remove_user(caller.app(), user).await?)
    }
}
