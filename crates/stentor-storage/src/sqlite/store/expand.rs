//! Producers: the audience is read outside of the write transaction, and stored if nothing has moved since.

use rusqlite::Connection;
use stentor_core::id::DeviceId;
use stentor_core::ledger::{self, LedgerCache, NextStep, next_step, slices};
use stentor_core::ports::store::{Expanded, Expansion, ProducerTask, StoreError};
use stentor_core::target::Target;

use super::SqliteStore;
use super::audience::{self, AudiencePart};
use super::prefetch::Prefetched;
use super::producers::{self, Position};
use super::rows::Rows;
use super::stretch::Stretch;
use crate::sql::Done;
use crate::sqlite::readers::Reading;
use crate::sqlite::writer::CommitPriority;

/// The result of reading an audience.
enum AudienceLook {
    /// There is nothing to expand, now or ever.
    Nothing(NextStep),
    /// The producer moved, or its campaign changed, during the read.
    Changed,
    Found(Position, AudiencePart),
}

/// One step of the read: the devices found so far, and the device after which to continue.
enum LookStep {
    Over(AudienceLook),
    More(Position, AudiencePart, Option<DeviceId>),
}

impl SqliteStore {
    /// Expands one step. When the producer moved or its campaign changed between reading and writing, it looks again.
    pub(super) async fn expand_step(
        &self,
        task: ProducerTask,
        how: Expansion,
    ) -> Result<Expanded, StoreError> {
        let message = self.cached_message(task.message).await?;
        loop {
            let Some(message) = &message else { return Ok(Expanded::nothing(NextStep::End)) };
            // Taken before the look, so that a device that changes while it is looked at is not kept as it was seen.
            let snapshot = self.inner.prefetch.snapshot();
            let (at, found) = match self.look(task, &message.spec.target, how).await? {
                AudienceLook::Nothing(step) => return Ok(Expanded::nothing(step)),
                AudienceLook::Changed => continue,
                AudienceLook::Found(at, found) => (at, found),
            };
            let AudiencePart { devices, tokens, .. } = found;
            let expanded = self.inner.writer.run(CommitPriority::Usual, move |connection| {
                let expanded = keep(connection, task, at, &devices, how)?;
                Ok(expanded.map(|expanded| (expanded, devices)))
            });
            if let Some((expanded, devices)) = expanded.await? {
                let seen = slices(&devices, how.chunk_max_devices).zip(tokens);
                for (ticket, (devices, tokens)) in expanded.tickets.iter().zip(seen) {
                    let seen = Prefetched { devices: devices.to_vec(), tokens };
                    self.inner.prefetch.keep(snapshot, ticket.chunk, at.fleet, seen);
                }
                return Ok(expanded);
            }
        }
    }
}

impl SqliteStore {
    /// Reads the next devices of a producer in several reads, as an audience may be few among many.
    async fn look(
        &self,
        task: ProducerTask,
        target: &Target,
        how: Expansion,
    ) -> Result<AudienceLook, StoreError> {
        let mut state = None;
        loop {
            let target = target.clone();
            let before = state.take();
            let step = self.inner.readers.run(Reading::Walk, move |connection| {
                let at = producers::find(connection, task)?;
                look_on(connection, &target, at, before, how)
            });
            match step.await? {
                LookStep::Over(look) => return Ok(look),
                LookStep::More(at, found, None) => return Ok(AudienceLook::Found(at, found)),
                LookStep::More(at, found, _) if found.devices.len() >= how.max_devices() => {
                    return Ok(AudienceLook::Found(at, found));
                }
                LookStep::More(at, found, Some(next)) => state = Some((at, found, next)),
            }
        }
    }
}

/// Continues the read from its last position, if nothing has changed since.
fn look_on(
    connection: &Connection,
    target: &Target,
    now: Option<Position>,
    before: Option<(Position, AudiencePart, DeviceId)>,
    how: Expansion,
) -> Done<LookStep> {
    let step = next_step(now.map(|at| at.state));
    let Some(at) = now.filter(|_| step == NextStep::Look) else {
        return Ok(LookStep::Over(AudienceLook::Nothing(step)));
    };
    // The devices found before belong to another state of the campaign, and are read again.
    if before.as_ref().is_some_and(|(before, ..)| *before != at) {
        return Ok(LookStep::Over(AudienceLook::Changed));
    }
    let begin = || (AudiencePart::along(how.chunk_max_devices), at.cursor);
    let (mut found, after) = before.map_or_else(begin, |(_, found, after)| (found, after));
    let stretch =
        Stretch { fleet: at.fleet, after, as_of: at.as_of, max: how.max_devices() - found.devices.len() };
    let next = audience::wide(connection, target, stretch, &mut found)?;
    Ok(LookStep::More(at, found, next))
}

fn keep(
    connection: &Connection,
    task: ProducerTask,
    at: Position,
    devices: &[DeviceId],
    how: Expansion,
) -> Done<Option<Expanded>> {
    // Another step, or an action on the campaign, came in between: the devices read are discarded.
    if producers::find(connection, task)? != Some(at) {
        return Ok(None);
    }
    let mut rows = Rows::new(connection);
    rows.note(at.fleet);
    let mut ledger = LedgerCache::new(&mut rows);
    let expanded = ledger::expand(&mut ledger, task.message.into(), at.lane(), devices, how)?;
    // Books are written once, however many chunks changed them.
    ledger.close(how.now)?;
    Ok(Some(expanded))
}
