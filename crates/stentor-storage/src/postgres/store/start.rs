//! Starting a campaign: fixes the bound of the audience, and creates producers or chunks.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::postgres::engine::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::ledger::{self, Audience, Cutting, LedgerCache};
use stentor_core::message::Message;
use stentor_core::ports::store::Started;
use stentor_core::target::Target;

use super::app_providers::{self, device_of, fleet_of};
use super::named_devices::NamedDevices;
use super::rows::Rows;
use super::{message_rows, sequences, targets};
use crate::sql::{Done, Portion, damaged};

/// Rows that one transaction writes.
const ROWS_MAX_COUNT: u64 = 8_192;
/// The time after which a transaction starts no more campaigns. Each takes several network round trips, which are slow if the server's
/// machine is busy.
const TIME: Duration = Duration::from_millis(500);

/// Begins the portion of a transaction that starts campaigns.
pub(super) fn portion(connection: &Connection) -> Portion<'_> {
    Portion::of(connection, ROWS_MAX_COUNT, TIME)
}

/// Begins campaigns for as long as a transaction may last.
pub(super) fn some(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
    let portion = portion(connection);
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
            // At least one: the lookups before may have used all the time, and written rows of their own.
            if !started.begun.is_empty() && portion.is_over_with(starter.ledger.rows.pending_count()) {
                started.has_more = true;
                break;
            }
            started.tickets.extend(starter.begin(&message)?);
            started.begun.push(message.app);
        }
        started.has_producers = starter.has_producers;
        // Also if the portion ended early: the campaigns begun so far are written and kept.
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

/// Starts campaigns in one transaction: shared data is read once, and books are written once.
struct Starter<'r, 'a> {
    ledger: LedgerCache<'r, Rows<'a>>,
    cutting: Cutting,
    named: NamedDevices,
    /// The last device number, once it was read.
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
        // Read after the devices, of which one may have been created for a token.
        let as_of = DeviceId::from_raw(self.last_device()?);
        ledger::begin(&mut self.ledger, message, (audience, as_of), self.cutting)
    }

    /// Executes the pending writes.
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
