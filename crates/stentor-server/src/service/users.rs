//! Users of an app.

use stentor_core::name::ExternalId;
use stentor_core::ports::store::Removal;

use super::long_list::LongList;
use super::precondition::precondition;
use super::{Caller, Service, ServiceResult};
use crate::contract::table::{ListUsers, PutUser, RemoveUser, ShowUser};
use crate::contract::users::{UserList, UserView};
use crate::contract::{After, Conditional, Serve};

impl Serve<PutUser> for Service {
    async fn serve(
        &self,
        caller: Caller,
        user: ExternalId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<UserView> {
        caller.allow::<PutUser>()?;
        let precondition = precondition(condition, UserView::from);
        Ok(self.store.put_user(caller.app(), &user, self.now(), &precondition).await?.into())
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
        let (limit, mut after) = (page.limit()?, page.name(ExternalId::new)?);
        caller.allow::<ListUsers>()?;
        let mut list = LongList::new(limit);
        while let Some(limit) = list.wanted() {
            let found = self.store.users(caller.app(), after.as_ref(), limit).await?;
            after = found.last().map(|last| last.external_id.clone()).or(after);
            list.add(limit, found.into_iter().map(|one| (one.external_id.to_string(), UserView::from(one))));
        }
        let (users, next) = list.page();
        Ok(UserList { users, next })
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
        let removal = Removal::User(user, precondition(condition, UserView::from));
        Ok(self.store.remove(caller.app(), removal).await?)
    }
}
