//! Registering devices in bulk.
//!
//! Look-ups go through the token hashes in their order, so that neighbours share pages; ids are given in the order of
//! the caller; a repeat writes nothing but `token_since`.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, Row, params};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{ExternalId, Locale, TimeZoneName, TopicName};
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::Registered;

use super::devices::{change_tags, join_tags};
use super::fleets::{self, Fleet, device_of};
use super::{owners, sequences, tokens, topics};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{one, run};

/// Registrations with all that can be prepared outside the transaction.
pub(super) struct Batch {
    app: AppId,
    given: Vec<Registration>,
    hashes: Vec<i64>,
    /// Positions in order of hash; equal tokens keep the caller's order.
    by_hash: Vec<usize>,
    now: Timestamp,
}

impl Batch {
    /// Hashes and sorts.
    pub(super) fn new(app: AppId, registrations: &[Registration], now: Timestamp) -> Self {
        let hash = |one: &Registration| tokens::hash(app, one.provider, &one.token);
        let hashes: Vec<i64> = registrations.iter().map(hash).collect();
        let mut by_hash: Vec<usize> = (0..registrations.len()).collect();
        by_hash.sort_by_key(|at| hashes[*at]);
        Self { app, given: registrations.to_vec(), hashes, by_hash, now }
    }
}

/// What was found out about one registration's token.
#[derive(Clone, Copy)]
enum Found {
    New,
    Known(i64),
    /// Names the same token as an earlier one of the batch.
    Repeats(usize),
}

/// Registers all.
pub(super) fn all(connection: &Connection, batch: &Batch) -> Done<Vec<Registered>> {
    fleets::check_app(connection, batch.app)?;
    let mut desk = Desk::new(connection, batch)?;
    let found = desk.look_up()?;
    let mut keys = Vec::with_capacity(found.len());
    for (at, found) in found.iter().enumerate() {
        let key = match *found {
            Found::New => desk.insert(&batch.given[at])?,
            Found::Known(key) => desk.renew(key, &batch.given[at])?,
            Found::Repeats(earlier) => desk.renew(keys[earlier], &batch.given[at])?,
        };
        desk.subscribe(key, &batch.given[at].topics)?;
        keys.push(key);
    }
    for at in batch.by_hash.iter().filter(|at| matches!(found[**at], Found::New)) {
        tokens::note(connection, batch.hashes[*at], keys[*at])?;
    }
    desk.close()?;
    let reply = |(key, found): (&i64, &Found)| Registered {
        device: device_of(*key),
        created: matches!(found, Found::New),
    };
    Ok(keys.iter().zip(&found).map(reply).collect())
}

struct Desk<'a> {
    connection: &'a Connection,
    batch: &'a Batch,
    fleets: HashMap<ProviderKind, Fleet>,
    users: HashMap<&'a ExternalId, i64>,
    topics: HashMap<&'a TopicName, (i64, i64)>,
    joined: HashMap<u64, i64>,
    last_device: u64,
}

/// The columns of a known device that a repeat may change.
struct Kept {
    platform: u8,
    active: bool,
    listed: bool,
    user: Option<i64>,
    locale: Option<String>,
    time_zone: Option<String>,
    tags: Option<String>,
    token_since: i64,
}

impl<'a> Desk<'a> {
    fn new(connection: &'a Connection, batch: &'a Batch) -> Done<Self> {
        let providers: BTreeSet<ProviderKind> = batch.given.iter().map(|one| one.provider).collect();
        let ensure = |provider| Ok((provider, fleets::ensure(connection, batch.app, provider)?));
        let fleets = providers.into_iter().map(ensure).collect::<Done<_>>()?;
        let last_device = sequences::last(connection, "device")?;
        let (users, topics, joined) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Self { connection, batch, fleets, users, topics, joined, last_device })
    }

    fn look_up(&self) -> Done<Vec<Found>> {
        let mut found = vec![Found::New; self.batch.given.len()];
        let hashes = &self.batch.hashes;
        for same in self.batch.by_hash.chunk_by(|a, b| hashes[*a] == hashes[*b]) {
            for (index, at) in same.iter().enumerate() {
                let one = &self.batch.given[*at];
                let earlier = same[..index].iter().find(|earlier| {
                    let earlier = &self.batch.given[**earlier];
                    earlier.provider == one.provider && earlier.token == one.token
                });
                found[*at] = match earlier {
                    Some(earlier) => Found::Repeats(*earlier),
                    None => self.look_up_one(one, hashes[*at])?,
                };
            }
        }
        Ok(found)
    }

    fn look_up_one(&self, one: &Registration, hash: i64) -> Done<Found> {
        let holder = tokens::holder_by_hash(self.connection, self.fleet(one.provider)?, hash, &one.token)?;
        Ok(holder.map_or(Found::New, Found::Known))
    }

    fn fleet(&self, provider: ProviderKind) -> Done<Fleet> {
        self.fleets.get(&provider).copied().ok_or_else(|| damaged("a fleet is missing"))
    }

    fn insert(&mut self, one: &'a Registration) -> Done<i64> {
        let fleet = self.fleet(one.provider)?;
        self.last_device += 1;
        fleets::check_device_number(self.last_device)?;
        let key = fleet.bound(DeviceId::from_raw(self.last_device));
        let user = self.user(one.user.as_ref())?;
        let tags = join_tags(&one.tags);
        insert(self.connection, key, one, user, tags.as_deref(), true, self.batch.now)?;
        owners::move_device(self.connection, key, None, user)?;
        change_tags(self.connection, self.batch.app, key, None, tags.as_deref())?;
        *self.joined.entry(fleet.no).or_default() += 1;
        Ok(key)
    }

    fn renew(&mut self, key: i64, one: &'a Registration) -> Done<i64> {
        let kept = self.kept(key)?;
        if !kept.active {
            *self.joined.entry(fleets::fleet_of(key)).or_default() += 1;
        }
        let now = self.batch.now.as_millis();
        if !kept.differs(one) {
            if kept.token_since != now {
                run(self.connection, "UPDATE devices SET token_since = ?2 WHERE key = ?1", [key, now])?;
            }
            return Ok(key);
        }
        let user = self.user(one.user.as_ref())?.or(kept.user);
        let tags = join_tags(&one.tags).or(kept.tags.clone());
        owners::move_device(self.connection, key, kept.user, user)?;
        change_tags(self.connection, self.batch.app, key, kept.tags.as_deref(), tags.as_deref())?;
        let locale = one.locale.as_ref().map(Locale::as_str).or(kept.locale.as_deref());
        let zone = one.time_zone.as_ref().map(TimeZoneName::as_str).or(kept.time_zone.as_deref());
        let sql = "UPDATE devices SET token_since = ?2, platform = ?3, listed = 1, retired_at = NULL,
            retired_reason = NULL, user = ?4, locale = ?5, time_zone = ?6, tags = ?7 WHERE key = ?1";
        run(self.connection, sql, params![key, now, one.platform.code(), user, locale, zone, tags])?;
        Ok(key)
    }

    fn kept(&self, key: i64) -> Done<Kept> {
        let sql = "SELECT platform, listed, retired_at IS NULL, user, locale, time_zone, tags, token_since
            FROM devices WHERE key = ?1";
        one(self.connection, sql, [key], Kept::read)?.ok_or_else(|| damaged("a device is missing"))
    }

    fn user(&mut self, user: Option<&'a ExternalId>) -> Done<Option<i64>> {
        let Some(user) = user else { return Ok(None) };
        if let Some(no) = self.users.get(user) {
            return Ok(Some(*no));
        }
        let no = owners::ensure(self.connection, self.batch.app, user, self.batch.now)?;
        self.users.insert(user, no);
        Ok(Some(no))
    }

    fn subscribe(&mut self, key: i64, names: &'a [TopicName]) -> Done<()> {
        for name in names {
            let topic = match self.topics.get(name) {
                Some((topic, _)) => *topic,
                None => topics::ensure(self.connection, self.batch.app, name)?,
            };
            let added = topics::add(self.connection, topic, key)?;
            self.topics.entry(name).or_insert((topic, 0)).1 += i64::from(added);
        }
        Ok(())
    }

    fn close(self) -> Done<()> {
        for (topic, added) in self.topics.values() {
            topics::count(self.connection, *topic, *added)?;
        }
        for (fleet, joined) in self.joined {
            fleets::count_active(self.connection, fleet, joined)?;
        }
        sequences::advance(self.connection, "device", self.last_device)
    }
}

impl Kept {
    fn read(row: &Row<'_>) -> Done<Self> {
        let (listed, unretired): (bool, bool) = (row.get(1)?, row.get(2)?);
        Ok(Self {
            platform: row.get(0)?,
            active: listed && unretired,
            listed,
            user: row.get(3)?,
            locale: row.get(4)?,
            time_zone: row.get(5)?,
            tags: row.get(6)?,
            token_since: row.get(7)?,
        })
    }

    /// Tells whether more than `token_since` is to be written. A given user counts as different: names are not read here.
    fn differs(&self, one: &Registration) -> bool {
        let locale = one.locale.as_ref().map(Locale::as_str);
        let zone = one.time_zone.as_ref().map(TimeZoneName::as_str);
        !self.active
            || !self.listed
            || self.platform != one.platform.code()
            || one.user.is_some()
            || locale.is_some_and(|given| self.locale.as_deref() != Some(given))
            || zone.is_some_and(|given| self.time_zone.as_deref() != Some(given))
            || !one.tags.is_empty() && self.tags != join_tags(&one.tags)
    }
}

/// Writes a new device's row.
pub(super) fn insert(
    connection: &Connection,
    key: i64,
    one: &Registration,
    user: Option<i64>,
    tags: Option<&str>,
    listed: bool,
    now: Timestamp,
) -> Done<()> {
    let sql = "INSERT INTO devices (key, token_since, registered_at, platform, listed, retired_at, retired_reason, user,
        token, locale, time_zone, tags) VALUES (?1, ?2, ?2, ?3, ?4, NULL, NULL, ?5, ?6, ?7, ?8, ?9)";
    let locale = one.locale.as_ref().map(Locale::as_str);
    let zone = one.time_zone.as_ref().map(TimeZoneName::as_str);
    let (since, platform, token) = (now.as_millis(), one.platform.code(), one.token.expose());
    run(connection, sql, params![key, since, platform, listed, user, token, locale, zone, tags]).map(drop)
}
