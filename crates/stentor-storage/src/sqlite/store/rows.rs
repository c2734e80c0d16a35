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
use crate::sql::store::start::StartRows;
use crate::sql::{self, Done, Portion, SqlError, int, one, shared_ledger_rows, time};

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

    /// Nothing is pending: each write is made at once.
    const fn up_to_date(&self) -> Done<&'a Connection> {
        Ok(self.connection)
    }

    const fn changing(&self) -> Done<&'a Connection> {
        Ok(self.connection)
    }

    /// SQLite has a single writer.
    const fn lock_registry(&self) {}

    /// Remembers a fleet.
    pub(super) fn note(&self, fleet: AppProvider) {
        self.fleets.note(fleet);
    }

    /// Finds the fleet of an app at a provider.
    pub(super) fn known_fleet(&self, app: AppId, provider: ProviderKind) -> Done<Option<AppProvider>> {
        self.fleets.find(self.connection, app, provider)
    }

    /// Returns the fleet of an app at a provider; creates it if it is missing.
    pub(super) fn fleet(&self, app: AppId, provider: ProviderKind) -> Done<AppProvider> {
        self.fleets.of(self.connection, app, provider)
    }
}

impl StartRows for Rows<'_> {
    fn connection(&self) -> &sql::Connection {
        self.connection
    }

    fn fleet_by_no(&self, no: u64) -> Done<AppProvider> {
        self.fleets.by_no(self.connection, no)
    }
}

impl LedgerRows for Rows<'_> {
    shared_ledger_rows!();

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<Done<T>> {
        let connection = self.connection;
        crate::sql::attempt(connection, || work(self))
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

    fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Done<Books> {
        books::open(self.connection, campaign, provider)
    }

    fn sums(&self, campaign: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
        books::sums(self.connection, campaign)
    }

    fn save_books(&mut self, campaign: CampaignId, books: &Books) -> Done<()> {
        book_writes::save(self.connection, campaign, books)
    }

    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Done<Vec<CampaignId>> {
        // It looks at chunks' own rows.
        match self.lost.is_some_and(Lost::has_any) {
            true => Ok(Vec::new()),
            false => campaigns::orphaned(self.connection, expired_by, max),
        }
    }

    fn standing(&self, id: CampaignId) -> Done<Option<Standing>> {
        campaigns::standing(self.connection, id)
    }

    fn write_begun(&mut self, id: CampaignId, state: CampaignState, as_of: DeviceId) -> Done<()> {
        campaign_writes::write_begun(self.connection, id, state, as_of)
    }

    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
        campaign_writes::write_end(self.connection, id, end, now)
    }
}
