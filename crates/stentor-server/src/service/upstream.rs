//! Upstream messages: listed, acknowledged, and retried from the dead letters.

use std::sync::Arc;

use stentor_core::id::{AppId, UpstreamId};
use stentor_core::ports::store::{Page, UpstreamAction, UpstreamFilter};
use stentor_core::upstream::UpstreamMessage;
use stentor_gateway::limits::{UPSTREAM_TTL_MAX, UPSTREAM_WINDOW_MAX_COUNT};
use stentor_gateway::{UpstreamBroker, UpstreamConsumer};

use super::long_list::LongList;
use super::{Caller, Problem, Service, ServiceResult};
use crate::contract::table::{AcknowledgeUpstream, ListDeadLetters, ListUpstream, RetryDeadLetters};
use crate::contract::upstream::{
    DeadLetterList, DeadLetterView, UPSTREAM_IDS_MAX_COUNT, UpstreamChangeView, UpstreamIds, UpstreamList,
    UpstreamView,
};
use crate::contract::{After, Serve};

fn number(text: &str) -> Option<u64> {
    text.parse().ok().map(UpstreamId::raw)
}

impl UpstreamIds {
    fn checked(self) -> ServiceResult<Vec<UpstreamId>> {
        match self.ids.len() {
            1..=UPSTREAM_IDS_MAX_COUNT => Ok(self.ids),
            _ => Err(Problem::field("ids", format!("must be 1 to {UPSTREAM_IDS_MAX_COUNT} ids"))),
        }
    }
}

impl Serve<ListUpstream> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<UpstreamList> {
        let page = page.page(number)?;
        caller.allow::<ListUpstream>()?;
        let (mut list, mut after) = (LongList::new(page.limit), page.after);
        while let Some(limit) = list.wanted() {
            let found = self.upstream(caller, UpstreamFilter::Waiting, Page { after, limit }).await?;
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), UpstreamView::from(one))));
        }
        let (messages, next) = list.page();
        Ok(UpstreamList { messages, next })
    }
}

impl Serve<AcknowledgeUpstream> for Service {
    async fn serve(&self, caller: Caller, (): (), named: UpstreamIds) -> ServiceResult<UpstreamChangeView> {
        let ids = named.checked()?;
        caller.allow::<AcknowledgeUpstream>()?;
        Ok(self.broker.settle(caller.app(), &ids).await?.into())
    }
}

impl Serve<ListDeadLetters> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<DeadLetterList> {
        let page = page.page(number)?;
        caller.allow::<ListDeadLetters>()?;
        let (mut list, mut after) = (LongList::new(page.limit), page.after);
        while let Some(limit) = list.wanted() {
            let found = self.upstream(caller, UpstreamFilter::Dead, Page { after, limit }).await?;
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), DeadLetterView::from(one))));
        }
        let (dead_letters, next) = list.page();
        Ok(DeadLetterList { dead_letters, next })
    }
}

impl Serve<RetryDeadLetters> for Service {
    async fn serve(&self, caller: Caller, (): (), named: UpstreamIds) -> ServiceResult<UpstreamChangeView> {
        let ids = named.checked()?;
        caller.allow::<RetryDeadLetters>()?;
        let expires_at = self.now().plus(UPSTREAM_TTL_MAX);
        let revived = UpstreamAction::Revive { expires_at };
        let changed = self.store.change_upstream(caller.app(), &ids, revived).await?;
        // Notified at once, because consumers poll only rarely.
        self.broker.arrived(caller.app());
        Ok(changed.into())
    }
}

impl Service {
    async fn upstream(
        &self,
        caller: Caller,
        filter: UpstreamFilter,
        page: Page,
    ) -> ServiceResult<Vec<UpstreamMessage>> {
        Ok(self.store.upstream(caller.app(), filter, page, self.now()).await?)
    }

    /// Lists all apps.
    pub(crate) async fn all_apps(&self) -> ServiceResult<Vec<AppId>> {
        Ok(self.store.apps().await?.into_iter().map(|app| app.id).collect())
    }

    /// Returns the broker of upstream messages.
    #[must_use]
    pub const fn upstream_broker(&self) -> &Arc<UpstreamBroker> {
        &self.broker
    }

    /// Starts a consumer for the upstream messages of the caller's app.
    pub(crate) fn consume_upstream(&self, caller: Caller) -> ServiceResult<UpstreamConsumer> {
        caller.allow::<ListUpstream>()?;
        Ok(self.broker.consume(caller.app(), UPSTREAM_WINDOW_MAX_COUNT))
    }
}
