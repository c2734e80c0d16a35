//! The writer of one batch of registrations. New rows are collected and written with a few statements, because a network round trip costs
//! more than a row.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use stentor_core::device::{ProviderKind, Registration};
use stentor_core::id::DeviceId;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::{ExternalId, TopicName};

use super::app_providers::{self, AppProvider};
use super::merged_devices::DevicePair;
use super::register::{self, NewRow};
use super::registration::{
    KNOWN_COLUMNS, KNOWN_COLUMNS_COUNT, KnownDevice, RegistrationBatch, TokenMatch, WantedToken,
};
use super::tags::{change_tags, join_tags, split_tags};
use super::{many_owners, many_topics, owners, sequences, tokens, topics};
use crate::postgres::copy_rows::CopyRows;
use crate::postgres::engine::Connection;
use crate::postgres::query::copy;
use crate::sql::{Done, Value, damaged, int, one, params, run};

/// The cached lookups of a batch, and its rows not yet written.
pub(super) struct Registrar<'a> {
    connection: &'a Connection,
    batch: &'a RegistrationBatch,
    new: Vec<NewRow<'a>>,
    /// Topics of new devices.
    subscriptions: Vec<(i64, i64)>,
    /// Known devices of which only the time changes.
    touched: Vec<i64>,
    /// Known devices that move to another token: their keys, the hashes and the tokens.
    moved: (Vec<i64>, Vec<i64>, Vec<Option<String>>),
    fleets: HashMap<ProviderKind, AppProvider>,
    users: HashMap<&'a ExternalId, i64>,
    topics: HashMap<&'a TopicName, i64>,
    /// The number of devices that joined each topic.
    topics_joined: BTreeMap<i64, i64>,
    joined: HashMap<u64, i64>,
    last_device: u64,
}

impl<'a> Registrar<'a> {
    /// Prepares fleets and users of a batch.
    pub(super) fn new(connection: &'a Connection, batch: &'a RegistrationBatch) -> Done<Self> {
        let providers: BTreeSet<ProviderKind> = batch.given.iter().map(|one| one.provider).collect();
        let users: BTreeSet<&ExternalId> =
            batch.given.iter().filter_map(|one| one.facts.user.as_ref()).collect();
        let ensure = |provider| Ok((provider, app_providers::ensure(connection, batch.app, provider)?));
        Ok(Self {
            connection,
            batch,
            new: Vec::new(),
            subscriptions: Vec::new(),
            touched: Vec::new(),
            moved: (Vec::new(), Vec::new(), Vec::new()),
            fleets: providers.into_iter().map(ensure).collect::<Done<_>>()?,
            users: many_owners::ensure_all(connection, batch.app, &users, batch.now)?,
            topics: HashMap::new(),
            topics_joined: BTreeMap::new(),
            joined: HashMap::new(),
            // The sequence's row is locked until the transaction ends, so that others see numbers in the order of assignment.
            last_device: sequences::take(connection, "device", 0)?,
        })
    }

    /// Looks up every token.
    pub(super) fn look_up(&self) -> Done<Vec<TokenMatch>> {
        let mut found = self.batch.repeats();
        let wanted = self.batch.wanted(&found);
        self.holders(&wanted, |at, device| found[at] = TokenMatch::Known(Box::new(device)))?;
        Ok(found)
    }

    /// Finds the devices that former tokens lead to, by the positions of the registrations.
    pub(super) fn look_up_formers(&self) -> Done<HashMap<usize, KnownDevice>> {
        let (wanted, mut found) = (self.batch.wanted_formers(), HashMap::new());
        if !wanted.is_empty() {
            self.holders(&wanted, |at, device| drop(found.insert(at, device)))?;
        }
        Ok(found)
    }

    /// Passes the devices that hold tokens, which are in order of hash, to `found` with the positions.
    fn holders(&self, wanted: &[WantedToken<'_>], mut found: impl FnMut(usize, KnownDevice)) -> Done<()> {
        let hashes = wanted.iter().map(|want| want.hash).collect();
        let columns = format!("{}, d.token, d.token_hash", *KNOWN_COLUMNS);
        let kept = tokens::behind(self.connection, &columns, hashes, |row| {
            let token: String = row.get(KNOWN_COLUMNS_COUNT)?;
            Ok((row.get::<i64>(KNOWN_COLUMNS_COUNT + 1)?, token, KnownDevice::read(row)?))
        })?;
        for (hash, token, device) in kept {
            let start = wanted.partition_point(|before| before.hash < hash);
            let mut same = wanted[start..].iter().take_while(|want| want.hash == hash);
            let fleet = app_providers::fleet_of(device.key);
            let is_meant = |want: &&WantedToken<'_>| {
                let of = self.fleets.get(&self.batch.given[want.at].provider);
                want.token.expose() == token && of.is_some_and(|of| of.no == fleet)
            };
            if let Some(want) = same.find(is_meant) {
                found(want.at, device);
            }
        }
        Ok(())
    }

    /// Creates a new device; returns its key.
    pub(super) fn insert(&mut self, at: usize, one: &'a Registration) -> Done<i64> {
        let fleet = self.fleet(one.provider)?;
        self.last_device += 1;
        app_providers::check_device_number(self.last_device)?;
        let key = fleet.bound(DeviceId::from_raw(self.last_device));
        let (hash, now) = (self.batch.hashes[at], self.batch.now);
        let (user, tags) = (self.user(one.facts.user.as_ref()), join_tags(&one.facts.tags));
        self.new.push(NewRow { key, hash, given: one, user, tags, listed: true, now });
        *self.joined.entry(fleet.no).or_default() += 1;
        // A topic named twice is one subscription: `COPY` has no conflict clause.
        let names: HashSet<&TopicName> = one.topics.iter().collect();
        if names.len() > TOPICS_PER_DEVICE_MAX_COUNT {
            return Err(topics::too_many());
        }
        for topic in self.topics(names.into_iter().collect())? {
            *self.topics_joined.entry(topic).or_default() += 1;
            self.subscriptions.push((topic, key));
        }
        Ok(key)
    }

    /// Applies a repeated registration; returns the device's key.
    pub(super) fn renew(&mut self, kept: KnownDevice, one: &'a Registration) -> Done<i64> {
        let (key, now) = (kept.key, self.batch.now.as_millis());
        self.subscribe(key, &one.topics)?;
        if !kept.active {
            *self.joined.entry(app_providers::fleet_of(key)).or_default() += 1;
        }
        // Values absent from a repeat stay as they were.
        let user = self.user(one.facts.user.as_ref()).or(kept.user);
        if !kept.differs(one, user) {
            if kept.token_since != now {
                self.touched.push(key);
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
    pub(super) fn move_token(&mut self, at: usize, former: KnownDevice, one: &'a Registration) -> Done<i64> {
        let key = self.renew(former, one)?;
        let (keys, hashes, tokens) = &mut self.moved;
        keys.push(key);
        hashes.push(self.batch.hashes[at]);
        tokens.push(Some(one.token.expose().to_owned()));
        Ok(key)
    }

    /// Applies a registration by which two known devices are one; returns its key.
    pub(super) fn merge(
        &mut self,
        holder: KnownDevice,
        former: KnownDevice,
        one: &'a Registration,
    ) -> Done<i64> {
        let (fleet, user) = (self.fleet(one.provider)?, self.user(one.facts.user.as_ref()));
        let pair = DevicePair { holder, former };
        if !pair.stays().active {
            *self.joined.entry(fleet.no).or_default() += 1;
        }
        pair.merge(self.connection, fleet, one, user, self.batch.now)?;
        let key = pair.stays().key;
        self.subscribe(key, &one.topics)?;
        Ok(key)
    }

    /// Applies a second registration of the same token in one batch.
    pub(super) fn renew_again(&mut self, key: i64, given: &'a Registration) -> Done<i64> {
        // The row of the first one must be there to be read.
        self.write_new()?;
        let sql = format!("SELECT {} FROM devices d WHERE d.key = $1", *KNOWN_COLUMNS);
        let kept = one(self.connection, &sql, [key], KnownDevice::read)?;
        self.renew(kept.ok_or_else(|| damaged("a device is missing"))?, given)
    }

    /// Subscribes a known device to topics, which exist from then on.
    fn subscribe(&mut self, key: i64, names: &'a [TopicName]) -> Done<()> {
        if names.is_empty() {
            return Ok(());
        }
        let topics = self.topics(names.iter().collect())?;
        for topic in many_topics::add_all(self.connection, topics, key)? {
            *self.topics_joined.entry(topic).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the numbers of topics; missing topics are created.
    fn topics(&mut self, names: Vec<&'a TopicName>) -> Done<Vec<i64>> {
        let unknown: Vec<&TopicName> =
            names.iter().copied().filter(|name| !self.topics.contains_key(name)).collect();
        if !unknown.is_empty() {
            let numbers = many_topics::ensure_all(self.connection, self.batch.app, &unknown)?;
            self.topics.extend(unknown.into_iter().zip(numbers));
        }
        Ok(names.iter().filter_map(|name| self.topics.get(name).copied()).collect())
    }

    /// Writes the new devices in order of key, and their owners, tags and topics.
    fn write_new(&mut self) -> Done<()> {
        // In order of key neighbours share a page of the index.
        self.new.sort_unstable_by_key(|row| row.key);
        register::insert(self.connection, &self.new)?;
        let owned: Vec<_> = self.new.iter().filter_map(|row| Some((row.user?, row.key))).collect();
        append_pairs(self.connection, "user_devices (owner, key)", &owned)?;
        append_pairs(self.connection, "subscriptions (topic, key)", &self.subscriptions)?;
        self.subscriptions.clear();
        let tagged =
            self.new.iter().flat_map(|row| split_tags(row.tags.as_deref()).map(|tag| (row.key, tag)));
        let (keys, tags): (Vec<i64>, Vec<Option<String>>) =
            tagged.map(|(key, tag)| (key, Some(tag.to_owned()))).unzip();
        if !keys.is_empty() {
            let sql = "INSERT INTO device_tags (app, key, tag)
                SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[]) ON CONFLICT DO NOTHING";
            let app = Value::Int(int(self.batch.app.raw()));
            run(self.connection, sql, vec![app, keys.into(), Value::Texts(tags)])?;
        }
        self.new.clear();
        Ok(())
    }

    /// Writes the remaining rows and the counts.
    pub(super) fn close(mut self) -> Done<()> {
        self.write_new()?;
        if !self.touched.is_empty() {
            let sql = "UPDATE devices SET token_since = $1 WHERE key = ANY($2)";
            run(self.connection, sql, params![self.batch.now.as_millis(), self.touched])?;
        }
        let (keys, hashes, tokens) = std::mem::take(&mut self.moved);
        if !keys.is_empty() {
            let sql = "UPDATE devices SET token = moved.token, token_hash = moved.hash
                FROM unnest($1::bigint[], $2::bigint[], $3::text[]) moved (key, hash, token)
                WHERE devices.key = moved.key";
            run(self.connection, sql, vec![keys.into(), hashes.into(), Value::Texts(tokens)])?;
        }
        many_topics::count_all(self.connection, &self.topics_joined)?;
        for (fleet, joined) in self.joined {
            app_providers::count_active(self.connection, fleet, joined)?;
        }
        sequences::advance(self.connection, "device", self.last_device)
    }

    fn fleet(&self, provider: ProviderKind) -> Done<AppProvider> {
        self.fleets.get(&provider).copied().ok_or_else(|| damaged("a fleet is missing"))
    }

    fn user(&self, user: Option<&ExternalId>) -> Option<i64> {
        user.and_then(|user| self.users.get(user)).copied()
    }
}

/// Appends pairs of numbers to two columns of a table; they belong to new devices, so no conflict is possible.
fn append_pairs(connection: &Connection, table: &str, pairs: &[(i64, i64)]) -> Done<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let mut rows = CopyRows::new(2);
    for (first, second) in pairs {
        rows.row();
        rows.bigint(*first);
        rows.bigint(*second);
    }
    copy(connection, table, rows)
}
