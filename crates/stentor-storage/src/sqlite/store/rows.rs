//! The ledger's rows within one transaction, as core's rules read and write them.

use rusqlite::Connection;
use stentor_core::campaign::{Campaign, CampaignState, ProviderLedger};
use stentor_core::chunk::Lane;
use stentor_core::delivery::Record;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Books, Contents, Damaged, Finish, LedgerRows, NewChunk, OrphanedBooks, Standing};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::LeaseTerms;
use stentor_core::time::Timestamp;

use super::app_providers::{AppProvider, FleetCache};
use super::book_writes;
use super::campaign_writes;
use super::chunk_writes;
use super::chunks::{self, ChunkRow};
use super::contents::{self, LeaseCaches};
use super::lost::Lost;
use super::{books, campaigns, devices, producers, receipt_rows};
use crate::sql::{Done, Portion, SqlError, int, one, time};

/// The rows of one transaction, with a cache of those read repeatedly.
pub(crate) struct Rows<'a> {
    pub(super) connection: &'a Connection,
    portion: Portion<'a>,
    known: Option<&'a LeaseCaches>,
    lost: Option<&'a Lost>,
    fleets: FleetCache,
}

impl<'a> Rows<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        let (portion, fleets) = (Portion::begin(connection), FleetCache::default());
        Self { connection, portion, known: None, lost: None, fleets }
    }

    /// Uses caches of data that need not be read from the file again.
    pub(super) fn knowing(connection: &'a Connection, known: &'a LeaseCaches) -> Self {
        Self { known: Some(known), ..Self::new(connection) }
    }

    /// Skips the chunks that the disk cannot read.
    pub(super) fn around(connection: &'a Connection, lost: &'a Lost) -> Self {
        Self { lost: Some(lost), ..Self::new(connection) }
    }

    /// Remembers a fleet.
    pub(super) fn note(&self, fleet: AppProvider) {
        self.fleets.note(fleet);
    }

    /// Returns the fleet of an app at a provider; creates it if it is missing.
    pub(super) fn fleet(&self, app: AppId, provider: ProviderKind) -> Done<AppProvider> {
        self.fleets.of(self.connection, app, provider)
    }

    /// Returns the fleet of a number.
    pub(super) fn fleet_by_no(&self, no: u64) -> Done<AppProvider> {
        self.fleets.by_no(self.connection, no)
    }
}

impl LedgerRows for Rows<'_> {
    type Error = SqlError;
    type Chunk = ChunkRow;

    const ENDED_AT_ONCE_MAX_COUNT: usize = 64;

    fn is_unreadable(fault: &SqlError) -> bool {
        fault.is_damage()
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<Done<T>> {
        let connection = self.connection;
        crate::sql::attempt(connection, || work(self))
    }

    fn note_damage(&self, row: Damaged, fault: &SqlError) {
        match row {
            Damaged::Chunk(id) => crate::sql::note_damage(self.connection, "chunks", int(id.raw()), fault),
            Damaged::Campaign(id) => {
                crate::sql::note_damage(self.connection, "campaigns", int(id.raw()), fault)
            }
        }
    }

    fn is_portion_over(&self) -> bool {
        self.portion.is_over()
    }

    fn skips(&self, chunk: ChunkId) -> bool {
        self.lost.is_some_and(|lost| lost.has(chunk))
    }

    fn touch(&self, chunk: Option<ChunkId>) {
        if let Some(lost) = self.lost {
            lost.touch(chunk);
        }
    }

    fn tries_each_alone(&self) -> bool {
        self.lost.is_some_and(Lost::is_alone)
    }

    fn chunk(&self, id: ChunkId) -> Done<Option<ChunkRow>> {
        let found = chunks::find(self.connection, id)?;
        if let Some(chunk) = &found {
            self.note(chunk.fleet);
        }
        Ok(found)
    }

    fn devices(&self, chunk: &ChunkRow) -> Done<Vec<DeviceId>> {
        chunks::devices(self.connection, chunk.id, chunk.count)
    }

    fn contents(&self, chunk: &ChunkRow, now: Timestamp) -> Done<Contents> {
        contents::contents(self.connection, self.known, chunk, now)
    }

    fn queued(&self, campaign: CampaignId, only: Option<ProviderKind>, max: usize) -> Done<Vec<ChunkId>> {
        chunks::queued(self.connection, campaign, only, max)
    }

    fn leased(&self) -> Done<Vec<ChunkId>> {
        chunks::leased(self.connection)
    }

    fn is_leased_by(&self, chunk: ChunkId, instance: u64) -> Done<bool> {
        chunks::is_leased_by(self.connection, chunk, instance)
    }

    fn leases_over(&self, now: Timestamp, max: usize) -> Done<Vec<ChunkId>> {
        chunks::leases_over(self.connection, now, None, max)
    }

    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Done<ChunkId> {
        let fleet = self.fleet(new.lane.app, new.lane.provider)?;
        chunk_writes::insert(self.connection, fleet, new)
    }

    fn write_lease(&mut self, chunk: &ChunkRow, epoch: u32, terms: LeaseTerms) -> Done<()> {
        chunk_writes::write_lease(self.connection, chunk.id, epoch, terms)?;
        match chunk.campaign_started {
            true => Ok(()),
            false => campaign_writes::write_started(self.connection, chunk.campaign, terms.now),
        }
    }

    fn copy_lease(&mut self, chunk: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
        chunks::copy_lease(self.connection, chunk, epoch, other)
    }

    fn write_queued(&mut self, chunk: ChunkId, due_at: Timestamp, ambiguous: bool) -> Done<()> {
        chunk_writes::write_queued(self.connection, chunk, due_at, ambiguous)
    }

    fn write_settled(&mut self, chunk: ChunkId, records: &[Record], now: Timestamp) -> Done<()> {
        chunk_writes::write_settled(self.connection, chunk, records, now)
    }

    fn records(&self, chunk: &ChunkRow) -> Done<Vec<Record>> {
        receipt_rows::records(self.connection, chunk.id, chunk.count)
    }

    fn write_records(&mut self, chunk: &ChunkRow, records: &[Record]) -> Done<()> {
        receipt_rows::write_records(self.connection, chunk.id, records)
    }

    fn write_awaits_receipts(&mut self, chunk: ChunkId, awaits: bool) -> Done<()> {
        receipt_rows::write_awaits(self.connection, chunk, awaits)
    }

    fn write_quarantined(&mut self, chunk: ChunkId, now: Timestamp) -> Done<()> {
        chunks::write_quarantined(self.connection, chunk, now)
    }

    fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Done<Books> {
        books::open(self.connection, campaign, provider)
    }

    fn sums(&self, campaign: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
        books::sums(self.connection, campaign)
    }

    fn save_books(&mut self, campaign: CampaignId, books: &Books) -> Done<()> {
        book_writes::save(self.connection, campaign, books)
    }

    fn complete_books(&mut self, campaign: CampaignId) -> Done<()> {
        books::complete(self.connection, campaign)
    }

    fn orphaned_books(&self, of: OrphanedBooks) -> Done<Vec<(CampaignId, Books)>> {
        match of {
            OrphanedBooks::OfCampaign(campaign, provider) => {
                books::orphaned(self.connection, int(campaign.raw()), provider)
            }
            OrphanedBooks::OfChunk(chunk) => books::orphaned_of_chunk(self.connection, chunk),
        }
    }

    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Done<Vec<CampaignId>> {
        // It looks at chunks' own rows.
        match self.lost.is_some_and(Lost::has_any) {
            true => Ok(Vec::new()),
            false => campaigns::orphaned(self.connection, expired_by, max),
        }
    }

    fn campaign(&self, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
        campaigns::find(self.connection, app, id)
    }

    fn standing(&self, id: CampaignId) -> Done<Option<Standing>> {
        campaigns::standing(self.connection, id)
    }

    fn expired_campaigns(
        &self,
        now: Timestamp,
        is_late: impl Fn(Timestamp, Timestamp) -> bool,
        max: usize,
    ) -> Done<Vec<CampaignId>> {
        campaigns::expired(self.connection, now, is_late, max)
    }

    fn write_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
        campaigns::write_state(self.connection, id, state)
    }

    fn force_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
        campaigns::force_state(self.connection, id, state)
    }

    fn write_begun(&mut self, id: CampaignId, state: CampaignState, as_of: DeviceId) -> Done<()> {
        campaign_writes::write_begun(self.connection, id, state, as_of)
    }

    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
        campaign_writes::write_end(self.connection, id, end, now)
    }

    fn add_producer(&mut self, app: AppId, campaign: CampaignId, provider: ProviderKind) -> Done<()> {
        producers::add(self.connection, campaign, self.fleet(app, provider)?)
    }

    fn advance_producer(&mut self, campaign: CampaignId, lane: Lane, cursor: DeviceId) -> Done<()> {
        producers::advance(self.connection, campaign, self.fleet(lane.app, lane.provider)?, cursor)
    }

    fn end_producers(&mut self, campaign: CampaignId, only: Option<ProviderKind>) -> Done<()> {
        producers::end(self.connection, campaign, only)
    }

    fn token_since(&self, chunk: &ChunkRow, device: DeviceId) -> Done<Option<Timestamp>> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(None) };
        one(self.connection, "SELECT token_since FROM devices WHERE key = ?1", [key], |row| time(row, 0))
    }

    fn retire(
        &mut self,
        chunk: &ChunkRow,
        device: DeviceId,
        reason: Reason,
        since: Timestamp,
        now: Timestamp,
    ) -> Done<()> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(()) };
        devices::retire(self.connection, chunk.fleet, key, reason, (since, now))
    }

    fn move_token(
        &mut self,
        chunk: &ChunkRow,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Done<bool> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(true) };
        devices::move_token(self.connection, chunk.fleet, key, token, now)
    }
}
