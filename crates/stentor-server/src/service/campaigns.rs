//! Campaigns: their books, and what an owner does to them.

use stentor_core::app::Scope::Send;
use stentor_core::campaign::{Campaign, CampaignAction, Ledger};
use stentor_core::id::CampaignId;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::Page;

use super::{Answer, Caller, Service};

impl Service {
    /// Gives the books of a campaign, and the instant at which they were read.
    pub async fn ledger(&self, caller: Caller, id: CampaignId) -> Answer<(Ledger, Timestamp)> {
        caller.require(Send)?;
        let ledger = self.store.ledger(caller.app(), id).await?;
        Ok((ledger, self.now()))
    }

    /// Lists campaigns, newest first.
    pub async fn campaigns(&self, caller: Caller, page: Page) -> Answer<Vec<Campaign>> {
        caller.require(Send)?;
        Ok(self.store.campaigns(caller.app(), page).await?)
    }

    /// Lists the campaigns of such a list that cannot be read; they can be canceled.
    pub async fn broken_campaigns(&self, caller: Caller, page: Page) -> Answer<Vec<CampaignId>> {
        caller.require(Send)?;
        Ok(self.store.broken_campaigns(caller.app(), page).await?)
    }

    /// Cancels, pauses or resumes, and gives the books after it.
    pub async fn act(
        &self,
        caller: Caller,
        id: CampaignId,
        action: CampaignAction,
    ) -> Answer<(Ledger, Timestamp)> {
        caller.require(Send)?;
        let (_, tickets) = self.store.act(caller.app(), id, action, self.now()).await?;
        self.belt.published(tickets);
        self.belt.wake();
        self.ledger(caller, id).await
    }
}
