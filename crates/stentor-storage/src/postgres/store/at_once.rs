//! Messages that are sent at once: their devices are looked up together, and their chunks are leased as they are stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stentor_core::id::MessageId;
use stentor_core::ledger::{self, AddressedDevices, LedgerCache};
use stentor_core::message::Message;
use stentor_core::ports::store::{LeaseTerms, LeasedChunk, NewMessage};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;

use super::app_providers::AppProvider;
use super::chunks::ChunkRow;
use super::named_devices::NamedDevices;
use super::rows::Rows;
use super::{collapse, targets, tokens};
use crate::postgres::engine::Connection;
use crate::sql::store::start::{FleetDevices, at_once_by_fleet};
use crate::sql::{Done, exists, int};

/// The devices of the messages that are sent at once.
pub(super) type Addressed = HashMap<MessageId, Vec<AddressedDevices>>;

/// Looks up the devices of those messages that can be sent at once, with their tokens. `own` is the instance of this node, if it has joined
/// the others.
pub(super) fn addressed(
    rows: &Rows<'_>,
    given: &[&NewMessage],
    mut named: NamedDevices,
    own: Option<u64>,
) -> Done<Addressed> {
    named.find_tokens(rows.connection, &tokens_of(rows, given)?, now_of(given))?;
    let mut found = Vec::new();
    for new in given {
        if let Some(fleets) = by_fleet(rows, new, &named)? {
            found.push((*new, fleets));
        }
    }
    if found.is_empty() || !is_node(rows.connection, own)? {
        return Ok(Addressed::new());
    }
    let keys = found.iter().flat_map(|(_, fleets)| fleets);
    let keys = keys.flat_map(|(fleet, devices)| devices.iter().map(|device| fleet.bound(*device)));
    let tokens = tokens::of_unretired(rows.connection, keys.collect())?;
    let mut addressed = Addressed::with_capacity(found.len());
    for (new, fleets) in found {
        let devices = fleets.into_iter().map(|fleet| decide(rows.connection, new, fleet, &tokens));
        addressed.insert(new.message.id, devices.collect::<Done<_>>()?);
    }
    Ok(addressed)
}

/// Lists the tokens that messages name, at providers through which they can be sent.
fn tokens_of<'a>(rows: &Rows<'_>, given: &[&'a NewMessage]) -> Done<Vec<(AppProvider, &'a TokenTarget)>> {
    let mut tokens = Vec::new();
    for new in given {
        if let (Target::Token(token), Some(at_once)) = (&new.message.spec.target, &new.at_once)
            && at_once.providers.contains(&token.provider)
        {
            let fleet = rows.known_fleet(new.message.app, token.provider)?;
            tokens.extend(fleet.map(|fleet| (fleet, token)));
        }
    }
    Ok(tokens)
}

fn now_of(given: &[&NewMessage]) -> Timestamp {
    given.iter().filter_map(|new| Some(new.at_once.as_ref()?.lease.now)).max().unwrap_or_default()
}

/// Begins the campaigns of messages, whose rows are written, with leased chunks.
pub(super) fn begin(
    rows: Rows<'_>,
    messages: &[(&Message, LeaseTerms)],
    mut addressed: Addressed,
) -> Done<HashMap<MessageId, Vec<LeasedChunk>>> {
    let Some(now) = messages.iter().map(|(_, terms)| terms.now).max() else { return Ok(HashMap::new()) };
    rows.numbering(addressed.values().map(Vec::len).sum()).batch(|rows| {
        let mut ledger = LedgerCache::new(rows);
        let mut leased = HashMap::with_capacity(messages.len());
        for (message, terms) in messages {
            let devices = addressed.remove(&message.id).unwrap_or_default();
            let message = Arc::new((*message).clone());
            leased.insert(message.id, ledger::begin_leased(&mut ledger, &message, devices, *terms)?);
        }
        ledger.close(now)?;
        Ok(leased)
    })
}

/// Returns true if the instance still is a node, or needs not be one. Others that declare it dead wait for this transaction, and find its
/// leases.
fn is_node(connection: &Connection, own: Option<u64>) -> Done<bool> {
    match own {
        Some(own) => exists(connection, "SELECT 1 FROM nodes WHERE instance = $1 FOR KEY SHARE", [int(own)]),
        None => Ok(true),
    }
}

/// Returns the devices of a message by fleet; `None` if it is left to the start of the campaign.
fn by_fleet(rows: &Rows<'_>, new: &NewMessage, named: &NamedDevices) -> Done<Option<Vec<FleetDevices>>> {
    let Some(at_once) = &new.at_once else { return Ok(None) };
    at_once_by_fleet(rows, keys(rows, &new.message, named)?, &new.message.spec.content, at_once)
}

fn keys(rows: &Rows<'_>, message: &Message, named: &NamedDevices) -> Done<Vec<i64>> {
    let (connection, app, target) = (rows.connection, message.app, &message.spec.target);
    match target {
        Target::Token(token) => {
            let fleet = rows.known_fleet(app, token.provider)?;
            Ok(fleet.and_then(|fleet| named.holder(fleet, token)).into_iter().collect())
        }
        Target::User(_) if targets::has_many(connection, app, target)? => Ok(Vec::new()),
        Target::Device(_) | Target::Devices(_) | Target::User(_) => named.of(rows, app, target),
        Target::Group(_) | Target::Topic(_) | Target::Condition(_) | Target::Everyone => Ok(Vec::new()),
    }
}

fn decide(
    connection: &Connection,
    new: &NewMessage,
    (fleet, devices): FleetDevices,
    tokens: &BTreeMap<i64, String>,
) -> Done<AddressedDevices> {
    let chunk = ChunkRow::of_new(&new.message, fleet, &devices);
    let collapsed = collapse::collapsed(connection, &chunk, &devices, new.message.due_at)?;
    let (decisions, tokens) = collapse::decide(&devices, &collapsed, |each| {
        for device in &devices {
            if let Some(token) = tokens.get(&fleet.bound(*device)) {
                each(*device, token);
            }
        }
        Ok(())
    })?;
    Ok(AddressedDevices { provider: fleet.provider, devices, decisions, tokens })
}
