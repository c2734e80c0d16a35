//! Beginning a campaign: the audience's bound is fixed, and producers or chunks are made.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::{Class, Ticket};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::{AppId, CampaignId, DeviceId, MessageId};
use stentor_core::limits::{CHUNK_MAX_DEVICES, TARGET_DEVICES_MAX_COUNT};
use stentor_core::message::Message;
use stentor_core::name::ExternalId;
use stentor_core::ports::store::Started;
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;

use super::books::Shelf;
use super::chunks::{self, NewChunk};
use super::fleets::{self, Fleet, device_of, fleet_of};
use super::register::{self, NewRow};
use super::{campaigns, messages, owners, sequences, tokens, turns};
use crate::sqlite::damage::attempt;
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::portion::Portion;
use crate::sqlite::query::{all, exists, limit, run};
use crate::sqlite::row::int;

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
    let some = |ids: &[MessageId]| some(connection, ids, chunk_max_devices, now);
    if let Ok(started) = attempt(connection, || some(&due))? {
        return Ok(Started { has_more: started.has_more || due.len() >= count, ..started });
    }
    let mut all = Started { has_more: due.len() >= count, ..Started::default() };
    // What was taken back counts as changed: with the former portion nothing might be begun, nor the damaged one stopped.
    let portion = Portion::begin(connection);
    for id in due {
        if portion.is_over() {
            all.has_more = true;
            break;
        }
        match attempt(connection, || some(&[id]))? {
            Ok(one) => {
                all.tickets.extend(one.tickets);
                all.begun.extend(one.begun);
                all.has_producers |= one.has_producers;
            }
            Err(_) => campaigns::set_aside(connection, id.into(), now)?,
        }
    }
    Ok(all)
}

/// Begins campaigns for as long as a transaction may last.
fn some(
    connection: &Connection,
    ids: &[MessageId],
    chunk_max_devices: usize,
    now: Timestamp,
) -> Done<Started> {
    let portion = Portion::begin(connection);
    let mut starter = Starter::new(connection, chunk_max_devices, now);
    let mut started = Started::default();
    for id in ids {
        if portion.is_over() {
            started.has_more = true;
            break;
        }
        let message = messages::load(connection, *id)?.ok_or_else(|| damaged("a message is missing"))?;
        started.tickets.extend(starter.begin(&message)?);
        started.begun.push(message.app);
    }
    started.has_producers = starter.has_producers;
    starter.close()?;
    Ok(started)
}

/// Begins campaigns in one transaction: what they share is read once, and books are written once.
struct Starter<'a> {
    connection: &'a Connection,
    shelf: Shelf<'a>,
    chunk_max_devices: usize,
    now: Timestamp,
    fleets: Vec<Fleet>,
    /// The last device given out, once it was asked for, and whether it was given out here.
    last_device: Option<u64>,
    has_devices: bool,
    has_producers: bool,
    /// Campaigns without anybody.
    empty: Vec<CampaignId>,
}

impl<'a> Starter<'a> {
    fn new(connection: &'a Connection, chunk_max_devices: usize, now: Timestamp) -> Self {
        let shelf = Shelf::new(connection);
        Self {
            connection,
            shelf,
            chunk_max_devices,
            now,
            fleets: Vec::new(),
            last_device: None,
            has_devices: false,
            has_producers: false,
            empty: Vec::new(),
        }
    }

    fn begin(&mut self, message: &Message) -> Done<Vec<Ticket>> {
        let target = &message.spec.target;
        let is_direct = target.is_direct() && !has_many(self.connection, message.app, target)?;
        let direct = if is_direct { self.direct(message.app, target)? } else { BTreeMap::new() };
        let as_of = self.last_device()?;
        let sql = "UPDATE campaigns SET state = ?2, as_of = ?3 WHERE id = ?1";
        run(self.connection, sql, params![int(message.id.raw()), CampaignState::Running.code(), int(as_of)])?;
        if !is_direct {
            self.has_producers = true;
            self.produce(message)?;
            return Ok(Vec::new());
        }
        let mut tickets = Vec::new();
        for (fleet, devices) in direct {
            tickets.extend(self.cut(message.id.into(), fleet, &devices)?);
        }
        if tickets.is_empty() {
            self.empty.push(message.id.into());
        }
        Ok(tickets)
    }

    /// Writes what was gathered.
    fn close(self) -> Done<()> {
        if let Some(last) = self.last_device.filter(|_| self.has_devices) {
            sequences::advance(self.connection, "device", last)?;
        }
        self.shelf.close(self.now)?;
        self.empty
            .into_iter()
            .try_for_each(|campaign| campaigns::finish_if_over(self.connection, campaign, self.now))
    }

    fn cut(&mut self, campaign: CampaignId, fleet: u64, devices: &[DeviceId]) -> Done<Vec<Ticket>> {
        let fleet = match self.fleets.iter().find(|known| known.no == fleet) {
            Some(known) => *known,
            None => self.note(fleets::by_no(self.connection, fleet)?),
        };
        self.shelf.open_new(campaign, fleet.provider).set_complete(true);
        let (most, now) = (self.chunk_max_devices, self.now);
        cut(self.connection, &mut self.shelf, campaign, (fleet, Class::Urgent), devices, most, now)
    }

    fn note(&mut self, fleet: Fleet) -> Fleet {
        self.fleets.push(fleet);
        fleet
    }

    /// Makes a producer for each provider: which of them have an audience is theirs to find out.
    fn produce(&mut self, message: &Message) -> Done<()> {
        let campaign = CampaignId::from(message.id);
        let fleets = fleets::of_app(self.connection, message.app)?;
        for fleet in &fleets {
            let sql = "INSERT INTO producers (campaign, fleet, cursor) VALUES (?1, ?2, 0)";
            run(self.connection, sql, [int(campaign.raw()), int(fleet.no)])?;
            self.shelf.open_new(campaign, fleet.provider);
        }
        if fleets.is_empty() {
            self.empty.push(campaign);
        }
        Ok(())
    }

    fn last_device(&mut self) -> Done<u64> {
        if let Some(last) = self.last_device {
            return Ok(last);
        }
        let last = sequences::last_device(self.connection)?.raw();
        self.last_device = Some(last);
        Ok(last)
    }

    /// Finds the devices of a direct target by fleet, ascending; a token that nobody registered becomes an unlisted device.
    fn direct(&mut self, app: AppId, target: &Target) -> Done<BTreeMap<u64, Vec<DeviceId>>> {
        let mut keys = match target {
            Target::Token(token) => vec![self.of_token(app, token)?],
            other => named(self.connection, app, other)?,
        };
        keys.sort_unstable();
        keys.dedup();
        let mut fleets: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
        for key in keys {
            fleets.entry(fleet_of(key)).or_default().push(device_of(key));
        }
        Ok(fleets)
    }

    fn of_token(&mut self, app: AppId, target: &TokenTarget) -> Done<i64> {
        let provider: ProviderKind = target.provider;
        let known = self.fleets.iter().find(|known| (known.app, known.provider) == (app, provider));
        let fleet = match known {
            Some(known) => *known,
            None => self.note(fleets::ensure(self.connection, app, provider)?),
        };
        let hash = tokens::hash(app, provider, &target.token);
        if let Some(key) = tokens::holder_by_hash(self.connection, fleet, hash, &target.token)? {
            return Ok(key);
        }
        let id = self.last_device()? + 1;
        fleets::check_device_number(id)?;
        let key = fleet.bound(DeviceId::from_raw(id));
        let given = Registration::new(target.platform, provider, target.token.clone());
        let row = NewRow { key, given: &given, user: None, tags: None, listed: false, now: self.now };
        register::insert(self.connection, &[row])?;
        tokens::note(self.connection, [(hash, key)])?;
        (self.last_device, self.has_devices) = (Some(id), true);
        Ok(key)
    }
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
    shelf.open(campaign, fleet.provider)?.expand(devices.len() as u64);
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

/// Returns whether a person has so many devices that they are found step by step, like a wide audience.
fn has_many(connection: &Connection, app: AppId, target: &Target) -> Done<bool> {
    let Target::User(user) = target else { return Ok(false) };
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(false) };
    let sql = "SELECT 1 FROM user_devices WHERE user = ?1 LIMIT 1 OFFSET ?2";
    exists(connection, sql, [no, limit(TARGET_DEVICES_MAX_COUNT)])
}

fn of_user(connection: &Connection, app: AppId, user: &ExternalId) -> Done<Vec<i64>> {
    let Some((no, _)) = owners::find(connection, app, user)? else { return Ok(Vec::new()) };
    let sql = "SELECT u.key FROM user_devices u CROSS JOIN devices d ON d.key = u.key
        WHERE u.user = ?1 AND d.listed = 1 AND d.retired_at IS NULL ORDER BY u.key";
    all(connection, sql, [no], |row: &Row<'_>| Ok(row.get(0)?))
}
