//! How a campaign begins, and how its audience is cut into chunks.

use super::LedgerCache;
use super::rows::{LedgerRows, NewChunk};
use crate::campaign::CampaignState;
use crate::chunk::{Lane, Ticket};
use crate::device::ProviderKind;
use crate::id::{CampaignId, DeviceId};
use crate::limits::CHUNK_MAX_DEVICES;
use crate::message::Message;
use crate::ports::store::{Expanded, Expansion};
use crate::time::Timestamp;

/// Who is meant by a message, when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Many, at the providers that the app's devices use or used: producers find them step by step.
    Wide(Vec<ProviderKind>),
    /// These, by provider, each list ascending.
    Named(Vec<(ProviderKind, Vec<DeviceId>)>),
}

/// How the first chunks of a campaign are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// Most devices in one chunk.
    pub chunk_max_devices: usize,
    /// The present.
    pub now: Timestamp,
}

/// Begins a campaign that waits: the bound of its audience is fixed, and its producers or its chunks are made. Returns the
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
            // Which of them have an audience is theirs to find out.
            for provider in &providers {
                ledger.rows.add_producer(message.app, id, *provider)?;
                ledger.open_new(id, *provider);
            }
            if providers.is_empty() {
                // No books of it are opened, so nothing else would have it ended at the close.
                ledger.note_idle(id);
            }
            return Ok(Vec::new());
        }
    };
    let mut tickets = Vec::new();
    for (provider, devices) in lists {
        let lane = Lane { provider, app: message.app, class: message.spec.target.class() };
        // Before `cut`, which would look for books that cannot be there yet.
        ledger.open_new(id, provider).set_complete(true);
        tickets.extend(cut(ledger, id, lane, &devices, cutting)?);
    }
    if tickets.is_empty() {
        ledger.note_idle(id);
    }
    Ok(tickets)
}

/// Cuts devices new to a campaign into chunks.
fn cut<R: LedgerRows>(
    ledger: &mut LedgerCache<'_, R>,
    campaign: CampaignId,
    lane: Lane,
    devices: &[DeviceId],
    Cutting { chunk_max_devices, now }: Cutting,
) -> Result<Vec<Ticket>, R::Error> {
    // Audience and queue grow in one transaction with the chunks, or sums would tell of nobody's deliveries.
    ledger.open(campaign, lane.provider)?.expand(devices.len() as u64);
    let mut tickets = Vec::new();
    for devices in slices(devices, chunk_max_devices) {
        let (attempt, ambiguous, parent) = (1, false, None);
        let new =
            NewChunk { campaign, lane, devices, attempt, ambiguous, due_at: now, created_at: now, parent };
        tickets.push(Ticket { chunk: ledger.rows.insert_chunk(&new)?, lane, due_at: now });
    }
    Ok(tickets)
}

/// Slices devices as they are cut into chunks.
pub fn slices(devices: &[DeviceId], chunk_max_devices: usize) -> impl Iterator<Item = &[DeviceId]> {
    devices.chunks(chunk_max_devices.clamp(1, CHUNK_MAX_DEVICES))
}

/// What a producer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// It looks for more devices.
    Look,
    /// It waits: its campaign is paused.
    Wait,
    /// It has ended.
    End,
}

/// Decides what a producer does next, given the state of its campaign if both are there and have begun.
#[must_use]
pub fn next_step(campaign: Option<CampaignState>) -> NextStep {
    match campaign {
        None => NextStep::End,
        Some(CampaignState::Running) => NextStep::Look,
        Some(_) => NextStep::Wait,
    }
}

impl Expansion {
    /// Returns the most devices of one step.
    #[must_use]
    pub fn max_devices(&self) -> usize {
        self.chunk_max_devices.max(1).saturating_mul(self.max_chunks.max(1))
    }
}

impl Expanded {
    /// Returns what a step that expands nothing comes to.
    #[must_use]
    pub const fn nothing(step: NextStep) -> Self {
        let (done, paused) = (matches!(step, NextStep::End), matches!(step, NextStep::Wait));
        Self { tickets: Vec::new(), done, paused }
    }
}

/// Makes chunks of the next devices of a producer, ascending. Fewer than the most that a step takes are the last: the
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
