//! The prefetch of rows that a transaction needs, read together. Other rows are read when they are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stentor_core::campaign::ProviderLedger;
use stentor_core::chunk::TrafficClass;
use stentor_core::delivery::Record;
use stentor_core::device::ProviderKind;
use stentor_core::id::{CampaignId, ChunkId, DeviceId, MessageId};
use stentor_core::ledger::{Books, Standing};
use stentor_core::message::Message;

use super::chunks::{self, ChunkRow};
use super::message_rows::{self, MessageCache};
use super::{books, campaigns, receipt_rows, tokens};
use crate::postgres::engine::Connection;
use crate::sql::{Done, exists, int, unavailable};

/// Tokens of a chunk with more devices are read as a range of their own, which costs less.
const FEW_DEVICES_MAX_COUNT: usize = 16;

/// Prefetched rows of chunks and their campaigns.
///
/// A row that cannot be read is left out: its user reads it alone, and gets the error.
#[derive(Default)]
pub(super) struct PrefetchedRows {
    chunks: BTreeMap<ChunkId, ChunkRow>,
    sums: BTreeMap<CampaignId, Vec<ProviderLedger>>,
    standings: BTreeMap<CampaignId, Standing>,
    devices: BTreeMap<ChunkId, Vec<DeviceId>>,
    records: BTreeMap<ChunkId, Vec<Record>>,
    tokens: BTreeMap<i64, String>,
    messages: BTreeMap<MessageId, Arc<Message>>,
}

impl PrefetchedRows {
    /// Reads chunks and the sums of their campaigns.
    pub(super) fn of_chunks(connection: &Connection, ids: &[ChunkId]) -> Done<Self> {
        Self::with_sums(connection, chunks::find_all(connection, ids)?)
    }

    /// Reads the same for a lease. Fails if the instance is not among the nodes.
    pub(super) fn to_lease(connection: &Connection, ids: &[ChunkId], own: Option<u64>) -> Done<Self> {
        let Some(instance) = own else { return Self::of_chunks(connection, ids) };
        let found = chunks::find_all_for(connection, ids, instance)?;
        // If no chunk was found, this node may be gone: only then a statement of its own checks it.
        if found.is_empty() {
            require_node(connection, instance)?;
        }
        Self::with_sums(connection, found)
    }

    fn with_sums(connection: &Connection, found: Vec<ChunkRow>) -> Done<Self> {
        let chunks: BTreeMap<_, _> = found.into_iter().map(|chunk| (chunk.id, chunk)).collect();
        let campaigns: BTreeSet<CampaignId> = chunks.values().map(|chunk| chunk.campaign).collect();
        let campaigns: Vec<_> = campaigns.into_iter().collect();
        let sums =
            if campaigns.is_empty() { BTreeMap::new() } else { books::sums_of_all(connection, &campaigns)? };
        Ok(Self { chunks, sums, ..Self::default() })
    }

    /// Also reads whether their campaigns may be over.
    pub(super) fn with_standings(mut self, connection: &Connection) -> Done<Self> {
        let campaigns: Vec<CampaignId> = self.sums.keys().copied().collect();
        if !campaigns.is_empty() {
            self.standings = campaigns::standings(connection, &campaigns)?.into_iter().collect();
        }
        Ok(self)
    }

    /// Also reads the data needed to send the chunks.
    pub(super) fn with_contents(mut self, connection: &Connection, known: &MessageCache) -> Done<Self> {
        let ids: Vec<ChunkId> = self.chunks.keys().copied().collect();
        if ids.is_empty() {
            return Ok(self);
        }
        self.devices = chunks::devices_of_all(connection, &ids)?.into_iter().collect();
        self.tokens = self.few_tokens(connection)?;
        // Messages to audiences are cached by their first reader, because the next lease needs them again.
        let single = self.chunks.values().filter(|chunk| chunk.lane.class == TrafficClass::Urgent);
        let wanted: BTreeSet<MessageId> =
            single.map(|chunk| chunk.campaign.into()).filter(|id| !known.has(*id)).collect();
        if !wanted.is_empty() {
            let wanted: Vec<_> = wanted.into_iter().collect();
            let found = message_rows::load_all(connection, &wanted)?;
            self.messages = found.into_iter().map(|message| (message.id, Arc::new(message))).collect();
        }
        Ok(self)
    }

    /// Also reads the outcomes of the devices of settled chunks.
    pub(super) fn with_records(mut self, connection: &Connection) -> Done<Self> {
        let ids: Vec<ChunkId> = self.chunks.keys().copied().collect();
        if !ids.is_empty() {
            for (id, devices, records) in receipt_rows::records_of_all(connection, &ids)? {
                self.devices.insert(id, devices);
                self.records.insert(id, records);
            }
        }
        Ok(self)
    }

    /// Reads the tokens of chunks with few devices.
    fn few_tokens(&self, connection: &Connection) -> Done<BTreeMap<i64, String>> {
        let few = self.devices.iter().filter(|(_, devices)| devices.len() <= FEW_DEVICES_MAX_COUNT);
        let keys: Vec<i64> = few
            .filter_map(|(id, devices)| Some((self.chunks.get(id)?.fleet, devices)))
            .flat_map(|(fleet, devices)| devices.iter().map(move |device| fleet.bound(*device)))
            .collect();
        if keys.is_empty() { Ok(BTreeMap::new()) } else { tokens::of_unretired(connection, keys) }
    }

    /// Takes a chunk; a later use reads it again, since it may have changed by then.
    pub(super) fn take_chunk(&mut self, id: ChunkId) -> Option<ChunkRow> {
        self.chunks.remove(&id)
    }

    /// Returns books, also if a campaign has none yet at the provider.
    pub(super) fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Option<Books> {
        let all = self.sums.get(&campaign)?;
        let stored = all.iter().find(|sums| sums.provider == provider);
        Some(stored.map_or_else(|| Books::new(provider), |sums| Books::open(sums.clone())))
    }

    /// Returns the sums of a campaign at all providers.
    pub(super) fn sums(&self, campaign: CampaignId) -> Option<Vec<ProviderLedger>> {
        self.sums.get(&campaign).cloned()
    }

    /// Updates books that were changed.
    pub(super) fn note(&mut self, campaign: CampaignId, books: &Books) {
        let Some(all) = self.sums.get_mut(&campaign) else { return };
        let changed = books.ledger();
        match all.iter_mut().find(|sums| sums.provider == changed.provider) {
            Some(sums) => sums.clone_from(changed),
            None => {
                all.push(changed.clone());
                all.sort_by_key(|sums| sums.provider.code());
            }
        }
    }

    /// Returns the facts that decide whether a campaign is over.
    pub(super) fn standing(&self, campaign: CampaignId) -> Option<Standing> {
        self.standings.get(&campaign).copied()
    }

    /// Returns the devices of a chunk.
    pub(super) fn devices(&self, id: ChunkId) -> Option<&[DeviceId]> {
        self.devices.get(&id).map(Vec::as_slice)
    }

    /// Takes the outcomes of the devices of a settled chunk; a later use reads them again, since they may be rewritten by then.
    pub(super) fn take_records(&mut self, id: ChunkId) -> Option<Vec<Record>> {
        self.records.remove(&id)
    }

    /// Returns the tokens of unretired devices by key, if they were read, which depends on the number of devices.
    pub(super) fn tokens(&self, id: ChunkId) -> Option<&BTreeMap<i64, String>> {
        let devices = self.devices(id)?;
        (devices.len() <= FEW_DEVICES_MAX_COUNT).then_some(&self.tokens)
    }

    /// Returns a message.
    pub(super) fn message(&self, id: MessageId) -> Option<&Arc<Message>> {
        self.messages.get(&id)
    }
}

/// Fails if an instance was declared dead by others, or has left.
fn require_node(connection: &Connection, instance: u64) -> Done<()> {
    match exists(connection, "SELECT 1 FROM nodes WHERE instance = $1", [int(instance)])? {
        true => Ok(()),
        false => {
            Err(unavailable("this server is not among those that use the database: it must join them again"))
        }
    }
}
