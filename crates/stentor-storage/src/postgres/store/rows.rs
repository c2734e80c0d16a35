//! The ledger's rows within one transaction, as the rules of core ask for them.

use std::cell::RefCell;

use crate::postgres::engine::Connection;
use stentor_core::campaign::{Campaign, CampaignState, ProviderLedger};
use stentor_core::chunk::Lane;
use stentor_core::delivery::Record;
use stentor_core::device::{ProviderKind, PushToken};
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Books, Contents, Damaged, Finish, Forsaken, LedgerRows, NewChunk, Standing};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeaseTerms, NodeEvent};
use stentor_core::time::Timestamp;

use super::app_providers::{self, Fleet};
use super::chunks::{self, KeptChunk};
use super::contents;
use super::message_rows::MessageMemory;
use super::{books, campaigns, devices, node_events, producers, receipt_rows};
use crate::postgres::damage;
use crate::postgres::fault::{Done, PostgresError};
use crate::postgres::portion::WorkPortion;
use crate::postgres::query::one;
use crate::postgres::row::{int, time};
use crate::postgres::transactor::{LockScope, hold};

/// The rows of one transaction, and what of them is asked for again and again.
pub(super) struct LedgerConnection<'a> {
    pub(super) connection: &'a Connection,
    portion: WorkPortion<'a>,
    known: Option<&'a MessageMemory>,
    /// Which of the nodes this is, where it has joined them.
    own: Option<u64>,
    fleets: RefCell<Vec<Fleet>>,
}

impl<'a> LedgerConnection<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        let (portion, fleets) = (WorkPortion::begin(connection), RefCell::default());
        Self { connection, portion, known: None, own: None, fleets }
    }

    /// Uses what need not be read again.
    pub(super) fn knowing(connection: &'a Connection, known: &'a MessageMemory) -> Self {
        Self { known: Some(known), ..Self::new(connection) }
    }

    /// Speaks for one of the nodes: its leases alone run out here, since the others prolong theirs by clocks of their own, and
    /// what others must know of is told them.
    pub(super) fn of(connection: &'a Connection, own: Option<u64>) -> Self {
        Self { own, ..Self::new(connection) }
    }

    /// Remembers a fleet.
    pub(super) fn note(&self, fleet: Fleet) {
        let mut known = self.fleets.borrow_mut();
        if !known.contains(&fleet) {
            known.push(fleet);
        }
    }

    /// Returns the fleet of an app at a provider; one that is not there is made.
    pub(super) fn fleet(&self, app: AppId, provider: ProviderKind) -> Done<Fleet> {
        let is_it = |fleet: &&Fleet| (fleet.app, fleet.provider) == (app, provider);
        if let Some(known) = self.fleets.borrow().iter().find(is_it) {
            return Ok(*known);
        }
        let fleet = app_providers::ensure(self.connection, app, provider)?;
        self.note(fleet);
        Ok(fleet)
    }

    /// Returns the fleet of a number.
    pub(super) fn fleet_by_no(&self, no: u64) -> Done<Fleet> {
        if let Some(known) = self.fleets.borrow().iter().find(|fleet| fleet.no == no) {
            return Ok(*known);
        }
        let fleet = app_providers::by_no(self.connection, no)?;
        self.note(fleet);
        Ok(fleet)
    }
}

impl LedgerRows for LedgerConnection<'_> {
    type Error = PostgresError;
    type Chunk = KeptChunk;

    const ENDED_AT_ONCE_MAX_COUNT: usize = 64;

    fn is_unreadable(fault: &PostgresError) -> bool {
        fault.is_damage()
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<Done<T>> {
        let connection = self.connection;
        damage::attempt(connection, || work(self))
    }

    fn note_damage(&self, row: Damaged, fault: &PostgresError) {
        match row {
            Damaged::Chunk(id) => damage::note(self.connection, "chunks", int(id.raw()), fault),
            Damaged::Campaign(id) => damage::note(self.connection, "campaigns", int(id.raw()), fault),
        }
    }

    fn is_portion_over(&self) -> bool {
        self.portion.is_over()
    }

    fn chunk(&self, id: ChunkId) -> Done<Option<KeptChunk>> {
        let found = chunks::find(self.connection, id)?;
        if let Some(chunk) = &found {
            self.note(chunk.fleet);
        }
        Ok(found)
    }

    fn devices(&self, chunk: &KeptChunk) -> Done<Vec<DeviceId>> {
        chunks::devices(self.connection, chunk.id, chunk.count)
    }

    fn contents(&self, chunk: &KeptChunk, now: Timestamp) -> Done<Contents> {
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
        chunks::leases_over(self.connection, now, self.own, max)
    }

    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Done<ChunkId> {
        let fleet = self.fleet(new.lane.app, new.lane.provider)?;
        chunks::insert(self.connection, fleet, new)
    }

    fn write_lease(&mut self, chunk: &KeptChunk, epoch: u32, terms: LeaseTerms) -> Done<()> {
        chunks::write_lease(self.connection, chunk.id, epoch, terms)?;
        match chunk.campaign_started {
            true => Ok(()),
            false => campaigns::write_started(self.connection, chunk.campaign, terms.now),
        }
    }

    fn copy_lease(&mut self, chunk: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
        chunks::copy_lease(self.connection, chunk, epoch, other)
    }

    fn write_queued(&mut self, chunk: ChunkId, due_at: Timestamp, ambiguous: bool) -> Done<()> {
        chunks::write_queued(self.connection, chunk, due_at, ambiguous)
    }

    fn write_settled(&mut self, chunk: ChunkId, records: &[Record], now: Timestamp) -> Done<()> {
        chunks::write_settled(self.connection, chunk, records, now)
    }

    fn records(&self, chunk: &KeptChunk) -> Done<Vec<Record>> {
        receipt_rows::records(self.connection, chunk.id, chunk.count)
    }

    fn write_records(&mut self, chunk: &KeptChunk, records: &[Record]) -> Done<()> {
        receipt_rows::write_records(self.connection, chunk.id, records)
    }

    fn write_awaits_receipts(&mut self, chunk: &KeptChunk, awaits: bool) -> Done<()> {
        receipt_rows::write_awaits(self.connection, chunk.id, awaits)?;
        match self.own.filter(|_| awaits) {
            Some(own) => node_events::tell(self.connection, own, &NodeEvent::Settled(chunk.id)),
            None => Ok(()),
        }
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
        books::save(self.connection, campaign, books)
    }

    fn complete_books(&mut self, campaign: CampaignId) -> Done<()> {
        books::complete(self.connection, campaign)
    }

    fn forsaken_books(&self, of: Forsaken) -> Done<Vec<(CampaignId, Books)>> {
        match of {
            Forsaken::OfCampaign(campaign, provider) => {
                books::forsaken(self.connection, int(campaign.raw()), provider)
            }
            Forsaken::OfChunk(chunk) => books::forsaken_of_chunk(self.connection, chunk),
        }
    }

    fn forsaken_campaigns(&self, expired_by: Timestamp, max: usize) -> Done<Vec<CampaignId>> {
        campaigns::forsaken(self.connection, expired_by, max)
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
        campaigns::write_begun(self.connection, id, state, as_of)
    }

    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Done<()> {
        campaigns::write_end(self.connection, id, end, now)
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

    fn token_since(&self, chunk: &KeptChunk, device: DeviceId) -> Done<Option<Timestamp>> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(None) };
        one(self.connection, "SELECT token_since FROM devices WHERE key = $1", [key], |row| time(row, 0))
    }

    fn retire(
        &mut self,
        chunk: &KeptChunk,
        device: DeviceId,
        reason: Reason,
        since: Timestamp,
        now: Timestamp,
    ) -> Done<()> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(()) };
        hold(self.connection, LockScope::Registry);
        devices::retire(self.connection, chunk.fleet, key, reason, (since, now))
    }

    fn move_token(
        &mut self,
        chunk: &KeptChunk,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Done<bool> {
        let Some(key) = chunk.fleet.key(device) else { return Ok(true) };
        hold(self.connection, LockScope::Registry);
        devices::move_token(self.connection, chunk.fleet, key, token, now)
    }
}
