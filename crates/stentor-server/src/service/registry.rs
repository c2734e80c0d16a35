//! The registry: services that callers publish and find.

use std::time::Duration;

use stentor_core::limits::SERVICE_TTL_MAX_SECONDS;
use stentor_core::name::{ServiceAddress, ServiceKind, ServiceName, ServiceText};
use stentor_core::ports::store::Removal;
use stentor_core::published::PublishedService;
use stentor_core::time::Timestamp;

use super::long_list::LongList;
use super::{Caller, Problem, Service, ServiceResult};
use crate::contract::services::{
    PublishedServiceView, ServiceList, ServiceQuery, ServiceRequest, TTL_DEFAULT_SECONDS,
};
use crate::contract::table::{ListServices, PublishService, RemoveService, ShowService};
use crate::contract::{After, Serve};

impl ServiceRequest {
    fn checked(self, caller: Caller, name: ServiceName, now: Timestamp) -> ServiceResult<PublishedService> {
        let ttl = self.ttl_seconds.unwrap_or(TTL_DEFAULT_SECONDS);
        if !(1..=SERVICE_TTL_MAX_SECONDS).contains(&ttl) {
            return Err(Problem::field("ttl_seconds", format!("must be 1 to {SERVICE_TTL_MAX_SECONDS}")));
        }
        Ok(PublishedService {
            app: caller.app(),
            name,
            kind: ServiceKind::new(self.kind)?,
            address: ServiceAddress::new(self.address)?,
            description: self.description.map(ServiceText::new).transpose()?,
            published_at: now,
            expires_at: now.plus(Duration::from_secs(ttl)),
        })
    }
}

impl Serve<PublishService> for Service {
    async fn serve(
        &self,
        caller: Caller,
        name: ServiceName,
        request: ServiceRequest,
    ) -> ServiceResult<PublishedServiceView> {
        caller.allow::<PublishService>()?;
        let now = self.now();
        let service = request.checked(caller, name, now)?;
        Ok(self.store.put_service(&service, now).await?.into())
    }
}

impl Serve<ListServices> for Service {
    async fn serve(&self, caller: Caller, (): (), query: ServiceQuery) -> ServiceResult<ServiceList> {
        let page = After { after: query.after, limit: query.limit };
        let (limit, mut after) = (page.limit()?, page.name(ServiceName::new)?);
        let kind = query.kind.map(ServiceKind::new).transpose()?;
        caller.allow::<ListServices>()?;
        let (mut list, now) = (LongList::new(limit), self.now());
        while let Some(limit) = list.wanted() {
            let found = self.store.services(caller.app(), kind.as_ref(), after.as_ref(), now, limit).await?;
            after = found.last().map(|last| last.name.clone()).or(after);
            list.add(
                limit,
                found.into_iter().map(|one| (one.name.to_string(), PublishedServiceView::from(one))),
            );
        }
        let (services, next) = list.page();
        Ok(ServiceList { services, next })
    }
}

impl Serve<ShowService> for Service {
    async fn serve(&self, caller: Caller, name: ServiceName, (): ()) -> ServiceResult<PublishedServiceView> {
        caller.allow::<ShowService>()?;
        Ok(self.store.service(caller.app(), &name, self.now()).await?.into())
    }
}

impl Serve<RemoveService> for Service {
    async fn serve(&self, caller: Caller, name: ServiceName, (): ()) -> ServiceResult<()> {
        caller.allow::<RemoveService>()?;
        Ok(self.store.remove(caller.app(), Removal::Service(name, self.now())).await?)
    }
}
