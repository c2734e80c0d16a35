//! The port for proposals.

use async_trait::async_trait;

use super::{Listed, Page, StoreError};
use crate::id::{AppId, ProposalId};
use crate::proposal::Proposal;
use crate::time::Timestamp;

/// Messages that wait for an approval. Expired ones are not returned.
#[async_trait]
pub trait ProposalStore: Send + Sync {
    /// Returns one proposal, approved or not.
    async fn proposal(&self, app: AppId, id: ProposalId, now: Timestamp) -> Result<Proposal, StoreError>;

    /// Lists the proposals that wait, in order of id.
    async fn proposals(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Listed<Proposal, ProposalId>, StoreError>;
}
