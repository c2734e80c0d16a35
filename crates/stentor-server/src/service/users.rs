//! People of an app.

use stentor_core::name::ExternalId;

use super::precondition::precondition;
use super::{Caller, Service, ServiceResult};
use crate::contract::table::{ListUsers, PutUser, RemoveUser, ShowUser};
use crate::contract::users::{UserList, UserView};
use crate::contract::{After, Conditional, Serve, next_of};

impl Serve<PutUser> for Service {
    async fn serve(
        &self,
        caller: Caller,
        user: ExternalId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<UserView> {
        caller.allow::<PutUser>()?;
        let precondition = precondition(condition, UserView::from);
        Ok(self.store.put_user_if(caller.app(), &user, self.now(), &precondition).await?.into())
    }
}

impl Serve<ShowUser> for Service {
    async fn serve(&self, caller: Caller, user: ExternalId, (): ()) -> ServiceResult<UserView> {
        caller.allow::<ShowUser>()?;
        Ok(self.store.user(caller.app(), &user).await?.into())
    }
}

impl Serve<ListUsers> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<UserList> {
        let (limit, after) = (page.limit()?, page.name(ExternalId::new)?);
        caller.allow::<ListUsers>()?;
        let users = self.store.users(caller.app(), after.as_ref(), limit).await?;
        let next = next_of(&users, limit, |user| user.external_id.to_string());
        Ok(UserList { users: users.into_iter().map(UserView::from).collect(), next })
    }
}

impl Serve<RemoveUser> for Service {
    async fn serve(
        &self,
        caller: Caller,
        user: ExternalId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        caller.allow::<RemoveUser>()?;
        Ok(self.store.remove_user_if(caller.app(), &user, &precondition(condition, UserView::from)).await?)
    }
}
