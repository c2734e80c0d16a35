//! One batch of registrations on its way into the tables.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{CachedStatement, Connection};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::DeviceId;
use stentor_core::name::{ExternalId, TopicName};
use stentor_core::ports::store::{Registered, Replacement};

use super::app_providers::{self, AppProvider};
use super::merged_devices::DevicePair;
use super::register::{self, NewRow};
use super::registration::{
    KNOWN_COLUMNS, KNOWN_COLUMNS_COUNT, KnownDevice, RegistrationBatch, TokenMatch, WantedToken,
};
use super::tags::{change_tags, join_tags};
use super::{device_topics, owners, sequences, tokens, topics};
use crate::sql::{Done, damaged, one, params, run};

/// The cached statements and lookups of a batch.
pub(super) struct Registrar<'a> {
    connection: &'a Connection,
    batch: &'a RegistrationBatch,
    touch: CachedStatement<'a>,
    /// New devices that are not written yet.
    new: Vec<NewRow<'a>>,
    fleets: HashMap<ProviderKind, AppProvider>,
    users: HashMap<&'a ExternalId, i64>,
    topics: HashMap<&'a TopicName, (i64, i64)>,
    joined: HashMap<u64, i64>,
    /// Hashes of the former tokens of devices that have moved, with their keys.
    left: Vec<(i64, i64)>,
    last_device: u64,
}

/// The device that a former token leads to.
pub(super) struct FormerHolder {
    /// The hash of the former token.
    hash: i64,
    device: KnownDevice,
}

impl<'a> Registrar<'a> {
    /// Prepares all.
    pub(super) fn new(connection: &'a Connection, batch: &'a RegistrationBatch) -> Done<Self> {
        let providers: BTreeSet<ProviderKind> = batch.given.iter().map(|one| one.provider).collect();
        let ensure = |provider| Ok((provider, app_providers::ensure(connection, batch.app, provider)?));
        Ok(Self {
            connection,
            batch,
            touch: connection.prepare_cached("UPDATE devices SET token_since = ?2 WHERE key = ?1")?,
            new: Vec::new(),
            fleets: providers.into_iter().map(ensure).collect::<Done<_>>()?,
            users: HashMap::new(),
            topics: HashMap::new(),
            joined: HashMap::new(),
            left: Vec::new(),
            last_device: sequences::last(connection, "device")?,
        })
    }

    /// Finds out about every token, in order of hash.
    pub(super) fn look_up(&self) -> Done<Vec<TokenMatch>> {
        let mut found = self.batch.repeats();
        let wanted = self.batch.wanted(&found);
        self.holders(&wanted, |at, _, device| found[at] = TokenMatch::Known(Box::new(device)))?;
        Ok(found)
    }

    /// Finds the devices that former tokens lead to, by the positions of the registrations.
    pub(super) fn look_up_formers(&self) -> Done<HashMap<usize, FormerHolder>> {
        let (wanted, mut found) = (self.batch.wanted_formers(), HashMap::new());
        self.holders(&wanted, |at, hash, device| drop(found.insert(at, FormerHolder { hash, device })))?;
        Ok(found)
    }

    /// Passes the devices that hold tokens, which are in order of hash, to `found` with the positions and the hashes.
    fn holders(
        &self,
        wanted: &[WantedToken<'_>],
        mut found: impl FnMut(usize, i64, KnownDevice),
    ) -> Done<()> {
        let fleet = |want: &WantedToken<'_>| self.fleet(self.batch.given[want.at].provider);
        let places = wanted.iter().map(|want| Ok((want.hash, fleet(want)?)));
        let places: Vec<(i64, AppProvider)> = places.collect::<Done<_>>()?;
        let columns = format!("{}, d.token", *KNOWN_COLUMNS);
        tokens::behind(self.connection, &columns, &places, |row| {
            let (key, of): (i64, i64) = (row.get(0)?, row.get(KNOWN_COLUMNS_COUNT + 1)?);
            let start = wanted.partition_point(|before| before.hash < of);
            // Tokens that differ may have one hash: each is compared with the device's own.
            for want in wanted[start..].iter().take_while(|want| want.hash == of) {
                let holds = row.str(KNOWN_COLUMNS_COUNT)? == want.token.expose();
                if holds && fleet(want)?.no == app_providers::fleet_of(key) {
                    found(want.at, want.hash, KnownDevice::read(row)?);
                }
            }
            Ok(())
        })
    }

    /// Creates a new device; returns its key.
    pub(super) fn insert(&mut self, one: &'a Registration) -> Done<i64> {
        let fleet = self.fleet(one.provider)?;
        self.last_device += 1;
        app_providers::check_device_number(self.last_device)?;
        let key = fleet.bound(DeviceId::from_raw(self.last_device));
        let user = self.user(one.facts.user.as_ref())?;
        let tags = join_tags(&one.facts.tags);
        owners::move_device(self.connection, key, None, user)?;
        change_tags(self.connection, self.batch.app, key, None, tags.as_deref())?;
        self.new.push(NewRow { key, given: one, user, tags, listed: true, now: self.batch.now });
        *self.joined.entry(fleet.no).or_default() += 1;
        Ok(key)
    }

    /// Applies a repeated registration; returns the device's key.
    pub(super) fn renew(&mut self, kept: KnownDevice, one: &'a Registration) -> Done<i64> {
        let (key, now) = (kept.key, self.batch.now.as_millis());
        if !kept.active {
            *self.joined.entry(app_providers::fleet_of(key)).or_default() += 1;
        }
        // Values absent from a repeat stay as they were.
        let user = self.user(one.facts.user.as_ref())?.or(kept.user);
        if !kept.differs(one, user) {
            if kept.token_since != now {
                self.touch.execute([key, now])?;
            }
            return Ok(key);
        }
        let renewed = kept.renewed(one);
        owners::move_device(self.connection, key, kept.user, user)?;
        change_tags(self.connection, self.batch.app, key, kept.tags.as_deref(), renewed.tags.as_deref())?;
        renewed.write(self.connection, key, one.platform, user, self.batch.now)?;
        Ok(key)
    }

    /// Applies a registration that moves a known device to a token that no device has; returns the device's key.
    pub(super) fn move_token(&mut self, former: FormerHolder, one: &'a Registration) -> Done<i64> {
        let key = self.renew(former.device, one)?;
        self.left.push((former.hash, key));
        let sql = "UPDATE devices SET token = ?2 WHERE key = ?1";
        run(self.connection, sql, params![key, one.token.expose()])?;
        Ok(key)
    }

    /// Applies a registration by which two known devices are one; returns its key.
    pub(super) fn merge(
        &mut self,
        holder: KnownDevice,
        former: FormerHolder,
        one: &'a Registration,
    ) -> Done<i64> {
        let (fleet, user) = (self.fleet(one.provider)?, self.user(one.facts.user.as_ref())?);
        let pair = DevicePair { holder, former: former.device };
        if !pair.stays().active {
            *self.joined.entry(fleet.no).or_default() += 1;
        }
        pair.merge(self.connection, fleet, one, user, self.batch.now)?;
        Ok(pair.stays().key)
    }

    /// Applies a second registration of the same token in one batch.
    pub(super) fn renew_again(&mut self, key: i64, given: &'a Registration) -> Done<i64> {
        // The row of the first one must be there to be read.
        self.write_new()?;
        let sql = format!("SELECT {} FROM devices d WHERE d.key = ?1", *KNOWN_COLUMNS);
        let kept = one(self.connection, &sql, [key], KnownDevice::read)?;
        self.renew(kept.ok_or_else(|| damaged("a device is missing"))?, given)
    }

    /// Subscribes a device to topics, which exist from then on.
    pub(super) fn subscribe(&mut self, key: i64, names: &'a [TopicName]) -> Done<()> {
        let mut room = None;
        for name in names {
            let topic = match self.topics.get(name) {
                Some((topic, _)) => *topic,
                None => topics::ensure(self.connection, self.batch.app, name)?,
            };
            let added = device_topics::add_within(self.connection, topic, key, &mut room)?;
            self.topics.entry(name).or_insert((topic, 0)).1 += i64::from(added);
        }
        Ok(())
    }

    /// Writes the new devices, in order of key.
    fn write_new(&mut self) -> Done<()> {
        // In order of key neighbours share a page.
        self.new.sort_unstable_by_key(|row| row.key);
        register::insert(self.connection, &self.new)?;
        self.new.clear();
        Ok(())
    }

    /// Records the holders of the new tokens, in order of hash.
    pub(super) fn note(&self, keys: &[i64], registered: &[Registered]) -> Done<()> {
        // First, because a former token may have the hash of the new one.
        tokens::forget(self.connection, self.left.iter().copied())?;
        // A portion may have ended before the last ones, which have no device yet.
        let is_new = |one: &Registered| one.created || one.replacement == Replacement::Renewed;
        let new = self.batch.by_hash.iter().filter(|at| registered.get(**at).is_some_and(is_new));
        tokens::note(self.connection, new.map(|at| (self.batch.hashes[*at], keys[*at])))
    }

    /// Writes the remaining rows and the counts.
    pub(super) fn close(mut self) -> Done<()> {
        self.write_new()?;
        for (topic, added) in self.topics.values() {
            topics::count(self.connection, *topic, *added)?;
        }
        for (fleet, joined) in self.joined {
            app_providers::count_active(self.connection, fleet, joined)?;
        }
        sequences::advance(self.connection, "device", self.last_device)
    }

    fn fleet(&self, provider: ProviderKind) -> Done<AppProvider> {
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
