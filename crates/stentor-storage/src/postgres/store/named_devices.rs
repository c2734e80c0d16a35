//! Devices named one by one in messages, looked up together for many messages.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use stentor_core::device::Registration;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::message::Message;
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;

use super::app_providers::{self, AppProvider, fleet_of};
use super::register::{self, NewRow};
use super::rows::Rows;
use super::{offered_tokens, sequences, targets, tokens};
use crate::postgres::engine::Connection;
use crate::postgres::query::keys;
use crate::postgres::transactor::{LockScope, hold};
use crate::sql::{Done, Row, damaged, params};

/// The existing devices among those that messages name.
#[derive(Default)]
pub(super) struct NamedDevices {
    /// Fleets of the apps that name devices by id, each app's by provider.
    fleets: BTreeMap<AppId, Vec<AppProvider>>,
    /// The keys of existing devices named by id.
    keys: HashSet<i64>,
    /// Devices named by token: the fleet's number and the token, and the device's key.
    holders: HashMap<(u64, String), i64>,
    /// The last device that was created for an unknown token.
    pub(super) last_made: Option<u64>,
}

impl NamedDevices {
    /// Looks up the devices of messages. A token that no device has or had becomes an unlisted device.
    pub(super) fn find(rows: &Rows<'_>, messages: &[Message], now: Timestamp) -> Done<Self> {
        let mut named = Self::default();
        named.find_ids(rows.connection, messages.iter())?;
        let mut tokens = Vec::new();
        for message in messages {
            if let Target::Token(token) = &message.spec.target {
                tokens.push((rows.fleet(message.app, token.provider)?, token));
            }
        }
        named.find_tokens(rows.connection, &tokens, now)?;
        Ok(named)
    }

    /// Looks up the devices that messages name by id.
    pub(super) fn by_id<'a>(
        connection: &Connection,
        messages: impl Iterator<Item = &'a Message>,
    ) -> Done<Self> {
        let mut named = Self::default();
        named.find_ids(connection, messages)?;
        Ok(named)
    }

    /// Returns the key of the device that has or had a token, if it was looked up.
    pub(super) fn holder(&self, fleet: AppProvider, target: &TokenTarget) -> Option<i64> {
        self.holders.get(&(fleet.no, target.token.expose().to_owned())).copied()
    }

    /// Returns the keys of devices that a target names; devices that are gone are left out.
    pub(super) fn of(&self, rows: &Rows<'_>, app: AppId, target: &Target) -> Done<Vec<i64>> {
        match target {
            Target::Device(id) => Ok(self.key(app, *id).into_iter().collect()),
            Target::Devices(ids) => Ok(ids.iter().filter_map(|id| self.key(app, *id)).collect()),
            Target::Token(token) => {
                let key = self.holder(rows.fleet(app, token.provider)?, token);
                Ok(vec![key.ok_or_else(|| damaged("a token that was not looked for"))?])
            }
            Target::User(user) => targets::of_user(rows.connection, app, user),
            Target::Group(_) | Target::Topic(_) | Target::Condition(_) | Target::Everyone => Ok(Vec::new()),
        }
    }

    /// Returns the key of a device, if it was looked up and exists.
    pub(super) fn key(&self, app: AppId, device: DeviceId) -> Option<i64> {
        let fleets = self.fleets.get(&app)?;
        fleets.iter().filter_map(|fleet| fleet.key(device)).find(|key| self.keys.contains(key))
    }

    /// Looks up the devices that messages name by id in all fleets of their app, as an id does not contain its fleet.
    fn find_ids<'a>(
        &mut self,
        connection: &Connection,
        messages: impl Iterator<Item = &'a Message>,
    ) -> Done<()> {
        let mut ids = Vec::new();
        for message in messages {
            match &message.spec.target {
                Target::Device(id) => ids.push((message.app, *id)),
                Target::Devices(some) => ids.extend(some.iter().map(|id| (message.app, *id))),
                _ => {}
            }
        }
        for app in ids.iter().map(|(app, _)| *app).collect::<BTreeSet<_>>() {
            self.fleets.insert(app, app_providers::of_app(connection, app)?);
        }
        let in_fleets = |(app, id): &(AppId, DeviceId)| {
            let fleets = self.fleets.get(app).into_iter().flatten();
            fleets.filter_map(|fleet| fleet.key(*id)).collect::<Vec<_>>()
        };
        let wanted: Vec<i64> = ids.iter().flat_map(in_fleets).collect();
        if !wanted.is_empty() {
            let found = keys(connection, "SELECT key FROM devices WHERE key = ANY($1)", params![wanted])?;
            self.keys = found.into_iter().collect();
        }
        Ok(())
    }

    /// Looks up the devices of tokens. A token that no device has or had becomes an unlisted device.
    pub(super) fn find_tokens(
        &mut self,
        connection: &Connection,
        targets: &[(AppProvider, &TokenTarget)],
        now: Timestamp,
    ) -> Done<()> {
        self.look_up(connection, targets)?;
        for (fleet, target) in self.missing(targets) {
            if let Some(key) = offered_tokens::former_holder(connection, fleet, &target.token)? {
                self.note(fleet, target, key);
            }
        }
        let missing = self.missing(targets);
        if missing.is_empty() {
            return Ok(());
        }
        // Only for unknown tokens: other messages do not wait for registrations.
        hold(connection, LockScope::Registry);
        // Another transaction may have registered them in between.
        self.look_up(connection, &missing)?;
        let missing = self.missing(&missing);
        self.make(connection, &missing, now)
    }

    /// Looks up the devices that hold tokens.
    fn look_up(&mut self, connection: &Connection, targets: &[(AppProvider, &TokenTarget)]) -> Done<()> {
        if targets.is_empty() {
            return Ok(());
        }
        let hash = |(fleet, target): &(AppProvider, &TokenTarget)| {
            tokens::hash(fleet.app, fleet.provider, &target.token)
        };
        let hashes = targets.iter().map(hash).collect();
        let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<String>(1)?));
        let found = tokens::behind(connection, "d.key, d.token", hashes, read)?;
        self.holders.extend(found.into_iter().map(|(key, token)| ((fleet_of(key), token), key)));
        Ok(())
    }

    /// Lists the targets without a known device, each token once.
    fn missing<'a>(&self, targets: &[(AppProvider, &'a TokenTarget)]) -> Vec<(AppProvider, &'a TokenTarget)> {
        let mut seen = HashSet::new();
        let is_new = |(fleet, target): &&(AppProvider, &'a TokenTarget)| {
            let known = self.holders.contains_key(&(fleet.no, target.token.expose().to_owned()));
            !known && seen.insert((fleet.no, target.token.expose()))
        };
        targets.iter().filter(is_new).copied().collect()
    }

    /// Creates unlisted devices.
    fn make(
        &mut self,
        connection: &Connection,
        targets: &[(AppProvider, &TokenTarget)],
        now: Timestamp,
    ) -> Done<()> {
        if targets.is_empty() {
            return Ok(());
        }
        let last = sequences::take(connection, "device", targets.len() as u64)?;
        app_providers::check_device_number(last)?;
        let given: Vec<Registration> = targets
            .iter()
            .map(|(_, one)| Registration::new(one.platform, one.provider, one.token.clone()))
            .collect();
        let mut rows = Vec::with_capacity(targets.len());
        for (id, ((fleet, target), given)) in
            (last + 1 - targets.len() as u64..).zip(targets.iter().zip(&given))
        {
            let key = fleet.bound(DeviceId::from_raw(id));
            let hash = tokens::hash(fleet.app, fleet.provider, &target.token);
            rows.push(NewRow { key, hash, given, user: None, tags: None, listed: false, now });
            self.note(*fleet, target, key);
        }
        self.last_made = Some(last);
        register::insert(connection, &rows)
    }

    fn note(&mut self, fleet: AppProvider, target: &TokenTarget, key: i64) {
        self.holders.insert((fleet.no, target.token.expose().to_owned()), key);
    }
}
