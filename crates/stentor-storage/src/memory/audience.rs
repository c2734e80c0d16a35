//! Who is meant by a target.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use stentor_core::device::{Device, ProviderKind, Registration};
use stentor_core::group::Member;
use stentor_core::id::DeviceId;
use stentor_core::ledger::Audience;
use stentor_core::ports::store::{AudienceCount, StoreError};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;
use stentor_core::topic::Condition;

use super::devices::is_reachable;
use super::state::AppRow;

/// Counts devices by provider, leaving out providers without any.
pub(super) fn by_provider<'a>(devices: impl Iterator<Item = &'a Device>) -> Vec<AudienceCount> {
    let mut counts = BTreeMap::new();
    for device in devices {
        *counts.entry(device.registration.provider).or_default() += 1;
    }
    counts.into_iter().collect()
}

impl AppRow {
    /// Refuses a target that names what does not exist.
    pub(super) fn check_target(&self, target: &Target) -> Result<(), StoreError> {
        match target {
            Target::Device(id) => self.device(*id).map(|_| ()),
            Target::Devices(ids) => ids.iter().try_for_each(|id| self.device(*id).map(|_| ())),
            Target::Group(group) => self.group(group).map(|_| ()),
            Target::Topic(topic) if !self.topics.contains_key(topic) => Err(StoreError::NotFound("topic")),
            Target::Topic(_) | Target::Token(_) | Target::User(_) | Target::Condition(_) => Ok(()),
            Target::Everyone => Ok(()),
        }
    }

    /// Finds out who is meant by a target; a token that nobody registered becomes an unlisted device.
    ///
    /// Devices that are named are in the audience though they be retired, so that their owner learns their decision.
    pub(super) fn audience(&mut self, last_device: &mut u64, target: &Target, now: Timestamp) -> Audience {
        let named = match target {
            Target::Token(token) => vec![self.device_with(last_device, token, now)],
            Target::Device(_) | Target::Devices(_) | Target::User(_) => self.named(target),
            Target::Group(_) | Target::Topic(_) | Target::Condition(_) | Target::Everyone => {
                return Audience::Wide(self.providers.iter().copied().collect());
            }
        };
        let mut lists: BTreeMap<ProviderKind, Vec<DeviceId>> = BTreeMap::new();
        for device in named.iter().filter_map(|id| self.devices.get(id)) {
            lists.entry(device.registration.provider).or_default().push(device.id);
        }
        Audience::Named(lists.into_iter().collect())
    }

    /// Walks the devices of a wide target at a provider after one device up to `as_of`, ascending.
    pub(super) fn wide_audience<'a>(
        &'a self,
        target: &'a Target,
        provider: ProviderKind,
        after: DeviceId,
        as_of: DeviceId,
    ) -> impl Iterator<Item = DeviceId> + 'a {
        self.candidates(target, after)
            .take_while(move |id| *id <= as_of)
            .filter_map(|id| self.devices.get(&id))
            .filter(move |device| device.registration.provider == provider && is_reachable(device))
            .map(|device| device.id)
    }

    /// Counts whom a target would reach now.
    pub(super) fn count_audience(&self, target: &Target) -> Result<Vec<AudienceCount>, StoreError> {
        self.check_target(target)?;
        let device = |id: DeviceId| self.devices.get(&id);
        if let Target::Token(token) = target {
            let known = self.tokens.get(&(token.provider, token.token.clone()));
            let retired = known.and_then(|id| device(*id)).is_some_and(|device| device.retired.is_some());
            return Ok(if retired { Vec::new() } else { vec![(token.provider, 1)] });
        }
        if target.is_direct() {
            let named = self.named(target).into_iter().filter_map(device);
            return Ok(by_provider(named.filter(|device| device.retired.is_none())));
        }
        let all = self.candidates(target, DeviceId::from_raw(0)).filter_map(device);
        Ok(by_provider(all.filter(|device| is_reachable(device))))
    }

    fn named(&self, target: &Target) -> Vec<DeviceId> {
        let known = |id: &DeviceId| self.devices.contains_key(id);
        match target {
            Target::Device(id) => Some(*id).filter(known).into_iter().collect(),
            Target::Devices(ids) => {
                ids.iter().copied().filter(known).collect::<BTreeSet<_>>().into_iter().collect()
            }
            Target::User(user) => {
                let owned = self.users.get(user).into_iter().flat_map(|row| &row.devices);
                owned.copied().filter(|id| self.devices.get(id).is_some_and(is_reachable)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn former_holder(&self, target: &TokenTarget) -> Option<DeviceId> {
        let is_ours = target.provider == ProviderKind::Gateway;
        let device = self.replaced_tokens.get(&target.token).filter(|_| is_ours)?;
        self.devices.contains_key(device).then_some(*device)
    }

    fn device_with(&mut self, last_device: &mut u64, target: &TokenTarget, now: Timestamp) -> DeviceId {
        let known = self.tokens.get(&(target.provider, target.token.clone())).copied();
        known.or_else(|| self.former_holder(target)).unwrap_or_else(|| {
            let given = Registration::new(target.platform, target.provider, target.token.clone());
            self.add_device(last_device, &given, now, false)
        })
    }

    fn candidates<'a>(
        &'a self,
        target: &'a Target,
        after: DeviceId,
    ) -> Box<dyn Iterator<Item = DeviceId> + 'a> {
        let range = (Bound::Excluded(after), Bound::Unbounded);
        match target {
            Target::Topic(topic) => {
                Box::new(self.topics.get(topic).into_iter().flat_map(move |set| set.range(range)).copied())
            }
            Target::Group(group) => {
                Box::new(self.group_devices(group).into_iter().filter(move |id| *id > after))
            }
            Target::Condition(condition) => Box::new(
                self.devices.range(range).map(|(id, _)| *id).filter(|id| self.fulfils(*id, condition)),
            ),
            Target::Everyone => Box::new(self.devices.range(range).map(|(id, _)| *id)),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn group_devices(&self, group: &stentor_core::name::GroupName) -> BTreeSet<DeviceId> {
        let mut found = BTreeSet::new();
        for member in self.groups.get(group).into_iter().flat_map(|row| &row.members) {
            match member {
                Member::Device(id) => _ = found.insert(*id),
                Member::User(user) => {
                    found
                        .extend(self.users.get(user).into_iter().flat_map(|row| row.devices.iter().copied()));
                }
            }
        }
        found
    }

    fn fulfils(&self, id: DeviceId, condition: &Condition) -> bool {
        let topics = self.subscriptions.get(&id);
        condition.expr().holds(&|topic| topics.is_some_and(|topics| topics.contains(topic)))
    }
}
