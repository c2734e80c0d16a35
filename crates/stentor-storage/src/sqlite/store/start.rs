//! Starting campaigns one by one, and making devices for unknown tokens.

use rusqlite::Connection;
use stentor_core::device::Registration;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::ledger::Cutting;
use stentor_core::ports::store::Started;
use stentor_core::target::{Target, TokenTarget};

use super::register::{self, NewRow};
use super::rows::Rows;
use super::{app_providers, message_rows, offered_tokens, sequences, targets, tokens};
use crate::sql::store::start::Starter;
use crate::sql::{Done, Portion, damaged};

/// Begins campaigns for as long as a transaction may last.
pub(super) fn some(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
    let portion = Portion::begin(connection);
    let mut rows = Rows::new(connection);
    let mut starter = Starter::new(&mut rows, cutting);
    let mut last_made = None;
    for id in ids {
        // One at least: making a device for a token is a change of its own.
        if !starter.started.begun.is_empty() && portion.is_over() {
            starter.started.has_more = true;
            break;
        }
        let message = message_rows::load(connection, *id)?.ok_or_else(|| damaged("a message is missing"))?;
        starter.begin(&message, |starter, app, target| match target {
            Target::Token(token) => Ok(vec![of_token(starter, app, token, &mut last_made)?]),
            other => targets::named(connection, app, other),
        })?;
    }
    if let Some(last) = last_made {
        sequences::advance(connection, "device", last)?;
    }
    starter.close()
}

/// Finds the device of a token. A token that no device has or had becomes an unlisted device.
fn of_token(
    starter: &mut Starter<'_, Rows<'_>>,
    app: AppId,
    target: &TokenTarget,
    last_made: &mut Option<u64>,
) -> Done<i64> {
    let connection = starter.ledger.rows.connection;
    let fleet = starter.ledger.rows.fleet(app, target.provider)?;
    let hash = tokens::hash(app, target.provider, &target.token);
    if let Some(key) = tokens::holder_by_hash(connection, fleet, hash, &target.token)? {
        return Ok(key);
    }
    // A token that a device of the gateway had before leads to the device.
    if let Some(key) = offered_tokens::former_holder(connection, fleet, &target.token)? {
        return Ok(key);
    }
    let id = starter.last_device()? + 1;
    app_providers::check_device_number(id)?;
    let key = fleet.bound(DeviceId::from_raw(id));
    let given = Registration::new(target.platform, target.provider, target.token.clone());
    let row = NewRow { key, given: &given, user: None, tags: None, listed: false, now: starter.cutting.now };
    register::insert(connection, &[row])?;
    tokens::note(connection, [(hash, key)])?;
    // The next token of this transaction gets a number after it; the counter is written at the end.
    (starter.last_device, *last_made) = (Some(id), Some(id));
    Ok(key)
}
