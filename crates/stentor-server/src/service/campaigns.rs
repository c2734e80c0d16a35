//! Campaigns: their books, and what an owner does to them.

use stentor_core::app::Scope::Send;
use stentor_core::audit::AuditAction;
use stentor_core::campaign::{Campaign, CampaignAction, Ledger};
use stentor_core::id::CampaignId;
use stentor_core::ports::store::{Change, Changed, Page};
use stentor_core::time::Timestamp;

use super::audit::{Author, Matter, unexpected};
use super::{Caller, Origin, Service, ServiceResult};

impl Service {
    /// Returns the books of a campaign, and the instant at which they were read.
    pub async fn ledger(&self, caller: Caller, id: CampaignId) -> ServiceResult<(Ledger, Timestamp)> {
        caller.require(Send)?;
        let ledger = self.store.ledger(caller.app(), id).await?;
        Ok((ledger, self.now()))
    }

    /// Lists campaigns, newest first.
    pub async fn campaigns(&self, caller: Caller, page: Page) -> ServiceResult<Vec<Campaign>> {
        caller.require(Send)?;
        Ok(self.store.campaigns(caller.app(), page).await?)
    }

    /// Lists the campaigns of such a list that cannot be read; they can be canceled.
    pub async fn broken_campaigns(&self, caller: Caller, page: Page) -> ServiceResult<Vec<CampaignId>> {
        caller.require(Send)?;
        Ok(self.store.broken_campaigns(caller.app(), page).await?)
    }

    /// Cancels, pauses or resumes, and gives the books after it.
    pub async fn act(
        &self,
        (caller, from): (Caller, Origin),
        id: CampaignId,
        action: CampaignAction,
    ) -> ServiceResult<(Ledger, Timestamp)> {
        let (author, app) = (Author::for_caller(caller, from), caller.app());
        let matter = Matter::new(audited(action), app, id);
        self.permitted(&author, &matter, caller.require(Send)).await?;
        let change = Change::Act(app, id, action, self.now());
        let Changed::Campaign(_, tickets) = self.change(author, matter, change).await? else {
            return Err(unexpected());
        };
        self.belt.published(tickets);
        self.belt.wake();
        self.ledger(caller, id).await
    }
}

const fn audited(action: CampaignAction) -> AuditAction {
    match action {
        CampaignAction::Cancel => AuditAction::CampaignCancel,
        CampaignAction::Pause => AuditAction::CampaignPause,
        CampaignAction::Resume => AuditAction::CampaignResume,
    }
}
