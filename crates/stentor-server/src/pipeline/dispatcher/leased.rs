//! Chunks that were leased as their messages were stored: they come without a ticket.

use stentor_core::chunk::Lane;
use stentor_core::time::Timestamp;

use super::{ChunkDispatcher, FAILURE_PAUSE, Resources};
use crate::pipeline::leased_inbox::LeasedArrival;
use crate::pipeline::provider_table::{BreakerState, ProviderKey};
use crate::pipeline::settler_inbox::ChunkPlace;

/// Chunks after which the lanes of the queue get their turn.
const ROUND_MAX_CHUNKS: usize = 128;

impl ChunkDispatcher {
    /// Hands out chunks that are leased already, as far as there is room for them; the next settlement makes more. Returns true if it ended
    /// before the rest, so that the lanes of the queue get their turn.
    pub(super) async fn serve_leased(&mut self, now: Timestamp) -> bool {
        let (mut unsendable, mut keys) = (Vec::new(), self.shared.leased_inbox.keys(self.kind));
        keys.sort_unstable();
        let mut served = 0;
        while !keys.is_empty() && served < ROUND_MAX_CHUNKS {
            // One of each credential in turn.
            let mut at = 0;
            while let Some(key) = keys.get(at).copied() {
                match self.serve_one_leased(key, now, &mut unsendable).await {
                    true => (at, served) = (at + 1, served + 1),
                    false => drop(keys.remove(at)),
                }
            }
        }
        self.release(unsendable, now).await;
        !keys.is_empty()
    }

    /// Hands out the first leased chunk of a credential. Returns false if there is none, or no room for one.
    async fn serve_one_leased(
        &mut self,
        key: ProviderKey,
        now: Timestamp,
        unsendable: &mut Vec<LeasedArrival>,
    ) -> bool {
        let Some(hold) = self.reserve(key.0, 1, 0).pop() else { return false };
        let Some(arrival) = self.shared.leased_inbox.pop(key) else { return false };
        let lane = Lane { provider: self.kind, app: key.0, class: self.class };
        let is_open = self.shared.providers.state(key, now) == BreakerState::Closed;
        let grant = if is_open { self.grants(key, lane, 1, now).pop() } else { None };
        match (grant, self.shared.providers.handle(key, now).await) {
            (Some(grant), Some(handle)) => {
                let LeasedArrival { chunk, guard, place } = arrival;
                let place = ChunkPlace::AtOnce(place);
                self.hand_out(Resources { place, hold, grant, handle, probe: None }, chunk, guard);
            }
            _ => unsendable.push(arrival),
        }
        true
    }

    /// Gives back chunks that cannot be sent now; the queue has them from then on.
    async fn release(&self, unsendable: Vec<LeasedArrival>, now: Timestamp) {
        if unsendable.is_empty() {
            return;
        }
        let leases: Vec<_> = unsendable.iter().map(|arrival| arrival.chunk.lease()).collect();
        match self.shared.store.release(&leases, now).await {
            Ok(tickets) => {
                self.shared.note_queued(&tickets);
                self.shared.publish(&tickets).await;
            }
            Err(error) => {
                tracing::warn!(%error, "chunks that cannot be sent now could not be given back: they are tried again");
                unsendable.into_iter().for_each(|arrival| self.shared.leased_inbox.push(arrival));
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}
