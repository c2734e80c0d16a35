//! Messages that are sent at once: their devices are looked up, and their chunks are leased as they are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::chunk::TokenList;
use stentor_core::device::Registration;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::ledger::{self, AddressedDevices, LedgerCache};
use stentor_core::message::Message;
use stentor_core::ports::store::{AT_ONCE_MAX_DEVICES, AtOnce, LeaseTerms, LeasedChunk, SendDecision};
use stentor_core::target::{Target, TokenTarget};

use super::app_providers::{self, AppProvider, device_of, fleet_of};
use super::chunks::ChunkRow;
use super::contents;
use super::register::{self, NewRow};
use super::rows::Rows;
use super::{offered_tokens, sequences, targets, tokens};
use crate::sql::Done;
use crate::sql::store::start::StartRows as _;

/// The devices of a message that is sent at once.
pub(super) struct Addressed<'a> {
    rows: Rows<'a>,
    devices: Vec<AddressedDevices>,
    /// The device that is made for an unknown token.
    new: Option<NewDevice>,
    /// The terms of the leases.
    pub(super) lease: LeaseTerms,
}

/// An unlisted device, of which only the token is known.
struct NewDevice {
    key: i64,
    hash: i64,
    registration: Registration,
}

/// Looks up the devices that a message names, and their tokens. Returns `None` if it cannot be sent at once.
pub(super) fn addressed<'a>(
    connection: &'a Connection,
    message: &Message,
    at_once: &AtOnce,
) -> Done<Option<Addressed<'a>>> {
    let rows = Rows::new(connection);
    let keys = match &message.spec.target {
        Target::Token(token) => match by_token(&rows, message.app, token)? {
            Some(TokenDevice::Known(key)) => vec![key],
            Some(TokenDevice::New(fleet, hash)) if at_once.providers.contains(&fleet.provider) => {
                return to_new(rows, token, (fleet, hash), at_once.lease).map(Some);
            }
            _ => return Ok(None),
        },
        target => named(&rows, message.app, target)?,
    };
    if keys.is_empty() || keys.len() > AT_ONCE_MAX_DEVICES {
        return Ok(None);
    }
    let mut by_fleet: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
    for key in keys {
        by_fleet.entry(fleet_of(key)).or_default().push(device_of(key));
    }
    let mut addressed = Vec::with_capacity(by_fleet.len());
    for (no, mut devices) in by_fleet {
        let fleet = rows.fleet_by_no(no)?;
        if !at_once.providers.contains(&fleet.provider) {
            return Ok(None);
        }
        devices.sort_unstable();
        devices.dedup();
        let chunk = ChunkRow::of_new(message, fleet, &devices);
        let (decisions, tokens) = contents::decide(connection, &chunk, &devices, None, at_once.lease.now)?;
        addressed.push(AddressedDevices { provider: fleet.provider, devices, decisions, tokens });
    }
    Ok(Some(Addressed { rows, devices: addressed, new: None, lease: at_once.lease }))
}

/// Addresses a message to the device that is made for its token.
fn to_new<'a>(
    rows: Rows<'a>,
    token: &TokenTarget,
    (fleet, hash): (AppProvider, i64),
    lease: LeaseTerms,
) -> Done<Addressed<'a>> {
    let id = sequences::last_device(rows.connection)?.raw() + 1;
    app_providers::check_device_number(id)?;
    let id = DeviceId::from_raw(id);
    let registration = Registration::new(token.platform, token.provider, token.token.clone());
    let mut tokens = TokenList::default();
    tokens.push(token.token.expose());
    let (devices, decisions) = (vec![id], vec![SendDecision::Send]);
    let addressed = AddressedDevices { provider: fleet.provider, devices, decisions, tokens };
    let new = NewDevice { key: fleet.bound(id), hash, registration };
    Ok(Addressed { rows, devices: vec![addressed], new: Some(new), lease })
}

impl Addressed<'_> {
    /// Makes the device of an unknown token. Returns the last device.
    pub(super) fn make_device(&self) -> Done<DeviceId> {
        let connection = self.rows.connection;
        let Some(NewDevice { key, hash, registration }) = &self.new else {
            return sequences::last_device(connection);
        };
        let (key, id) = (*key, device_of(*key));
        let now = self.lease.now;
        let row = NewRow { key, given: registration, user: None, tags: None, listed: false, now };
        register::insert(connection, &[row])?;
        tokens::note(connection, [(*hash, key)])?;
        sequences::advance(connection, "device", id.raw())?;
        Ok(id)
    }

    /// Begins the campaign of the message, whose row is written, with leased chunks.
    pub(super) fn begin(self, message: Arc<Message>) -> Done<Vec<LeasedChunk>> {
        let Self { mut rows, devices, lease, .. } = self;
        let mut ledger = LedgerCache::new(&mut rows);
        let leased = ledger::begin_leased(&mut ledger, &message, devices, lease)?;
        ledger.close(lease.now)?;
        Ok(leased)
    }
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

/// The device of a token.
enum TokenDevice {
    /// A device has or had the token; this is its key.
    Known(i64),
    /// None has; this is its fleet, and the hash of the token.
    New(AppProvider, i64),
}

/// Finds the device of a token; `None` if the app has no devices at the provider yet.
fn by_token(rows: &Rows<'_>, app: AppId, target: &TokenTarget) -> Done<Option<TokenDevice>> {
    let Some(fleet) = rows.known_fleet(app, target.provider)? else { return Ok(None) };
    let hash = tokens::hash(app, target.provider, &target.token);
    let held = tokens::holder_by_hash(rows.connection, fleet, hash, &target.token)?;
    let known = match held {
        Some(key) => Some(key),
        None => offered_tokens::former_holder(rows.connection, fleet, &target.token)?,
    };
    Ok(Some(known.map_or(TokenDevice::New(fleet, hash), TokenDevice::Known)))
}
