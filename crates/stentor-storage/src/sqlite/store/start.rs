//! Beginning a campaign: the audience's bound is fixed, and producers or chunks are made.

use std::collections::BTreeMap;

use rusqlite::Connection;
use stentor_core::chunk::Ticket;
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::ledger::{self, Audience, Cutting, LedgerCache};
use stentor_core::message::Message;
use stentor_core::ports::store::Started;
use stentor_core::target::{Target, TokenTarget};

use super::app_providers::{self, device_of, fleet_of};
use super::register::{self, NewRow};
use super::rows::Rows;
use super::{message_rows, offered_tokens, sequences, targets, tokens};
use crate::sql::{Done, Portion, damaged};

/// Begins campaigns for as long as a transaction may last.
pub(super) fn some(connection: &Connection, ids: &[MessageId], cutting: Cutting) -> Done<Started> {
    let portion = Portion::begin(connection);
    let mut rows = Rows::new(connection);
    let mut starter = Starter::new(&mut rows, cutting);
    let mut started = Started::default();
    for id in ids {
        // One at least: making a device for a token is a change of its own.
        if !started.begun.is_empty() && portion.is_over() {
            started.has_more = true;
            break;
        }
        let message = message_rows::load(connection, *id)?.ok_or_else(|| damaged("a message is missing"))?;
        started.tickets.extend(starter.begin(&message)?);
        started.begun.push(message.app);
    }
    started.has_producers = starter.has_producers;
    // Also if the portion ended early: the campaigns begun so far are written and kept.
    starter.close()?;
    Ok(started)
}

/// Starts campaigns in one transaction: shared data is read once, and books are written once.
struct Starter<'r, 'a> {
    ledger: LedgerCache<'r, Rows<'a>>,
    cutting: Cutting,
    /// The last device number, once it was read; `has_devices` is true if it was assigned here.
    last_device: Option<u64>,
    has_devices: bool,
    has_producers: bool,
}

impl<'r, 'a> Starter<'r, 'a> {
    const fn new(rows: &'r mut Rows<'a>, cutting: Cutting) -> Self {
        Self {
            ledger: LedgerCache::new(rows),
            cutting,
            last_device: None,
            has_devices: false,
            has_producers: false,
        }
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
        if let Some(last) = self.last_device.filter(|_| self.has_devices) {
            sequences::advance(self.connection(), "device", last)?;
        }
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

    /// Finds the devices of a direct target by provider, ascending. A token that no device has or had becomes an unlisted device.
    fn direct(&mut self, app: AppId, target: &Target) -> Done<Vec<(ProviderKind, Vec<DeviceId>)>> {
        let mut keys = match target {
            Target::Token(token) => vec![self.of_token(app, token)?],
            other => targets::named(self.connection(), app, other)?,
        };
        // A device that is named twice gets the message once.
        keys.sort_unstable();
        keys.dedup();
        let mut fleets: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
        for key in keys {
            fleets.entry(fleet_of(key)).or_default().push(device_of(key));
        }
        let rows = &self.ledger.rows;
        fleets.into_iter().map(|(no, devices)| Ok((rows.fleet_by_no(no)?.provider, devices))).collect()
    }

    fn of_token(&mut self, app: AppId, target: &TokenTarget) -> Done<i64> {
        let provider: ProviderKind = target.provider;
        let fleet = self.ledger.rows.fleet(app, provider)?;
        let hash = tokens::hash(app, provider, &target.token);
        if let Some(key) = tokens::holder_by_hash(self.connection(), fleet, hash, &target.token)? {
            return Ok(key);
        }
        // A token that a device of the gateway had before leads to the device.
        if let Some(key) = offered_tokens::former_holder(self.connection(), fleet, &target.token)? {
            return Ok(key);
        }
        let id = self.last_device()? + 1;
        app_providers::check_device_number(id)?;
        let key = fleet.bound(DeviceId::from_raw(id));
        let given = Registration::new(target.platform, provider, target.token.clone());
        let row = NewRow { key, given: &given, user: None, tags: None, listed: false, now: self.cutting.now };
        register::insert(self.connection(), &[row])?;
        tokens::note(self.connection(), [(hash, key)])?;
        // The next token of this transaction gets a number after it; the counter is written at the end.
        (self.last_device, self.has_devices) = (Some(id), true);
        Ok(key)
    }
}
