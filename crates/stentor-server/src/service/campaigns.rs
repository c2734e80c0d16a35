//! Campaigns: their books, and the actions of callers on them.

use std::collections::BTreeMap;

use stentor_core::audit::AuditAction;
use stentor_core::campaign::{Campaign, CampaignAction, CampaignState, Ledger};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, MessageId};
use stentor_core::ports::store::{Change, Changed, Listed, Page};

use super::audit::{AuditSubject, Author, unexpected};
use super::long_list::LongList;
use super::{Caller, Origin, Service, ServiceResult};
use crate::contract::campaigns::{CampaignList, CampaignSummary, LedgerView, WaitView};
use crate::contract::messages::{MessageList, MessageSummary};
use crate::contract::table::{
    CancelCampaign, ListCampaigns, ListMessages, PauseCampaign, ResumeCampaign, ShowCampaign,
    ShowMessageLedger,
};
use crate::contract::{Before, Instant, Operation, Serve};
use crate::pipeline::settle::Parking;

/// Campaigns that are read at once together with their messages.
const MESSAGES_AT_ONCE_MAX_COUNT: usize = 64;

impl Serve<ShowCampaign> for Service {
    async fn serve(&self, caller: Caller, id: CampaignId, (): ()) -> ServiceResult<LedgerView> {
        caller.allow::<ShowCampaign>()?;
        let ledger = self.store.ledger(caller.app(), id).await?;
        let waits = self.waits_of(&ledger).await?;
        Ok(LedgerView::new(ledger, waits, self.now()))
    }
}

impl Serve<ShowMessageLedger> for Service {
    async fn serve(&self, caller: Caller, id: MessageId, (): ()) -> ServiceResult<LedgerView> {
        Serve::<ShowCampaign>::serve(self, caller, id.into(), ()).await
    }
}

impl Serve<ListCampaigns> for Service {
    async fn serve(&self, caller: Caller, (): (), page: Before) -> ServiceResult<CampaignList> {
        let page = page.page(|text| campaign_of(text).map(CampaignId::raw))?;
        caller.allow::<ListCampaigns>()?;
        let (mut list, mut after, mut damaged) = (LongList::new(page.limit), page.after, Vec::new());
        while let Some(limit) = list.wanted() {
            // Each campaign is read with its message, which may be long.
            let limit = limit.min(MESSAGES_AT_ONCE_MAX_COUNT);
            let Listed { readable: found, broken } =
                self.store.campaigns(caller.app(), Page { after, limit }).await?;
            damaged.extend(broken);
            after = found.last().map_or(after, |last| last.id.raw());
            let names: Vec<_> = found.iter().map(|one| one.id.to_string()).collect();
            list.add(limit, names.into_iter().zip(self.summaries(caller.app(), found).await?));
        }
        let (campaigns, next) = list.page();
        Ok(CampaignList { campaigns, damaged, next })
    }
}

impl Serve<ListMessages> for Service {
    async fn serve(&self, caller: Caller, (): (), page: Before) -> ServiceResult<MessageList> {
        let page = page.page(|text| text.parse().ok().map(MessageId::raw))?;
        caller.allow::<ListMessages>()?;
        let (mut list, mut after, mut damaged) = (LongList::new(page.limit), page.after, Vec::new());
        while let Some(limit) = list.wanted() {
            let Listed { readable: found, broken } =
                self.store.campaigns(caller.app(), Page { after, limit }).await?;
            damaged.extend(broken);
            after = found.last().map_or(after, |last| last.id.raw());
            let named = |one: Campaign| (MessageId::from(one.id).to_string(), MessageSummary::from(one));
            list.add(limit, found.into_iter().map(named));
        }
        let (messages, next) = list.page();
        Ok(MessageList { messages, damaged: damaged.into_iter().map(MessageId::from).collect(), next })
    }
}

impl Serve<CancelCampaign> for Service {
    async fn serve(&self, by: (Caller, Origin), id: CampaignId, (): ()) -> ServiceResult<LedgerView> {
        self.act::<CancelCampaign>(by, id, CampaignAction::Cancel).await
    }
}

impl Serve<PauseCampaign> for Service {
    async fn serve(&self, by: (Caller, Origin), id: CampaignId, (): ()) -> ServiceResult<LedgerView> {
        self.act::<PauseCampaign>(by, id, CampaignAction::Pause).await
    }
}

impl Serve<ResumeCampaign> for Service {
    async fn serve(&self, by: (Caller, Origin), id: CampaignId, (): ()) -> ServiceResult<LedgerView> {
        self.act::<ResumeCampaign>(by, id, CampaignAction::Resume).await
    }
}

impl Service {
    /// Adds messages and sums to campaigns.
    async fn summaries(&self, app: AppId, campaigns: Vec<Campaign>) -> ServiceResult<Vec<CampaignSummary>> {
        let ids: Vec<CampaignId> = campaigns.iter().map(|campaign| campaign.id).collect();
        let messages = self.store.messages(app, ids.iter().copied().map(MessageId::from).collect()).await?;
        let messages: BTreeMap<_, _> =
            messages.into_iter().map(|one| (CampaignId::from(one.id), one)).collect();
        let mut sums: BTreeMap<_, _> = self.store.sums(app, ids).await?.into_iter().collect();
        let summary = |campaign: Campaign| {
            let (message, sums) = (messages.get(&campaign.id), sums.remove(&campaign.id));
            CampaignSummary::new(campaign, message, sums.unwrap_or_default())
        };
        Ok(campaigns.into_iter().map(summary).collect())
    }

    /// Finds the reasons why a campaign waits, as a whole or at the providers with queued deliveries.
    async fn waits_of(&self, ledger: &Ledger) -> ServiceResult<Vec<WaitView>> {
        let campaign = &ledger.campaign;
        let whole = |reason, detail: &str, until| {
            let detail = detail.to_owned();
            vec![WaitView { reason, provider: None, detail, until }]
        };
        match campaign.state {
            CampaignState::Scheduled if campaign.due_at > self.now() => {
                let (detail, due_at) = ("it waits for its time", Some(campaign.due_at.into()));
                return Ok(whole(campaign.state.as_str(), detail, due_at));
            }
            CampaignState::Paused if campaign.ended_at.is_none() => {
                let detail = "it is paused: resume it before its time to live is over";
                return Ok(whole(campaign.state.as_str(), detail, None));
            }
            state if state.is_ended() => return Ok(Vec::new()),
            _ => {}
        }
        let mut waits = Vec::new();
        for books in ledger.providers.iter().filter(|books| books.tally.queued > 0) {
            waits.extend(self.wait_at(campaign.app, books.provider).await?);
        }
        Ok(waits)
    }

    /// Finds the reason why nothing is sent for an app through a provider.
    async fn wait_at(&self, app: AppId, provider: ProviderKind) -> ServiceResult<Option<WaitView>> {
        if let Some(parked) = self.resting(app, provider).await? {
            let Parking { reason, detail, until } = parked;
            let (reason, until) = (reason.as_str(), until.map(Instant));
            return Ok(Some(WaitView { reason, provider: Some(provider), detail, until }));
        }
        let spent = self.pipeline.quota(app, provider).filter(|quota| quota.tokens == 0);
        Ok(spent.map(|quota| WaitView {
            reason: "quota",
            provider: Some(provider),
            detail: format!("the credential's quota of {} a minute is used up", quota.per_minute_now),
            until: None,
        }))
    }

    /// Cancels, pauses or resumes a campaign, and returns its books.
    async fn act<O: Operation>(
        &self,
        (caller, from): (Caller, Origin),
        id: CampaignId,
        action: CampaignAction,
    ) -> ServiceResult<LedgerView> {
        let (author, app) = (Author::for_caller(caller, from), caller.app());
        let subject = AuditSubject::new(audited(action), app, id);
        self.permitted(&author, &subject, caller.allow::<O>()).await?;
        let change = Change::Act(app, id, action, self.now());
        let (entry, store, gateway) =
            (self.audit_entry(author, subject), self.store.clone(), self.gateway.clone());
        let holding = async move {
            // Before the transaction: deliveries settled while it runs must not reach connected devices.
            if action != CampaignAction::Resume {
                gateway.hold(app, id.into());
            }
            let changed = store.change(change, Some(entry)).await;
            // A canceled message stays held back, because no device may receive it any more.
            if action == CampaignAction::Resume || changed.is_err() {
                gateway.release(app, id.into());
            }
            changed
        };
        // In a task of its own: a caller that disconnects would otherwise leave the message held back for good.
        let Changed::Campaign(_, tickets) = tokio::spawn(holding).await.map_err(|_| unexpected())?? else {
            return Err(unexpected());
        };
        // The change returns the chunks that may continue, so the store need not be searched for them.
        self.pipeline.published(tickets);
        // A resumed campaign may need producers, and a canceled one frees room for others.
        self.pipeline.wake();
        Serve::<ShowCampaign>::serve(self, caller, id, ()).await
    }
}

/// Parses the id of a campaign or of its message.
fn campaign_of(text: &str) -> Option<CampaignId> {
    text.parse::<MessageId>().map(CampaignId::from).ok().or_else(|| text.parse().ok())
}

const fn audited(action: CampaignAction) -> AuditAction {
    match action {
        CampaignAction::Cancel => AuditAction::CampaignCancel,
        CampaignAction::Pause => AuditAction::CampaignPause,
        CampaignAction::Resume => AuditAction::CampaignResume,
    }
}
