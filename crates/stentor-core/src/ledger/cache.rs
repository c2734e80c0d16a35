//! The books opened by one transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::Books;
use super::life::{Ending, ending, finish};
use super::rows::{Chunk, Damaged, LedgerRows};
use crate::device::ProviderKind;
use crate::id::CampaignId;
use crate::ports::store::StoreError;
use crate::time::Timestamp;

/// The rows of a transaction and its open books, which are written once, at the end.
pub struct LedgerCache<'a, R: LedgerRows> {
    /// All other rows.
    pub rows: &'a mut R,
    books: BTreeMap<(CampaignId, ProviderKind), Books>,
    /// Campaigns that may be over although none of their books were opened.
    idle: BTreeSet<CampaignId>,
}

impl<'a, R: LedgerRows> LedgerCache<'a, R> {
    /// Creates a cache without open books.
    pub const fn new(rows: &'a mut R) -> Self {
        Self { rows, books: BTreeMap::new(), idle: BTreeSet::new() }
    }

    /// Opens the books of a campaign at a provider; a campaign without stored books gets empty ones.
    pub fn open(&mut self, campaign: CampaignId, provider: ProviderKind) -> Result<&mut Books, R::Error> {
        let key = (campaign, provider);
        if !self.books.contains_key(&key) {
            self.books.insert(key, self.rows.books(campaign, provider)?);
        }
        self.books.get_mut(&key).ok_or_else(|| StoreError::Damaged("books are missing".to_owned()).into())
    }

    /// Opens the books of a campaign without stored books.
    pub fn open_new(&mut self, campaign: CampaignId, provider: ProviderKind) -> &mut Books {
        self.books.entry((campaign, provider)).or_insert_with(|| Books::new(provider))
    }

    /// Returns the end of the chunk's deliveries that would otherwise wait; `None` while they may wait.
    pub fn ending(&mut self, chunk: &Chunk) -> Result<Option<Ending>, R::Error> {
        let stop = &self.open(chunk.campaign, chunk.lane.provider)?.ledger().stop;
        Ok(ending(chunk.campaign_state, stop.as_ref().map(|stop| stop.reason)))
    }

    /// Notes a campaign with an empty audience.
    pub(super) fn note_idle(&mut self, campaign: CampaignId) {
        self.idle.insert(campaign);
    }

    /// Writes all books, and ends campaigns without open deliveries.
    pub fn close(mut self, now: Timestamp) -> Result<(), R::Error> {
        for ((campaign, _), books) in &self.books {
            self.rows.save_books(*campaign, books)?;
            if books.ledger().tally.open() == 0 {
                self.idle.insert(*campaign);
            }
        }
        // After all books: `finish_if_over` reads the sums from the rows.
        let Self { rows, idle, .. } = self;
        idle.into_iter().try_for_each(|campaign| finish_if_over(rows, campaign, now))
    }
}

/// Ends a campaign that is over. An unreadable campaign is left unchanged.
pub fn finish_if_over<R: LedgerRows>(rows: &mut R, id: CampaignId, now: Timestamp) -> Result<(), R::Error> {
    let standing = match rows.standing(id) {
        Err(error) if R::is_unreadable(&error) => {
            rows.note_damage(Damaged::Campaign(id), &error);
            return Ok(());
        }
        found => found?,
    };
    let Some(standing) = standing.filter(|standing| !standing.has_ended && !standing.is_expanding) else {
        return Ok(());
    };
    let Some(sums) = rows.sums(id)? else { return Ok(()) };
    match finish(standing, sums.iter()) {
        Some(end) => rows.write_end(id, &end, now),
        None => Ok(()),
    }
}
