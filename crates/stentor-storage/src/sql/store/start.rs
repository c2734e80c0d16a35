//! Starting due campaigns.

use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::id::{CampaignId, MessageId};
use stentor_core::ledger::{Cutting, Finish, LedgerRows as _};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::Started;
use stentor_core::time::Timestamp;

use super::turns;
use crate::sql::{Done, LedgerEngine, attempt};

/// Starts due campaigns, with the apps in turn if not all can start. A campaign with an unreadable message is stopped, so that it does not
/// delay the others.
pub(crate) fn due<E: LedgerEngine>(
    connection: &E::Connection,
    count: usize,
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Started> {
    let due = turns::due_campaigns(connection, now, count)?;
    let due: Vec<_> = due.into_iter().map(|id| MessageId::from_raw(id.cast_unsigned())).collect();
    let some = |ids: &[MessageId]| E::begin(connection, ids, Cutting { chunk_max_devices, now });
    // All together first: data that campaigns share is read once, and books are written once.
    if let Ok(started) = attempt(connection, || some(&due))? {
        return Ok(Started { has_more: started.has_more || due.len() >= count, ..started });
    }
    let mut all = Started { has_more: due.len() >= count, ..Started::default() };
    // A rollback still counts toward a portion. With the former portion, no campaign might begin, and the damaged one might not be stopped.
    let portion = E::start_portion(connection);
    for (at, id) in due.into_iter().enumerate() {
        if at > 0 && portion.is_over() {
            all.has_more = true;
            break;
        }
        match attempt(connection, || some(&[id]))? {
            Ok(one) => {
                all.tickets.extend(one.tickets);
                all.begun.extend(one.begun);
                all.has_producers |= one.has_producers;
            }
            // This one alone is at fault.
            Err(_) => refuse::<E>(connection, id.into(), now)?,
        }
    }
    Ok(all)
}

/// Stops a campaign with an unreadable message.
fn refuse<E: LedgerEngine>(connection: &E::Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    tracing::error!(campaign = %id, "its message cannot be read: it is stopped");
    let stop = Stop { reason: Reason::Damaged, detail: "the message cannot be read".to_owned() };
    E::rows(connection).write_end(id, &Finish { state: CampaignState::Stopped, stop: Some(stop) }, now)
}
