//! Producers: the audience is read outside of the write transaction, and stored if nothing has moved since.

use std::sync::Arc;

use stentor_core::id::DeviceId;
use stentor_core::ledger::{self, LedgerCache, NextStep, next_step};
use stentor_core::ports::store::{Expanded, Expansion, ProducerTask, StoreError};
use stentor_core::target::Target;

use super::PostgresStore;
use super::audience;
use super::node_events;
use super::producers::{self, Position};
use super::rows::Rows;
use super::stretch::Stretch;
use crate::postgres::engine::Connection;
use crate::sql::Done;

/// The result of reading an audience.
enum FoundAudience {
    /// There is nothing to expand, now or ever.
    Nothing(NextStep),
    Found(Position, Vec<DeviceId>),
}

impl PostgresStore {
    /// Expands one step. When the producer moved or its campaign changed between reading and writing, it looks again.
    pub(super) async fn expand_step(
        &self,
        task: ProducerTask,
        how: Expansion,
    ) -> Result<Expanded, StoreError> {
        let Some(message) = self.cached_message(task.message).await? else {
            return Ok(Expanded::nothing(NextStep::End));
        };
        let own = self.inner.own.get();
        loop {
            let target = Arc::clone(&message);
            let look =
                self.read_walk(move |connection| look(connection, task, own, &target.spec.target, how));
            let (at, devices) = match look.await? {
                FoundAudience::Nothing(step) => return Ok(Expanded::nothing(step)),
                FoundAudience::Found(at, devices) => (at, devices),
            };
            let teller = self.inner.own.among_others();
            let expanded = self.write(move |connection| {
                let expanded = keep(connection, task, at, &devices, how)?;
                // In the same commit as the chunks: the nodes that it wakes find them.
                if let Some(own) = teller.filter(|_| expanded.is_some()) {
                    node_events::wake(connection, own);
                }
                Ok(expanded)
            });
            if let Some(expanded) = expanded.await? {
                return Ok(expanded);
            }
        }
    }
}

/// Reads the next devices of a producer.
fn look(
    connection: &Connection,
    task: ProducerTask,
    own: Option<u64>,
    target: &Target,
    how: Expansion,
) -> Done<FoundAudience> {
    // Where another node has taken it over there is nothing more to do here.
    let at = producers::find(connection, task)?.filter(|at| !at.is_anothers(own));
    let step = next_step(at.map(|at| at.state));
    let Some(at) = at.filter(|_| step == NextStep::Look) else { return Ok(FoundAudience::Nothing(step)) };
    let (mut found, mut next) = (Vec::new(), Some(at.cursor));
    while let Some(after) = next.filter(|_| found.len() < how.max_devices()) {
        let max = how.max_devices() - found.len();
        let stretch = Stretch { fleet: at.fleet, after, as_of: at.as_of, max };
        next = audience::wide(connection, target, stretch, &mut found)?;
    }
    Ok(FoundAudience::Found(at, found))
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
    let rows = Rows::new(connection).numbering(devices.len().div_ceil(how.chunk_max_devices.max(1)));
    rows.note(at.fleet);
    let expanded = rows.batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let expanded = ledger::expand(&mut ledger, task.message.into(), at.lane(), devices, how)?;
        // Books are written once, however many chunks changed them.
        ledger.close(how.now)?;
        Ok(expanded)
    })?;
    Ok(Some(expanded))
}
