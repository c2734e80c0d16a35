//! Pending writes of a transaction. Those of one kind are executed in one statement, since a network round trip costs more than a row.

use stentor_core::campaign::CampaignState;
use stentor_core::id::{CampaignId, ChunkId, DeviceId};
use stentor_core::ledger::{Books, Finish};
use stentor_core::ports::store::{Lease, LeaseTerms, NodeEvent};
use stentor_core::time::Timestamp;

use super::book_writes::{self, ChangedSums, EndCounts};
use super::campaign_writes::{self, BegunCampaign, EndedCampaign};
use super::chunk_writes::{self, ChunkSettlement, NewChunkRow, QueuedAgain};
use super::node_events;
use super::receipt_rows::{self, RewrittenRecords};
use crate::postgres::engine::Connection;
use crate::sql::Done;

/// The writes not yet executed, by kind.
#[derive(Default)]
pub(super) struct PendingWrites {
    begun: Vec<BegunCampaign>,
    chunks: Vec<NewChunkRow>,
    leases: Vec<(Lease, LeaseTerms)>,
    started: Vec<(CampaignId, Timestamp)>,
    queued: Vec<QueuedAgain>,
    settled: Vec<ChunkSettlement>,
    rewritten: Vec<RewrittenRecords>,
    sums: ChangedSums,
    ends: EndCounts,
    ended: Vec<EndedCampaign>,
    events: Vec<NodeEvent>,
}

impl PendingWrites {
    /// Returns the number of pending rows.
    pub(super) fn count(&self) -> usize {
        let chunks = self.chunks.len()
            + self.leases.len()
            + self.queued.len()
            + self.settled.len()
            + self.rewritten.len();
        let campaigns = self.begun.len() + self.started.len() + self.ended.len();
        chunks + campaigns + self.sums.len() + self.ends.len()
    }

    /// A campaign begins.
    pub(super) fn begin(&mut self, id: CampaignId, state: CampaignState, as_of: DeviceId) {
        self.begun.push((id, state, as_of));
    }

    /// A chunk is new.
    pub(super) fn insert(&mut self, chunk: NewChunkRow) {
        self.chunks.push(chunk);
    }

    /// A chunk is leased.
    pub(super) fn lease(&mut self, lease: Lease, terms: LeaseTerms) {
        self.leases.push((lease, terms));
    }

    /// A campaign has its first lease.
    pub(super) fn start(&mut self, id: CampaignId, now: Timestamp) {
        if !self.started.iter().any(|(other, _)| *other == id) {
            self.started.push((id, now));
        }
    }

    /// A chunk is queued again.
    pub(super) fn queue_again(&mut self, id: ChunkId, due_at: Timestamp, ambiguous: bool) {
        self.queued.push((id, due_at, ambiguous));
    }

    /// A chunk is settled.
    pub(super) fn settle(&mut self, settled: ChunkSettlement) {
        self.settled.push(settled);
    }

    /// Devices of a settled chunk have confirmed deliveries.
    pub(super) fn rewrite(&mut self, rewritten: RewrittenRecords) {
        self.rewritten.push(rewritten);
    }

    /// Sets whether a chunk awaits receipts; returns false if no pending write of the chunk can carry it.
    pub(super) fn await_receipts(&mut self, id: ChunkId, awaits: bool) -> bool {
        let settled = self.settled.last_mut().filter(|settled| settled.id == id);
        let rewritten = self.rewritten.last_mut().filter(|rewritten| rewritten.id == id);
        let noted = match (settled, rewritten) {
            (Some(settled), None) => &mut settled.awaits_receipts,
            (None, Some(rewritten)) => &mut rewritten.awaits_receipts,
            _ => return false,
        };
        *noted = awaits;
        true
    }

    /// Books have changed.
    pub(super) fn save(&mut self, campaign: CampaignId, books: &Books) {
        let sums = books.ledger();
        for ((state, reason), count) in books.ends() {
            // Sums replace the former ones; ends are those since the books were opened, and add up.
            *self.ends.entry((campaign, sums.provider, state, reason)).or_default() += count;
        }
        self.sums.insert((campaign, sums.provider), sums.clone());
    }

    /// A campaign ends.
    pub(super) fn end(&mut self, id: CampaignId, end: Finish, now: Timestamp) {
        self.ended.push((id, end, now));
    }

    /// Adds an event for the other nodes.
    pub(super) fn note_event(&mut self, event: NodeEvent) {
        self.events.push(event);
    }

    /// Executes all writes as one of the nodes, if it has joined them. The order is that of a chunk's life, so that of two writes to one
    /// row the later one takes effect: within a transaction no chunk and no campaign returns to an earlier state.
    pub(super) fn write(self, connection: &Connection, own: Option<u64>) -> Done<()> {
        let Self { begun, chunks, leases, started, queued, settled, rewritten, sums, ends, ended, events } =
            self;
        some(&begun, |begun| campaign_writes::write_begun(connection, begun))?;
        if !chunks.is_empty() {
            chunk_writes::insert(connection, chunks)?;
        }
        some(&leases, |leases| chunk_writes::write_leases(connection, leases))?;
        some(&started, |started| campaign_writes::write_started(connection, started))?;
        some(&queued, |queued| chunk_writes::write_queued(connection, queued))?;
        if !settled.is_empty() {
            chunk_writes::write_settled(connection, settled)?;
        }
        if !rewritten.is_empty() {
            receipt_rows::write_records(connection, rewritten)?;
        }
        if !sums.is_empty() {
            book_writes::save(connection, &sums)?;
        }
        if !ends.is_empty() {
            book_writes::add_ends(connection, &ends)?;
        }
        some(&ended, |ended| campaign_writes::write_ends(connection, ended))?;
        if let Some(own) = own {
            node_events::publish(connection, own, events);
        }
        Ok(())
    }
}

fn some<T>(rows: &[T], write: impl FnOnce(&[T]) -> Done<()>) -> Done<()> {
    if rows.is_empty() { Ok(()) } else { write(rows) }
}
