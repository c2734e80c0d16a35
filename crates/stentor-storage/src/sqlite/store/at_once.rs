//! Messages that are sent at once: their devices are looked up, and their chunks are leased as they are stored.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::chunk::TokenList;
use stentor_core::device::Registration;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ledger::{self, AddressedDevices, LedgerCache};
use stentor_core::message::Message;
use stentor_core::ports::store::{AT_ONCE_MAX_DEVICES, AtOnce, LeaseTerms, LeasedChunk, SendDecision};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider, device_of};
use super::chunks::ChunkRow;
use super::contents;
use super::register::{self, NewRow};
use super::rows::Rows;
use super::{offered_tokens, sequences, targets, tokens};
use crate::sql::Done;
use crate::sql::store::start::at_once_by_fleet;

/// The messages that one transaction begins at once. Devices and books are written at its end, together.
pub(super) struct AtOnceBatch<'r, 'c> {
    connection: &'c Connection,
    ledger: LedgerCache<'r, Rows<'c>>,
    /// Devices made for unknown tokens, with the hashes of these.
    made: Vec<(i64, MadeDevice)>,
    /// The keys of these devices, by fleet and token.
    keys: HashMap<(u64, String), i64>,
    /// The last device, once it was read or made.
    last_device: Option<DeviceId>,
    now: Timestamp,
}

/// An unlisted device, of which only the token is known.
struct MadeDevice {
    key: i64,
    registration: Registration,
    now: Timestamp,
}

/// The devices of a message that is sent at once.
pub(super) struct Addressed {
    devices: AddressedTo,
    /// The terms of the leases.
    pub(super) lease: LeaseTerms,
}

enum AddressedTo {
    /// Devices that are known.
    Known(Vec<AddressedDevices>),
    /// The device that is made for this token, with its fleet and hash.
    New { token: TokenTarget, fleet: AppProvider, hash: i64 },
}

impl<'r, 'c> AtOnceBatch<'r, 'c> {
    pub(super) fn new(rows: &'r mut Rows<'c>) -> Self {
        Self {
            connection: rows.connection,
            ledger: LedgerCache::new(rows),
            made: Vec::new(),
            keys: HashMap::new(),
            last_device: None,
            now: Timestamp::default(),
        }
    }

    /// Looks up the devices that a message names, and their tokens. Returns `None` if it cannot be sent at once.
    pub(super) fn addressed(&self, message: &Message, at_once: &AtOnce) -> Done<Option<Addressed>> {
        let lease = at_once.lease;
        let keys = match &message.spec.target {
            Target::Token(token) => {
                let Some(fleet) = self.ledger.rows.known_fleet(message.app, token.provider)? else {
                    return Ok(None);
                };
                match self.by_token(fleet, token)? {
                    TokenHolder::Known(key) => vec![key],
                    _ if !at_once.providers.contains(&fleet.provider) => return Ok(None),
                    TokenHolder::Made(key) => {
                        let devices = AddressedTo::Known(vec![to_one(fleet, key, token)]);
                        return Ok(Some(Addressed { devices, lease }));
                    }
                    TokenHolder::Nobody(hash) => {
                        let devices = AddressedTo::New { token: token.clone(), fleet, hash };
                        return Ok(Some(Addressed { devices, lease }));
                    }
                }
            }
            target => named(self.ledger.rows, message.app, target)?,
        };
        let Some(fleets) = at_once_by_fleet(self.ledger.rows, keys, &message.spec.content, at_once)? else {
            return Ok(None);
        };
        let mut addressed = Vec::with_capacity(fleets.len());
        for (fleet, devices) in fleets {
            let chunk = ChunkRow::of_new(message, fleet, &devices);
            let (decisions, tokens) = contents::decide(self.connection, &chunk, &devices, None, lease.now)?;
            addressed.push(AddressedDevices { provider: fleet.provider, devices, decisions, tokens });
        }
        Ok(Some(Addressed { devices: AddressedTo::Known(addressed), lease }))
    }

    fn by_token(&self, fleet: AppProvider, target: &TokenTarget) -> Done<TokenHolder> {
        if let Some(key) = self.keys.get(&(fleet.no, target.token.expose().to_owned())) {
            return Ok(TokenHolder::Made(*key));
        }
        let hash = tokens::hash(fleet.app, fleet.provider, &target.token);
        if let Some(key) = tokens::holder_by_hash(self.connection, fleet, hash, &target.token)? {
            return Ok(TokenHolder::Known(key));
        }
        let former = offered_tokens::former_holder(self.connection, fleet, &target.token)?;
        Ok(former.map_or(TokenHolder::Nobody(hash), TokenHolder::Known))
    }

    /// Returns the bound of the audience of a message: the last device, of which one may be made for it.
    pub(super) fn bound(&mut self, addressed: &Addressed) -> Done<DeviceId> {
        let last = match self.last_device {
            Some(last) => last,
            None => sequences::last_device(self.connection)?,
        };
        self.last_device = Some(last);
        match &addressed.devices {
            AddressedTo::Known(_) => Ok(last),
            AddressedTo::New { .. } => {
                app_providers::check_device_number(last.raw() + 1)?;
                Ok(DeviceId::from_raw(last.raw() + 1))
            }
        }
    }

    /// Begins the campaign of a message, whose row is written, with leased chunks.
    pub(super) fn begin(&mut self, message: &Arc<Message>, addressed: Addressed) -> Done<Vec<LeasedChunk>> {
        let bound = self.bound(&addressed)?;
        let Addressed { devices, lease } = addressed;
        self.now = self.now.max(lease.now);
        let devices = match devices {
            AddressedTo::Known(devices) => devices,
            AddressedTo::New { token, fleet, hash } => {
                let key = fleet.bound(bound);
                let registration = Registration::new(token.platform, token.provider, token.token.clone());
                self.made.push((hash, MadeDevice { key, registration, now: lease.now }));
                self.keys.insert((fleet.no, token.token.expose().to_owned()), key);
                self.last_device = Some(bound);
                vec![to_one(fleet, key, &token)]
            }
        };
        ledger::begin_leased(&mut self.ledger, message, devices, lease)
    }

    /// Writes devices and books.
    pub(super) fn close(self) -> Done<()> {
        let Self { connection, ledger, made, last_device, now, .. } = self;
        if let Some(last) = last_device.filter(|_| !made.is_empty()) {
            let rows = made.iter().map(|(_, device)| NewRow {
                key: device.key,
                given: &device.registration,
                user: None,
                tags: None,
                listed: false,
                now: device.now,
            });
            register::insert(connection, &rows.collect::<Vec<_>>())?;
            tokens::note(connection, made.iter().map(|(hash, device)| (*hash, device.key)))?;
            sequences::advance(connection, "device", last.raw())?;
        }
        ledger.close(now)
    }
}

/// The device of a token.
enum TokenHolder {
    /// A device has or had the token; this is its key.
    Known(i64),
    /// This transaction makes the device with this key for it.
    Made(i64),
    /// No device; this is the hash of the token.
    Nobody(i64),
}

/// Addresses a message to one device, whose token the message names.
fn to_one(fleet: AppProvider, key: i64, token: &TokenTarget) -> AddressedDevices {
    let mut tokens = TokenList::default();
    tokens.push(token.token.expose());
    let (devices, decisions) = (vec![device_of(key)], vec![SendDecision::Send]);
    AddressedDevices { provider: fleet.provider, devices, decisions, tokens }
}

/// Finds the keys of the devices that a target names; an empty list if it is left to the start of the campaign.
fn named(rows: &Rows<'_>, app: AppId, target: &Target) -> Done<Vec<i64>> {
    let connection = rows.connection;
    let located = |id: &DeviceId| {
        let (fleet, key) = app_providers::require(connection, app, *id)?;
        rows.note(fleet);
        Ok(key)
    };
    match target {
        Target::Device(id) => Ok(vec![located(id)?]),
        Target::Devices(ids) if ids.len() <= AT_ONCE_MAX_DEVICES => ids.iter().map(located).collect(),
        Target::User(_) if targets::has_many(connection, app, target)? => Ok(Vec::new()),
        Target::User(user) => targets::of_user(connection, app, user),
        _ => Ok(Vec::new()),
    }
}
