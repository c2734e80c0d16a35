//! Beginning a campaign: the audience's bound is fixed, and producers or chunks are made.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::postgres::engine::Connection;
use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::ledger::{self, Audience, Cutting, Finish, LedgerCache};
use stentor_core::message::Message;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::Started;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::app_providers::{self, device_of, fleet_of};
use super::campaign_writes;
use super::named_devices::NamedDevices;
use super::rows::Rows;
use super::{message_rows, sequences, targets, turns};
use crate::sql::{Done, Portion, attempt, damaged};

/// Rows that one transaction writes.
const ROWS_MAX_COUNT: u64 = 8_192;
/// A transaction begins no more campaigns once it took so long. Each takes several turns over the network, which are slow where
/// the server's machine is busy.
const TIME: Duration = Duration::from_millis(500);

/// Starts scheduled campaigns that are due, every app in its turn where not all can; one whose message makes no sense is stopped, so that it does
/// not hold up the others.
pub(super) fn due(
    connection: &Connection,
    count: usize,
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Started> {
    let due = turns::due_campaigns(connection, now, count)?;
    let due: Vec<_> = due.into_iter().map(|id| MessageId::from_raw(id.cast_unsigned())).collect();
    let some = |ids: &[MessageId]| some(connection, ids, Cutting { chunk_max_devices, now });
    // All together first: what campaigns share is read once, and books are written once.
    if let Ok(started) = attempt(connection, || some(&due))? {
        return Ok(Started { has_more: started.has_more || due.len() >= count, ..started });
    }
    let mut all = Started { has_more: due.len() >= count, ..Started::default() };
    // What was taken back counts as changed: with the former portion nothing might be begun, nor the damaged one stopped.
    let portion = Portion::of(connection, ROWS_MAX_COUNT, TIME);
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
            Err(_) => refuse(connection, id.into(), now)?,
        }
    }
    Ok(all)
}

/// Stops a campaign of which nothing was begun, because its message is damaged.
fn refuse(connection: &Connection, id: CampaignId, now: Timestamp) -> Done<()> {
    tracing::error!(campaign = %id, "its message cannot be read: it is stopped");
    let stop = Stop { reason: Reason::Damaged, detail: "the message cannot be read".to_owned() };
    let end = Finish { state: CampaignState::Stopped, stop: Some(stop) };
    campaign_writes::write_ends(connection, &[(id, end, now)])
}

/// Begins campaigns for as long as a transaction may last.
fn some(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
    let portion = Portion::of(connection, ROWS_MAX_COUNT, TIME);
    let messages = message_rows::load_all(connection, ids)?;
    if messages.len() < ids.len() {
        return Err(damaged("a message is missing"));
    }
    // Most have one chunk.
    Rows::new(connection).numbering(messages.len()).batch(|rows| {
        let named = NamedDevices::find(rows, &messages, cutting.now)?;
        let mut starter = Starter::new(rows, named, cutting);
        let mut started = Started::default();
        // The server gives rows in any order, and where time is short the earliest go first.
        for message in in_order(messages, ids) {
            // One at least: what was found out before may have taken all the time, and written rows of its own.
            if !started.begun.is_empty() && portion.is_over_with(starter.ledger.rows.pending_count()) {
                started.has_more = true;
                break;
            }
            started.tickets.extend(starter.begin(&message)?);
            started.begun.push(message.app);
        }
        started.has_producers = starter.has_producers;
        // Also where the portion ended early: what was begun so far is kept, and counts only once it is
        // written.
        starter.close()?;
        Ok(started)
    })
}

/// Puts messages in the order of their ids.
fn in_order(mut messages: Vec<Message>, ids: &[MessageId]) -> Vec<Message> {
    let places: HashMap<MessageId, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    messages.sort_by_key(|message| places.get(&message.id).copied());
    messages
}

/// Begins campaigns in one transaction: what they share is read once, and books are written once.
struct Starter<'r, 'a> {
    ledger: LedgerCache<'r, Rows<'a>>,
    cutting: Cutting,
    named: NamedDevices,
    /// The last device given out, once it was asked for.
    last_device: Option<u64>,
    has_producers: bool,
}

impl<'r, 'a> Starter<'r, 'a> {
    const fn new(rows: &'r mut Rows<'a>, named: NamedDevices, cutting: Cutting) -> Self {
        let last_device = named.last_made;
        Self { ledger: LedgerCache::new(rows), cutting, named, last_device, has_producers: false }
    }

    fn begin(&mut self, message: &Message) -> Done<Vec<Ticket>> {
        let target = &message.spec.target;
        let is_direct = target.is_direct() && !targets::has_many(self.connection(), message.app, target)?;
        let audience = match is_direct {
            true => Audience::Named(self.direct(message.app, target)?),
            false => Audience::Wide(self.providers(message.app)?),
        };
        self.has_producers |= matches!(&audience, Audience::Wide(providers) if !providers.is_empty());
        // Asked after the devices, of which one may have been made for a token.
        let as_of = DeviceId::from_raw(self.last_device()?);
        ledger::begin(&mut self.ledger, message, (audience, as_of), self.cutting)
    }

    /// Writes what was gathered.
    fn close(self) -> Done<()> {
        self.ledger.close(self.cutting.now)
    }

    /// Lists the providers that the app's devices use or used.
    fn providers(&self, app: AppId) -> Done<Vec<ProviderKind>> {
        let registries = app_providers::of_app(self.connection(), app)?;
        Ok(registries.into_iter().map(|one| one.provider).collect())
    }

    fn connection(&self) -> &'a Connection {
        self.ledger.rows.connection
    }

    fn last_device(&mut self) -> Done<u64> {
        if let Some(last) = self.last_device {
            return Ok(last);
        }
        let last = sequences::last_device(self.connection())?.raw();
        self.last_device = Some(last);
        Ok(last)
    }

    /// Returns the devices of a direct target by provider, ascending.
    fn direct(&mut self, app: AppId, target: &Target) -> Done<Vec<(ProviderKind, Vec<DeviceId>)>> {
        let rows = &self.ledger.rows;
        let mut keys = self.named.of(rows, app, target)?;
        // A device that is named twice gets the message once.
        keys.sort_unstable();
        keys.dedup();
        let mut fleets: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
        for key in keys {
            fleets.entry(fleet_of(key)).or_default().push(device_of(key));
        }
        fleets.into_iter().map(|(no, devices)| Ok((rows.fleet_by_no(no)?.provider, devices))).collect()
    }
}
