//! The start of a campaign, and the division of its audience into chunks.

use std::sync::Arc;

use super::LedgerCache;
use super::rows::{FIRST_EPOCH, LedgerRows, NewChunk};
use crate::campaign::CampaignState;
use crate::chunk::{Lane, Ticket, TokenList};
use crate::device::ProviderKind;
use crate::id::{CampaignId, DeviceId};
use crate::limits::CHUNK_MAX_DEVICES;
use crate::message::Message;
use crate::ports::store::{Expanded, Expansion, LeaseTerms, LeasedChunk, SendDecision};
use crate::time::Timestamp;

/// The audience of a message at the start of its campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// A large audience at the providers that the app's devices use or used: producers expand it step by step.
    Wide(Vec<ProviderKind>),
    /// These devices by provider, each list ascending.
    Named(Vec<(ProviderKind, Vec<DeviceId>)>),
}

/// Devices at one provider that a message names, with the data needed to send it to them.
#[derive(Debug, Clone)]
pub struct AddressedDevices {
    /// The provider.
    pub provider: ProviderKind,
    /// The devices, ascending; never empty.
    pub devices: Vec<DeviceId>,
    /// The decision for each device.
    pub decisions: Vec<SendDecision>,
    /// Addresses of those with `SendDecision::Send`, in order.
    pub tokens: TokenList,
}

/// Parameters of the first chunks of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// Most devices in one chunk.
    pub chunk_max_devices: usize,
    /// The current time.
    pub now: Timestamp,
}

/// Begins a waiting campaign: fixes the upper bound of its audience and creates its producers or its chunks. Returns the tickets of the
/// chunks.
pub fn begin<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    message: &Message,
    (audience, as_of): (Audience, DeviceId),
    cutting: Cutting,
) -> Result<Vec<Ticket>, R::Error> {
    let id = CampaignId::from(message.id);
    ledger.rows.write_begun(id, CampaignState::Running, as_of)?;
    let lists = match audience {
        Audience::Named(lists) => lists,
        Audience::Wide(providers) => {
            // The producers find out which of the providers have an audience.
            for provider in &providers {
                ledger.rows.add_producer(message.app, id, *provider)?;
                ledger.open_new(id, *provider);
            }
            if providers.is_empty() {
                // No books are opened, so the campaign would not be finished at the close otherwise.
                ledger.note_idle(id);
            }
            return Ok(Vec::new());
        }
    };
    let mut tickets = Vec::new();
    for (provider, devices) in lists {
        let lane = Lane { provider, app: message.app, class: message.spec.target.class() };
        // Before `cut`, which would query books that cannot exist yet.
        ledger.open_new(id, provider).set_complete(true);
        tickets.extend(cut(ledger, id, lane, &devices, cutting)?);
    }
    if tickets.is_empty() {
        ledger.note_idle(id);
    }
    Ok(tickets)
}

/// Divides devices that are new to a campaign into chunks.
fn cut<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    campaign: CampaignId,
    lane: Lane,
    devices: &[DeviceId],
    Cutting { chunk_max_devices, now }: Cutting,
) -> Result<Vec<Ticket>, R::Error> {
    // Audience and queue grow in the same transaction as the chunks; otherwise the sums would count deliveries without a chunk.
    ledger.open(campaign, lane.provider)?.expand(devices.len() as u64);
    let mut tickets = Vec::new();
    for devices in slices(devices, chunk_max_devices) {
        let new = first_chunk(campaign, lane, devices, now);
        tickets.push(Ticket { chunk: ledger.rows.insert_chunk(&new)?, lane, due_at: now });
    }
    Ok(tickets)
}

/// Returns the queued chunk of a first attempt.
const fn first_chunk(campaign: CampaignId, lane: Lane, devices: &[DeviceId], now: Timestamp) -> NewChunk<'_> {
    let (attempt, ambiguous, parent, lease) = (1, false, None, None);
    NewChunk { campaign, lane, devices, attempt, ambiguous, due_at: now, created_at: now, parent, lease }
}

/// Begins a campaign to a few devices with its chunks leased, one at each provider. The row of the campaign says already that it runs.
/// Returns the chunks, with everything that is needed to send them.
pub fn begin_leased<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    message: &Arc<Message>,
    addressed: Vec<AddressedDevices>,
    terms: LeaseTerms,
) -> Result<Vec<LeasedChunk>, R::Error> {
    let campaign = CampaignId::from(message.id);
    let mut leased = Vec::with_capacity(addressed.len());
    for AddressedDevices { provider, devices, decisions, tokens } in addressed {
        let lane = Lane { provider, app: message.app, class: message.spec.target.class() };
        let books = ledger.open_new(campaign, provider);
        books.set_complete(true);
        books.expand(devices.len() as u64);
        books.lease(devices.len() as u64)?;
        let tally = books.ledger().tally;
        let new = NewChunk { lease: Some(terms), ..first_chunk(campaign, lane, &devices, terms.now) };
        leased.push(LeasedChunk {
            id: ledger.rows.insert_chunk(&new)?,
            epoch: FIRST_EPOCH,
            message: Arc::clone(message),
            provider,
            attempt: new.attempt,
            ambiguous: new.ambiguous,
            devices,
            decisions,
            tokens,
            tally,
        });
    }
    Ok(leased)
}

/// Divides devices into slices, one for each chunk.
pub fn slices(devices: &[DeviceId], chunk_max_devices: usize) -> impl Iterator<Item = &[DeviceId]> {
    devices.chunks(chunk_max_devices.clamp(1, CHUNK_MAX_DEVICES))
}

/// The next step of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// It queries more devices.
    Look,
    /// It waits: its campaign is paused.
    Wait,
    /// It has ended.
    End,
}

/// Decides the next step of a producer. `campaign` is the state of its campaign, if both exist and have begun.
#[must_use]
pub fn next_step(campaign: Option<CampaignState>) -> NextStep {
    match campaign {
        None => NextStep::End,
        Some(CampaignState::Running) => NextStep::Look,
        Some(_) => NextStep::Wait,
    }
}

impl Expansion {
    /// Returns the maximal number of devices in one step.
    #[must_use]
    pub fn max_devices(&self) -> usize {
        self.chunk_max_devices.max(1).saturating_mul(self.max_chunks.max(1))
    }
}

impl Expanded {
    /// Returns the result of a step that expands nothing.
    #[must_use]
    pub const fn nothing(step: NextStep) -> Self {
        let (done, paused) = (matches!(step, NextStep::End), matches!(step, NextStep::Wait));
        Self { tickets: Vec::new(), done, paused }
    }
}

/// Creates chunks of the next devices of a producer, which are ascending. Fewer devices than the maximum of a step are the last ones: the
/// producer ends, and its campaign's audience at the provider is complete.
pub fn expand<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    campaign: CampaignId,
    lane: Lane,
    devices: &[DeviceId],
    how: Expansion,
) -> Result<Expanded, R::Error> {
    let cutting = Cutting { chunk_max_devices: how.chunk_max_devices, now: how.now };
    let tickets = cut(ledger, campaign, lane, devices, cutting)?;
    let done = devices.len() < how.max_devices();
    match devices.last().filter(|_| !done) {
        Some(last) => ledger.rows.advance_producer(campaign, lane, *last)?,
        None => ledger.rows.end_producers(campaign, Some(lane.provider))?,
    }
    ledger.open(campaign, lane.provider)?.set_complete(done);
    Ok(Expanded { tickets, done, paused: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_hold_everyone_once_and_no_more_than_they_may(
            count in 0..500_u64, most in 0..50_usize,
        ) {
            let devices: Vec<_> = (1..=count).map(DeviceId::from_raw).collect();
            let cut: Vec<_> = slices(&devices, most).collect();
            prop_assert_eq!(cut.concat(), devices.clone());
            prop_assert!(cut.iter().all(|slice| !slice.is_empty() && slice.len() <= most.max(1)));
        }
    }

    #[test]
    fn a_producer_looks_on_only_while_its_campaign_runs() {
        assert_eq!(next_step(None), NextStep::End);
        assert_eq!(next_step(Some(CampaignState::Running)), NextStep::Look);
        assert_eq!(next_step(Some(CampaignState::Paused)), NextStep::Wait);
        assert!(Expanded::nothing(NextStep::End).done);
        assert!(Expanded::nothing(NextStep::Wait).paused);
    }
}
