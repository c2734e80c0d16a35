//! The deliveries of a message: the state of each device of its audience.

use stentor_core::campaign::ProviderLedger;
use stentor_core::delivery::{DeliveryState, ShownState};
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::ports::store::ChunkRecords;

use super::{Caller, Problem, Service, ServiceResult};
use crate::contract::devices::{DeliveryList, DeliveryQuery, DeliveryView};
use crate::contract::table::ListMessageDeliveries;
use crate::contract::{After, Serve};

/// Chunks that are read at once.
const CHUNKS_AT_ONCE_MAX_COUNT: usize = 16;
/// Chunks that one request reads at most; matching deliveries may be rare.
const CHUNKS_PER_REQUEST_MAX_COUNT: usize = 1_024;

/// Position of the next delivery: its chunk, and its index in the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeliveryPlace {
    chunk: ChunkId,
    place: usize,
}

impl DeliveryPlace {
    const FIRST: Self = Self { chunk: ChunkId::from_raw(0), place: 0 };

    fn read(text: &str) -> Option<Self> {
        let (chunk, place) = text.split_once('.')?;
        Some(Self { chunk: chunk.parse().ok()?, place: place.parse().ok()? })
    }

    fn next_chunk(self) -> Self {
        Self { chunk: ChunkId::from_raw(self.chunk.raw() + 1), place: 0 }
    }
}

impl std::fmt::Display for DeliveryPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.chunk, self.place)
    }
}

impl Serve<ListMessageDeliveries> for Service {
    async fn serve(
        &self,
        caller: Caller,
        message: MessageId,
        DeliveryQuery { after, limit, state }: DeliveryQuery,
    ) -> ServiceResult<DeliveryList> {
        let limit = After { after: None, limit }.limit()?;
        let wrong = || Problem::field("after", "is not a value of `next`");
        let from = after.map(|text| DeliveryPlace::read(&text).ok_or_else(wrong)).transpose()?;
        caller.allow::<ListMessageDeliveries>()?;
        let total = match (from, state) {
            (None, Some(state)) => self.total_in(caller.app(), message, state).await?,
            _ => None,
        };
        let mut page = DeliveryPage { limit, state, total, deliveries: Vec::new() };
        let (mut at, mut seen) = (from.unwrap_or(DeliveryPlace::FIRST), 0);
        let next = loop {
            if page.is_complete() {
                break None;
            }
            let max = CHUNKS_AT_ONCE_MAX_COUNT;
            let chunks = self.store.chunk_records(caller.app(), message, at.chunk, max).await?;
            if let Some(full) = page.add(&chunks, at) {
                break Some(full);
            }
            let Some(last) = chunks.last() else { break None };
            at = DeliveryPlace { chunk: last.chunk, place: 0 }.next_chunk();
            seen += chunks.len();
            if seen >= CHUNKS_PER_REQUEST_MAX_COUNT {
                break Some(at);
            }
        };
        Ok(DeliveryList { deliveries: page.deliveries, next: next.map(|at| at.to_string()) })
    }
}

impl Service {
    /// Returns the number of deliveries in a state, if the campaign has sums.
    async fn total_in(
        &self,
        app: AppId,
        message: MessageId,
        state: ShownState,
    ) -> ServiceResult<Option<u64>> {
        let sums = self.store.sums(app, vec![message.into()]).await?;
        let of_provider = |provider: &ProviderLedger| match DeliveryState::from_code(state.code()) {
            Some(state) => *{ provider.tally }.of(state),
            None => provider.delivered,
        };
        Ok(sums.first().map(|(_, providers)| providers.iter().map(of_provider).sum()))
    }
}

/// A page being filled.
struct DeliveryPage {
    limit: usize,
    state: Option<ShownState>,
    /// Matching deliveries from the page on, so that chunks without any are not read in vain; `None` if that is not known.
    total: Option<u64>,
    deliveries: Vec<DeliveryView>,
}

impl DeliveryPage {
    fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.deliveries.len() as u64 >= total)
    }

    /// Adds matching deliveries from a position on. Returns the position of the next page if the page is full.
    fn add(&mut self, chunks: &[ChunkRecords], from: DeliveryPlace) -> Option<DeliveryPlace> {
        for chunk in chunks {
            let first = if chunk.chunk == from.chunk { from.place } else { 0 };
            for (place, device, record) in chunk.last_attempts().filter(|(place, ..)| *place >= first) {
                if self.state.is_some_and(|state| !state.means(record)) {
                    continue;
                }
                if self.deliveries.len() == self.limit {
                    return Some(DeliveryPlace { chunk: chunk.chunk, place });
                }
                self.deliveries.push(view(chunk, device, record));
            }
        }
        None
    }
}

fn view(chunk: &ChunkRecords, device: DeviceId, record: stentor_core::delivery::Record) -> DeliveryView {
    DeliveryView {
        device,
        provider: chunk.provider,
        chunk: chunk.chunk,
        attempt: chunk.attempt,
        state: ShownState::of(record).as_str(),
        reason: record.reason().as_str(),
        ambiguous: record.is_ambiguous(),
        at: chunk.at.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_complete_with_the_last_delivery_of_its_state_and_never_where_their_number_is_not_known() {
        let page = |total| DeliveryPage { limit: 5, state: None, total, deliveries: Vec::new() };
        assert!(page(Some(0)).is_complete());
        assert!(!page(Some(1)).is_complete() && !page(None).is_complete());
    }
}
