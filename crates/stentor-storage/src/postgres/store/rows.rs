//! The ledger's rows within one transaction, as core's rules read and write them.

use std::cell::RefCell;
use std::ops::Range;

use crate::postgres::engine::Connection;
use stentor_core::campaign::{Campaign, CampaignState, ProviderLedger};
use stentor_core::chunk::Lane;
use stentor_core::delivery::Record;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Books, Contents, Damaged, Finish, LedgerRows, NewChunk, OrphanedBooks, Standing};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Lease, LeaseTerms, NodeEvent};
use stentor_core::time::Timestamp;

use super::app_providers::{AppProvider, FleetCache};
use super::chunk_writes::{ChunkSettlement, NewChunkRow};
use super::chunks::{self, ChunkRow};
use super::contents;
use super::message_rows::MessageCache;
use super::pending_writes::PendingWrites;
use super::prefetched_rows::PrefetchedRows;
use super::receipt_rows::{self, RewrittenRecords};
use super::{books, campaigns, devices, producers, sequences};
use crate::postgres::transactor::{LockScope, hold};
use crate::sql::store::start::StartRows;
use crate::sql::{self, Done, Portion, SqlError, damaged, int, one, shared_ledger_rows, time};

/// The rows of one transaction, with a cache of those read repeatedly.
pub(crate) struct Rows<'a> {
    pub(super) connection: &'a Connection,
    portion: Portion<'a>,
    known: Option<&'a MessageCache>,
    /// The instance of this node, if it has joined the others.
    own: Option<u64>,
    fleets: FleetCache,
    read: RefCell<PrefetchedRows>,
    pending: RefCell<PendingWrites>,
    /// True if writes are collected to be executed together.
    is_batch: bool,
    /// Chunk numbers reserved by this transaction, and the number reserved at a time.
    numbers: (Range<u64>, u64),
}

impl<'a> Rows<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            portion: Portion::begin(connection),
            known: None,
            own: None,
            fleets: FleetCache::default(),
            read: RefCell::default(),
            pending: RefCell::default(),
            is_batch: false,
            numbers: (0..0, 1),
        }
    }

    /// Executes work, and its writes together at the end.
    pub(super) fn batch<T>(mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        self.is_batch = true;
        let done = work(&mut self)?;
        self.flush()?;
        Ok(done)
    }

    /// Uses rows that were read together.
    pub(super) fn having_read(self, read: PrefetchedRows) -> Self {
        Self { read: RefCell::new(read), ..self }
    }

    /// Reserves `count` chunk numbers at a time; unused ones are lost.
    pub(super) fn numbering(self, count: usize) -> Self {
        Self { numbers: (0..0, (count as u64).max(1)), ..self }
    }

    /// Returns the number of pending rows.
    pub(super) fn pending_count(&self) -> u64 {
        self.pending.borrow().count() as u64
    }

    /// Returns the connection for reading rows that this transaction may have changed, after all writes.
    fn up_to_date(&self) -> Done<&'a Connection> {
        self.flush()?;
        Ok(self.connection)
    }

    /// Returns the connection for changing rows that were read before.
    fn changing(&self) -> Done<&'a Connection> {
        self.flush()?;
        self.read.take();
        Ok(self.connection)
    }

    /// Adds a pending write, which is executed at once outside of a batch.
    fn write(&self, note: impl FnOnce(&mut PendingWrites)) -> Done<()> {
        note(&mut self.pending.borrow_mut());
        if self.is_batch { Ok(()) } else { self.flush() }
    }

    fn lock_registry(&self) {
        hold(self.connection, LockScope::Registry);
    }

    fn flush(&self) -> Done<()> {
        self.pending.take().write(self.connection, self.own)
    }

    fn next_chunk(&mut self) -> Done<ChunkId> {
        let (numbers, count) = &mut self.numbers;
        if numbers.is_empty() {
            let last = sequences::take(self.connection, "chunk", *count)?;
            *numbers = last + 1 - *count..last + 1;
        }
        let number = numbers.next().ok_or_else(|| damaged("a chunk without a number"))?;
        Ok(ChunkId::from_raw(number))
    }

    /// Uses a cache of messages.
    pub(super) fn knowing(connection: &'a Connection, known: &'a MessageCache) -> Self {
        Self { known: Some(known), ..Self::new(connection) }
    }

    /// Acts for one of the nodes. Only its own leases expire here, because other nodes extend theirs by their own clocks. Events are
    /// published to the others.
    pub(super) fn of(connection: &'a Connection, own: Option<u64>) -> Self {
        Self { own, ..Self::new(connection) }
    }

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
        let connection = self.changing()?;
        let done = crate::sql::attempt(connection, || {
            let done = work(self)?;
            self.flush()?;
            Ok(done)
        })?;
        if done.is_err() {
            // It was rolled back, and so are its pending writes.
            self.pending.take();
            self.read.take();
        }
        Ok(done)
    }

    fn is_portion_over(&self) -> bool {
        self.portion.is_over_with(self.pending_count())
    }

    fn chunk(&self, id: ChunkId) -> Done<Option<ChunkRow>> {
        let read = self.read.borrow_mut().take_chunk(id);
        let found = match read {
            Some(chunk) => Some(chunk),
            None => chunks::find(self.up_to_date()?, id)?,
        };
        if let Some(chunk) = &found {
            self.note(chunk.fleet);
        }
        Ok(found)
    }

    fn devices(&self, chunk: &ChunkRow) -> Done<Vec<DeviceId>> {
        if let Some(devices) = self.read.borrow().devices(chunk.id).filter(|all| all.len() == chunk.count) {
            return Ok(devices.to_vec());
        }
        chunks::devices(self.up_to_date()?, chunk.id, chunk.count)
    }

    fn contents(&self, chunk: &ChunkRow, now: Timestamp) -> Done<Contents> {
        contents::contents(self.connection, self.known, &self.read.borrow(), chunk, now)
    }

    fn leases_over(&self, now: Timestamp, max: usize) -> Done<Vec<ChunkId>> {
        chunks::leases_over(self.up_to_date()?, now, self.own, max)
    }

    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Done<ChunkId> {
        let fleet = self.fleet(new.lane.app, new.lane.provider)?;
        let id = self.next_chunk()?;
        let row = NewChunkRow::new(id, fleet, new)?;
        self.write(|pending| pending.insert(row))?;
        Ok(id)
    }

    fn write_lease(&mut self, chunk: &ChunkRow, epoch: u32, terms: LeaseTerms) -> Done<()> {
        let is_first = !chunk.campaign_started;
        self.write(|pending| {
            pending.lease(Lease { chunk: chunk.id, epoch }, terms);
            if is_first {
                pending.start(chunk.campaign, terms.now);
            }
        })
    }

    fn write_queued(&mut self, chunk: ChunkId, due_at: Timestamp, ambiguous: bool) -> Done<()> {
        self.write(|pending| pending.queue_again(chunk, due_at, ambiguous))
    }

    fn write_settled(&mut self, chunk: ChunkId, records: &[Record], now: Timestamp) -> Done<()> {
        self.write(|pending| pending.settle(ChunkSettlement::new(chunk, records, now)))
    }

    fn records(&self, chunk: &ChunkRow) -> Done<Vec<Record>> {
        let read = self.read.borrow_mut().take_records(chunk.id);
        match read.filter(|records| records.len() == chunk.count) {
            Some(records) => Ok(records),
            None => receipt_rows::records(self.up_to_date()?, chunk.id, chunk.count),
        }
    }

    fn write_records(&mut self, chunk: &ChunkRow, records: &[Record]) -> Done<()> {
        self.write(|pending| pending.rewrite(RewrittenRecords::new(chunk.id, records)))
    }

    fn write_awaits_receipts(&mut self, chunk: ChunkId, awaits: bool) -> Done<()> {
        let is_noted = self.pending.borrow_mut().await_receipts(chunk, awaits);
        if !is_noted {
            receipt_rows::write_awaits(self.up_to_date()?, chunk, awaits)?;
        }
        match self.own.filter(|_| awaits) {
            Some(_) => self.write(|pending| pending.note_event(NodeEvent::Settled(chunk))),
            None => Ok(()),
        }
    }

    fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Done<Books> {
        let read = self.read.borrow().books(campaign, provider);
        match read {
            Some(books) => Ok(books),
            None => books::open(self.up_to_date()?, campaign, provider),
        }
    }

    fn sums(&self, campaign: CampaignId) -> Done<Option<Vec<ProviderLedger>>> {
        let read = self.read.borrow().sums(campaign);
        match read {
            Some(sums) => Ok(Some(sums)),
            None => books::sums(self.up_to_date()?, campaign),
        }
    }

    fn save_books(&mut self, campaign: CampaignId, books: &Books) -> Done<()> {
        self.read.borrow_mut().note(campaign, books);
        self.write(|pending| pending.save(campaign, books))
    }

    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Done<Vec<CampaignId>> {
        campaigns::orphaned(self.up_to_date()?, expired_by, max)
    }

    fn standing(&self, id: CampaignId) -> Done<Option<Standing>> {
        let read = self.read.borrow().standing(id);
        match read {
            Some(standing) => Ok(Some(standing)),
            None => campaigns::standing(self.up_to_date()?, id),
        }
    }

    fn write_begun(&mut self, id: CampaignId, state: CampaignState, as_of: DeviceId) -> Done<()> {
        self.write(|pending| pending.begin(id, state, as_of))
    }

    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
        self.write(|pending| pending.end(id, end.clone(), now))
    }
}
