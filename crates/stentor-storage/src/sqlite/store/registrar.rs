//! One batch of registrations on its way into the tables.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{CachedStatement, Connection, Row, params};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::DeviceId;
use stentor_core::name::{ExternalId, Locale, TimeZoneName, TopicName};
use stentor_core::ports::store::Registered;

use super::devices::{change_tags, join_tags};
use super::fleets::{self, Fleet};
use super::register::{self, Batch, INSERT, NewRow};
use super::{owners, sequences, topics};
use crate::sqlite::fault::{Done, damaged};
use crate::sqlite::query::{one, run};

const KEPT: &str =
    "d.key, d.token, d.platform, d.listed, d.retired_at IS NULL, d.user, d.locale, d.time_zone, d.tags,
    d.token_since";

/// What was found out about one registration's token.
pub(super) enum Found {
    /// No device holds it.
    New,
    /// A device holds it.
    Known(Box<Kept>),
    /// An earlier registration of the batch names it too.
    Repeats(usize),
}

/// The columns of a known device that a repeat may change.
pub(super) struct Kept {
    key: i64,
    platform: u8,
    active: bool,
    user: Option<i64>,
    locale: Option<String>,
    time_zone: Option<String>,
    tags: Option<String>,
    token_since: i64,
}

/// What a batch needs again and again: statements, and numbers looked up before.
pub(super) struct Registrar<'a> {
    connection: &'a Connection,
    batch: &'a Batch,
    find: CachedStatement<'a>,
    insert: CachedStatement<'a>,
    touch: CachedStatement<'a>,
    fleets: HashMap<ProviderKind, Fleet>,
    users: HashMap<&'a ExternalId, i64>,
    topics: HashMap<&'a TopicName, (i64, i64)>,
    joined: HashMap<u64, i64>,
    last_device: u64,
}

impl<'a> Registrar<'a> {
    /// Prepares all.
    pub(super) fn new(connection: &'a Connection, batch: &'a Batch) -> Done<Self> {
        let providers: BTreeSet<ProviderKind> = batch.given.iter().map(|one| one.provider).collect();
        let ensure = |provider| Ok((provider, fleets::ensure(connection, batch.app, provider)?));
        let find = format!(
            "SELECT {KEPT} FROM token_hashes h CROSS JOIN devices d ON d.key = h.key
            WHERE h.hash = ?1 AND h.key BETWEEN ?2 AND ?3"
        );
        Ok(Self {
            connection,
            batch,
            find: connection.prepare_cached(&find)?,
            insert: connection.prepare_cached(INSERT)?,
            touch: connection.prepare_cached("UPDATE devices SET token_since = ?2 WHERE key = ?1")?,
            fleets: providers.into_iter().map(ensure).collect::<Done<_>>()?,
            users: HashMap::new(),
            topics: HashMap::new(),
            joined: HashMap::new(),
            last_device: sequences::last(connection, "device")?,
        })
    }

    /// Finds out about every token, in order of hash.
    pub(super) fn look_up(&mut self) -> Done<Vec<Found>> {
        let batch = self.batch;
        let mut found: Vec<Found> = batch.given.iter().map(|_| Found::New).collect();
        for same in batch.by_hash.chunk_by(|a, b| batch.hashes[*a] == batch.hashes[*b]) {
            for (index, at) in same.iter().enumerate() {
                let one = &batch.given[*at];
                let earlier = same[..index].iter().find(|earlier| {
                    let earlier = &batch.given[**earlier];
                    earlier.provider == one.provider && earlier.token == one.token
                });
                found[*at] = match earlier {
                    Some(earlier) => Found::Repeats(*earlier),
                    None => self.look_up_one(one, batch.hashes[*at])?,
                };
            }
        }
        Ok(found)
    }

    /// Makes a new device; gives its key.
    pub(super) fn insert(&mut self, one: &'a Registration) -> Done<i64> {
        let fleet = self.fleet(one.provider)?;
        self.last_device += 1;
        fleets::check_device_number(self.last_device)?;
        let key = fleet.bound(DeviceId::from_raw(self.last_device));
        let user = self.user(one.user.as_ref())?;
        let tags = join_tags(&one.tags);
        let row = NewRow { key, user, tags: tags.as_deref(), listed: true, now: self.batch.now };
        register::insert(&mut self.insert, one, &row)?;
        owners::move_device(self.connection, key, None, user)?;
        change_tags(self.connection, self.batch.app, key, None, tags.as_deref())?;
        *self.joined.entry(fleet.no).or_default() += 1;
        Ok(key)
    }

    /// Takes over what a repeated registration tells; gives the device's key.
    pub(super) fn renew(&mut self, kept: Kept, one: &'a Registration) -> Done<i64> {
        let (key, now) = (kept.key, self.batch.now.as_millis());
        if !kept.active {
            *self.joined.entry(fleets::fleet_of(key)).or_default() += 1;
        }
        let user = self.user(one.user.as_ref())?.or(kept.user);
        if !kept.differs(one, user) {
            if kept.token_since != now {
                self.touch.execute([key, now])?;
            }
            return Ok(key);
        }
        let tags = join_tags(&one.tags).or_else(|| kept.tags.clone());
        owners::move_device(self.connection, key, kept.user, user)?;
        change_tags(self.connection, self.batch.app, key, kept.tags.as_deref(), tags.as_deref())?;
        let locale = one.locale.as_ref().map(Locale::as_str).or(kept.locale.as_deref());
        let zone = one.time_zone.as_ref().map(TimeZoneName::as_str).or(kept.time_zone.as_deref());
        let sql = "UPDATE devices SET token_since = ?2, platform = ?3, listed = 1, retired_at = NULL,
            retired_reason = NULL, user = ?4, locale = ?5, time_zone = ?6, tags = ?7 WHERE key = ?1";
        run(self.connection, sql, params![key, now, one.platform.code(), user, locale, zone, tags])?;
        Ok(key)
    }

    /// Takes over what a second registration of the same token in one batch tells.
    pub(super) fn renew_again(&mut self, key: i64, given: &'a Registration) -> Done<i64> {
        let sql = format!("SELECT {KEPT} FROM devices d WHERE d.key = ?1");
        let kept = one(self.connection, &sql, [key], Kept::read)?;
        self.renew(kept.ok_or_else(|| damaged("a device is missing"))?, given)
    }

    /// Subscribes a device to topics, which exist from then on.
    pub(super) fn subscribe(&mut self, key: i64, names: &'a [TopicName]) -> Done<()> {
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

    /// Notes which new device holds which token, in order of hash.
    pub(super) fn note(&self, keys: &[i64], registered: &[Registered]) -> Done<()> {
        let sql = "INSERT INTO token_hashes (hash, key) VALUES (?1, ?2)";
        let mut note = self.connection.prepare_cached(sql)?;
        for at in self.batch.by_hash.iter().filter(|at| registered[**at].created) {
            note.execute([self.batch.hashes[*at], keys[*at]])?;
        }
        Ok(())
    }

    /// Writes the counts.
    pub(super) fn close(self) -> Done<()> {
        for (topic, added) in self.topics.values() {
            topics::count(self.connection, *topic, *added)?;
        }
        for (fleet, joined) in self.joined {
            fleets::count_active(self.connection, fleet, joined)?;
        }
        sequences::advance(self.connection, "device", self.last_device)
    }

    fn look_up_one(&mut self, one: &Registration, hash: i64) -> Done<Found> {
        let fleet = self.fleet(one.provider)?;
        let (first, last) = (fleet.bound(DeviceId::from_raw(0)), fleet.bound(DeviceId::from_raw(u64::MAX)));
        let mut rows = self.find.query([hash, first, last])?;
        while let Some(row) = rows.next()? {
            let token = row.get_ref(1)?.as_str().map_err(|_| damaged("a token that is no text"))?;
            if token == one.token.expose() {
                return Ok(Found::Known(Box::new(Kept::read(row)?)));
            }
        }
        Ok(Found::New)
    }

    fn fleet(&self, provider: ProviderKind) -> Done<Fleet> {
        self.fleets.get(&provider).copied().ok_or_else(|| damaged("a fleet is missing"))
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
}

impl Kept {
    fn read(row: &Row<'_>) -> Done<Self> {
        let (listed, unretired): (bool, bool) = (row.get(3)?, row.get(4)?);
        Ok(Self {
            key: row.get(0)?,
            platform: row.get(2)?,
            active: listed && unretired,
            user: row.get(5)?,
            locale: row.get(6)?,
            time_zone: row.get(7)?,
            tags: row.get(8)?,
            token_since: row.get(9)?,
        })
    }

    /// Tells whether more than `token_since` is to be written.
    fn differs(&self, one: &Registration, user: Option<i64>) -> bool {
        let locale = one.locale.as_ref().map(Locale::as_str);
        let zone = one.time_zone.as_ref().map(TimeZoneName::as_str);
        !self.active
            || self.platform != one.platform.code()
            || self.user != user
            || locale.is_some_and(|given| self.locale.as_deref() != Some(given))
            || zone.is_some_and(|given| self.time_zone.as_deref() != Some(given))
            || !one.tags.is_empty() && self.tags != join_tags(&one.tags)
    }
}
