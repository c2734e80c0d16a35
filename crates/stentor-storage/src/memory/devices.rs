use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use stentor_core::device::{
    Device, DeviceFacts, DeviceKeys, DevicePatch, ProviderKind, PushToken, Registration,
};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::name::{ExternalId, TopicName};
use stentor_core::ports::store::{DeviceFilter, DeviceStore, Page, Precondition, Registered, StoreError};
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::{AppRow, Tables};

#[async_trait]
impl DeviceStore for MemoryStore {
    async fn register_some(
        &self,
        app: AppId,
        registrations: &[Registration],
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError> {
        let Tables { apps, last_device, .. } = &mut *self.lock();
        let row = apps.get_mut(&app).ok_or(StoreError::NotFound("app"))?;
        row.check_topic_counts(registrations)?;
        Ok(registrations.iter().map(|one| row.register(last_device, one, now)).collect())
    }

    async fn validate_some_registrations(
        &self,
        app: AppId,
        given: &[Registration],
        _now: Timestamp,
    ) -> Result<usize, StoreError> {
        self.lock().app(app)?.check_topic_counts(given).map(|()| given.len())
    }

    async fn device(&self, app: AppId, id: DeviceId) -> Result<Device, StoreError> {
        Ok(self.lock().app(app)?.device(id)?.clone())
    }

    async fn holders(
        &self,
        app: AppId,
        provider: ProviderKind,
        tokens: &[PushToken],
    ) -> Result<Vec<Option<Device>>, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        let holder = |token: &PushToken| row.tokens.get(&(provider, token.clone()));
        Ok(tokens.iter().map(|token| row.devices.get(holder(token)?).cloned()).collect())
    }

    async fn devices(
        &self,
        app: AppId,
        filter: &DeviceFilter,
        page: Page,
    ) -> Result<Vec<Device>, StoreError> {
        let state = self.lock();
        let after = DeviceId::from_raw(page.after);
        let devices = state.app(app)?.devices.values();
        let found = devices.filter(|device| device.id > after && passes(device, filter));
        Ok(found.take(page.limit).cloned().collect())
    }

    async fn update_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
        precondition: &Precondition<Device>,
    ) -> Result<Device, StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| row.device(id).cloned().map(Some))?;
        row.update_device(id, patch, now)
    }

    async fn put_device_keys(
        &self,
        app: AppId,
        id: DeviceId,
        keys: Option<&DeviceKeys>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let device = state.app_mut(app)?.devices.get_mut(&id);
        let device = device.filter(|device| device.registration.provider == ProviderKind::Gateway);
        device.ok_or(StoreError::NotFound("device"))?.keys = keys.cloned();
        Ok(())
    }

    async fn remove_device_if(
        &self,
        app: AppId,
        id: DeviceId,
        precondition: &Precondition<Device>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock();
        let row = state.app_mut(app)?;
        precondition.check(|| row.device(id).cloned().map(Some))?;
        row.remove_device(id)?;
        state.forget_device(app, id);
        Ok(())
    }
}

/// Returns whether a device belongs to wider audiences.
pub(super) fn is_reachable(device: &Device) -> bool {
    device.listed && device.retired.is_none()
}

fn passes(device: &Device, filter: &DeviceFilter) -> bool {
    let known = &device.registration;
    filter.means(device.state(), device.listed)
        && filter.provider.is_none_or(|provider| known.provider == provider)
        && filter.user.as_ref().is_none_or(|user| known.user.as_ref() == Some(user))
        && filter.tag.as_ref().is_none_or(|tag| known.tags.contains(tag))
}

impl AppRow {
    pub(super) fn device(&self, id: DeviceId) -> Result<&Device, StoreError> {
        self.devices.get(&id).ok_or(StoreError::NotFound("device"))
    }

    /// Moves a token to a device. Returns false if another device holds the token.
    pub(super) fn move_token(&mut self, id: DeviceId, token: &PushToken, now: Timestamp) -> bool {
        let Some(device) = self.devices.get_mut(&id) else { return true };
        let provider = device.registration.provider;
        let holder = self.tokens.get(&(provider, token.clone()));
        if holder.is_some_and(|holder| *holder != id) {
            return false;
        }
        self.tokens.remove(&(provider, device.registration.token.clone()));
        self.tokens.insert((provider, token.clone()), id);
        device.registration.token = token.clone();
        device.token_since = now;
        device.retired = None;
        true
    }

    fn register(&mut self, last_device: &mut u64, given: &Registration, now: Timestamp) -> Registered {
        let known = self.tokens.get(&(given.provider, given.token.clone())).copied();
        let device = match known {
            Some(id) => self.renew(id, given, now),
            None => self.add_device(last_device, given, now, true),
        };
        for topic in &given.topics {
            self.subscribe_one(topic, device);
        }
        Registered { device, created: known.is_none() }
    }

    pub(super) fn add_device(
        &mut self,
        last_device: &mut u64,
        given: &Registration,
        now: Timestamp,
        listed: bool,
    ) -> DeviceId {
        *last_device += 1;
        let id = DeviceId::from_raw(*last_device);
        let registration = DeviceFacts::from(given.clone());
        let device = Device {
            id,
            app: self.app.id,
            registration,
            registered_at: now,
            token_since: now,
            retired: None,
            listed,
            keys: None,
        };
        self.tokens.insert((given.provider, given.token.clone()), id);
        self.devices.insert(id, device);
        self.providers.insert(given.provider);
        self.own(id, None, given.user.as_ref(), now);
        id
    }

    /// Takes over what a repeated registration tells.
    fn renew(&mut self, id: DeviceId, given: &Registration, now: Timestamp) -> DeviceId {
        let Some(device) = self.devices.get_mut(&id) else { return id };
        let kept = &mut device.registration;
        let former = kept.user.clone();
        kept.platform = given.platform;
        kept.user = given.user.clone().or(kept.user.take());
        kept.locale = given.locale.clone().or(kept.locale.take());
        kept.time_zone = given.time_zone.clone().or(kept.time_zone.take());
        if !given.tags.is_empty() {
            kept.tags.clone_from(&given.tags);
        }
        let user = kept.user.clone();
        (device.retired, device.listed, device.token_since) = (None, true, now);
        self.own(id, former.as_ref(), user.as_ref(), now);
        id
    }

    fn update_device(
        &mut self,
        id: DeviceId,
        patch: &DevicePatch,
        now: Timestamp,
    ) -> Result<Device, StoreError> {
        self.device(id)?;
        if let Some(token) = &patch.token
            && !self.move_token(id, token, now)
        {
            return Err(StoreError::Conflict("another device holds the token".to_owned()));
        }
        let device = self.devices.get_mut(&id).ok_or(StoreError::NotFound("device"))?;
        let kept = &mut device.registration;
        let former = kept.user.clone();
        replace(&mut kept.user, patch.user.as_ref());
        replace(&mut kept.locale, patch.locale.as_ref());
        replace(&mut kept.time_zone, patch.time_zone.as_ref());
        replace(&mut kept.tags, patch.tags.as_ref());
        let device = device.clone();
        self.own(id, former.as_ref(), device.registration.user.as_ref(), now);
        Ok(device)
    }

    pub(super) fn remove_device(&mut self, id: DeviceId) -> Result<(), StoreError> {
        let device = self.devices.remove(&id).ok_or(StoreError::NotFound("device"))?;
        self.tokens.remove(&(device.registration.provider, device.registration.token));
        self.users.values_mut().for_each(|user| _ = user.devices.remove(&id));
        self.topics.values_mut().for_each(|devices| _ = devices.remove(&id));
        self.subscriptions.remove(&id);
        let member = stentor_core::group::Member::Device(id);
        self.groups.values_mut().for_each(|group| _ = group.members.remove(&member));
        Ok(())
    }

    /// Moves a device from one owner to another.
    fn own(&mut self, id: DeviceId, from: Option<&ExternalId>, to: Option<&ExternalId>, now: Timestamp) {
        if let Some(user) = from.and_then(|user| self.users.get_mut(user)) {
            user.devices.remove(&id);
        }
        if let Some(user) = to {
            self.know_user(user, now).devices.insert(id);
        }
    }

    fn check_topic_counts(&self, registrations: &[Registration]) -> Result<(), StoreError> {
        let mut seen: HashMap<(ProviderKind, &PushToken), BTreeSet<&TopicName>> = HashMap::new();
        for one in registrations.iter().filter(|one| !one.topics.is_empty()) {
            let known = self.tokens.get(&(one.provider, one.token.clone()));
            let kept = known.and_then(|id| self.subscriptions.get(id)).into_iter().flatten();
            let topics = seen.entry((one.provider, &one.token)).or_default();
            topics.extend(kept.chain(&one.topics));
            if topics.len() > TOPICS_PER_DEVICE_MAX_COUNT {
                return Err(super::topics::too_many());
            }
        }
        Ok(())
    }
}

fn replace<T: Clone>(kept: &mut T, given: Option<&T>) {
    if let Some(given) = given {
        kept.clone_from(given);
    }
}
