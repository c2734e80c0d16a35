//! Beginning a campaign: the audience's bound is fixed, and producers or chunks are made.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Class, Ticket};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::limits::CHUNK_MAX_DEVICES;
use stentor_core::message::Message;
use stentor_core::name::ExternalId;
use stentor_core::ports::clock::Timestamp;
use stentor_core::target::{Target, TokenTarget};

use super::books::Shelf;
use super::chunks::{self, NewChunk};
use super::fleets::{self, Fleet, device_of, fleet_of};
use super::register::{self, INSERT, NewRow};
use super::{campaigns, messages, owners, sequences, tokens};
use crate::sqlite::fault::{Done, missing};
use crate::sqlite::query::{all, limit, run};
use crate::sqlite::row::{int, number};

/// Starts scheduled campaigns that are due, the earliest first.
pub(super) fn due(
    connection: &Connection,
    count: usize,
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Vec<Ticket>> {
    let sql = "SELECT id FROM campaigns WHERE state = 0 AND due_at <= ?1 ORDER BY due_at, id LIMIT ?2";
    let due = all(connection, sql, [now.as_millis(), limit(count)], |row| {
        Ok(MessageId::from_raw(number(row, 0)?))
    })?;
    let mut tickets = Vec::new();
    for id in due {
        let message = messages::load(connection, id)?.ok_or(missing("message"))?;
        tickets.extend(begin(connection, &message, chunk_max_devices, now)?);
    }
    Ok(tickets)
}

/// Begins a campaign that waits; gives the chunks of a direct target.
pub(super) fn begin(
    connection: &Connection,
    message: &Message,
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Vec<Ticket>> {
    let target = &message.spec.target;
    let direct =
        if target.is_direct() { direct(connection, message.app, target, now)? } else { BTreeMap::new() };
    let as_of = sequences::last_device(connection)?;
    let sql = "UPDATE campaigns SET state = ?2, as_of = ?3 WHERE id = ?1";
    run(connection, sql, params![int(message.id.raw()), CampaignState::Running.code(), int(as_of.raw())])?;
    if !target.is_direct() {
        produce(connection, message, now)?;
        return Ok(Vec::new());
    }
    let mut tickets = Vec::new();
    let mut shelf = Shelf::new(connection);
    for (fleet, devices) in direct {
        let fleet = fleets::by_no(connection, fleet)?;
        tickets.extend(cut(
            connection,
            &mut shelf,
            message.id.into(),
            (fleet, Class::Urgent),
            &devices,
            chunk_max_devices,
            now,
        )?);
        shelf.open(message.id.into(), fleet.provider)?.ledger.audience_complete = true;
    }
    shelf.close(now)?;
    if tickets.is_empty() {
        campaigns::finish(connection, message.id.into(), now)?;
    }
    Ok(tickets)
}

/// Cuts devices new to a campaign into chunks.
pub(super) fn cut(
    connection: &Connection,
    shelf: &mut Shelf<'_>,
    campaign: CampaignId,
    (fleet, class): (Fleet, Class),
    devices: &[DeviceId],
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Vec<Ticket>> {
    shelf.open(campaign, fleet.provider)?.expand(devices.len());
    let chunk = |devices| NewChunk {
        campaign,
        fleet,
        class,
        devices,
        attempt: 1,
        ambiguous: false,
        due_at: now,
        created_at: now,
        parent: None,
    };
    slices(devices, chunk_max_devices).map(|devices| chunks::insert(connection, &chunk(devices))).collect()
}

/// Slices devices as they are cut into chunks.
pub(super) fn slices(devices: &[DeviceId], chunk_max_devices: usize) -> impl Iterator<Item = &[DeviceId]> {
    devices.chunks(chunk_max_devices.clamp(1, CHUNK_MAX_DEVICES))
}

/// Makes a producer for each provider: which of them have an audience is theirs to find out.
fn produce(connection: &Connection, message: &Message, now: Timestamp) -> Done<()> {
    let campaign = CampaignId::from(message.id);
    let mut shelf = Shelf::new(connection);
    for provider in ProviderKind::ALL {
        let fleet = fleets::ensure(connection, message.app, *provider)?;
        let sql = "INSERT INTO producers (campaign, fleet, cursor) VALUES (?1, ?2, 0)";
        run(connection, sql, [int(campaign.raw()), int(fleet.no)])?;
        shelf.open(campaign, *provider)?;
    }
    shelf.close(now)
}

/// Finds the devices of a direct target by fleet, ascending; a token that nobody registered becomes an unlisted device.
fn direct(
    connection: &Connection,
    app: AppId,
    target: &Target,
    now: Timestamp,
) -> Done<BTreeMap<u64, Vec<DeviceId>>> {
    let mut keys = match target {
        Target::Token(token) => vec![of_token(connection, app, token, now)?],
        other => named(connection, app, other)?,
    };
    keys.sort_unstable();
    keys.dedup();
    let mut fleets: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
    for key in keys {
        fleets.entry(fleet_of(key)).or_default().push(device_of(key));
    }
    Ok(fleets)
}

/// Finds keys of the devices that a target names one by one; those that are gone are left out.
pub(super) fn named(connection: &Connection, app: AppId, target: &Target) -> Done<Vec<i64>> {
    let ids: &[DeviceId] = match target {
        Target::Device(id) => std::slice::from_ref(id),
        Target::Devices(ids) => ids,
        Target::User(user) => return of_user(connection, app, user),
        _ => &[],
    };
    let mut keys = Vec::with_capacity(ids.len());
    for id in ids {
        keys.extend(fleets::locate(connection, app, *id)?.map(|(_, key)| key));
    }
    Ok(keys)
}

fn of_user(connection: &Connection, app: AppId, user: &ExternalId) -> Done<Vec<i64>> {
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(Vec::new()) };
    let sql = "SELECT u.key FROM user_devices u CROSS JOIN devices d ON d.key = u.key
        WHERE u.user = ?1 AND d.listed = 1 AND d.retired_at IS NULL ORDER BY u.key";
    all(connection, sql, [no], |row: &Row<'_>| Ok(row.get(0)?))
}

fn of_token(connection: &Connection, app: AppId, target: &TokenTarget, now: Timestamp) -> Done<i64> {
    let provider: ProviderKind = target.provider;
    let fleet = fleets::ensure(connection, app, provider)?;
    if let Some(key) = tokens::holder(connection, fleet, &target.token)? {
        return Ok(key);
    }
    let id = sequences::last(connection, "device")? + 1;
    fleets::check_device_number(id)?;
    let key = fleet.bound(DeviceId::from_raw(id));
    let given = Registration::new(target.platform, provider, target.token.clone());
    let row = NewRow { key, user: None, tags: None, listed: false, now };
    register::insert(&mut *connection.prepare_cached(INSERT)?, &given, &row)?;
    tokens::note(connection, tokens::hash(app, provider, &target.token), key)?;
    sequences::advance(connection, "device", id)?;
    Ok(key)
}
