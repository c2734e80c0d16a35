//! Messages of devices to their apps, channels of programs, and tokens that were replaced.

use async_trait::async_trait;
use stentor_core::device::PushToken;
use stentor_core::id::{AppId, DeviceId, UpstreamId};
use stentor_core::limits::{
    CHANNELS_PER_AGENT_MAX_COUNT, FORMER_TOKENS_PER_DEVICE_MAX_COUNT, UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT,
    UPSTREAM_PER_DEVICE_MAX_COUNT,
};
use stentor_core::ports::store::{Channel, NodeStore, Page, StoreError, UpstreamChange, UpstreamStore};
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage, UpstreamWebhook};

use super::MemoryStore;
use super::state::{AppRow, Tables, UpstreamRow};
use crate::texts::check_texts;

/// Memory has one server.
impl NodeStore for MemoryStore {}

#[async_trait]
impl UpstreamStore for MemoryStore {
    async fn keep_upstream(&self, messages: Vec<UpstreamMessage>) -> Result<Vec<bool>, StoreError> {
        for message in &messages {
            check_texts(&[&message.key, &message.body])?;
        }
        let state = &mut *self.lock();
        let before = state.upstream.clone();
        let kept: Result<Vec<bool>, StoreError> =
            messages.into_iter().map(|message| state.keep(message)).collect();
        if kept.is_err() {
            state.upstream = before;
        }
        kept
    }

    async fn waiting_upstream(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        let state = self.lock();
        let said = state.upstream_waiting(app, page, now).filter(|said| said.kind == UpstreamKind::Message);
        Ok(said.take(page.limit).cloned().collect())
    }

    async fn waiting_upstream_and_receipts(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<UpstreamMessage>, StoreError> {
        Ok(self.lock().upstream_waiting(app, page, now).take(page.limit).cloned().collect())
    }

    async fn note_upstream_attempt(&self, app: AppId, ids: &[UpstreamId]) -> Result<(), StoreError> {
        self.lock().each_upstream(app, ids, |row| row.message.attempts += 1);
        Ok(())
    }

    async fn settle_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        _now: Timestamp,
    ) -> Result<UpstreamChange, StoreError> {
        let settle = |row: &mut UpstreamRow| {
            let waited = row.waits();
            row.is_settled |= waited;
            row.is_settled.then_some(waited)
        };
        Ok(self.lock().change_upstream(app, ids, settle))
    }

    async fn bury_upstream(&self, app: AppId, id: UpstreamId, reason: &str) -> Result<(), StoreError> {
        check_texts(&[reason])?;
        let bury = |row: &mut UpstreamRow| {
            if row.waits() {
                row.dead = Some(reason.to_owned());
            }
        };
        let mut state = self.lock();
        state.each_upstream(app, &[id], bury);
        state.forget_older_dead(id);
        Ok(())
    }

    async fn dead_upstream(
        &self,
        app: AppId,
        page: Page,
    ) -> Result<Vec<(UpstreamMessage, String)>, StoreError> {
        let state = self.lock();
        let dead = state.upstream_after(app, page.after);
        let dead = dead.filter_map(|row| Some((row.message.clone(), row.dead.clone()?)));
        Ok(dead.take(page.limit).collect())
    }

    async fn revive_upstream(
        &self,
        app: AppId,
        ids: &[UpstreamId],
        expires_at: Timestamp,
    ) -> Result<UpstreamChange, StoreError> {
        let revive = |row: &mut UpstreamRow| {
            let was_dead = row.dead.take().is_some();
            if was_dead {
                row.message.expires_at = expires_at;
            }
            row.waits().then_some(was_dead)
        };
        Ok(self.lock().change_upstream(app, ids, revive))
    }

    async fn prune_upstream(
        &self,
        now: Timestamp,
        dead_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let state = &mut *self.lock();
        let is_old = |row: &&UpstreamRow| {
            let until = row.message.expires_at;
            until < now && (row.dead.is_none() || until < dead_before)
        };
        let old: Vec<_> =
            state.upstream.values().filter(is_old).map(|row| row.message.id).take(limit).collect();
        old.iter().for_each(|id| _ = state.upstream.remove(id));
        Ok(old.len() as u64)
    }

    async fn upstream_webhook(&self, app: AppId) -> Result<UpstreamWebhook, StoreError> {
        let state = self.lock();
        let webhook = state.apps.get(&app).and_then(|row| row.webhook.clone());
        webhook.ok_or(StoreError::NotFound("webhook"))
    }

    async fn upstream_webhooks(&self) -> Result<Vec<UpstreamWebhook>, StoreError> {
        Ok(self.lock().apps.values().filter_map(|row| row.webhook.clone()).collect())
    }

    async fn put_channel(&self, agent: &str, channel: &Channel) -> Result<(), StoreError> {
        check_texts(&[agent, &channel.name])?;
        let mut state = self.lock();
        let channels = state.channels.entry(agent.to_owned()).or_default();
        if !channels.contains_key(&channel.name) && channels.len() >= CHANNELS_PER_AGENT_MAX_COUNT {
            let why = format!("at most {CHANNELS_PER_AGENT_MAX_COUNT} registrations through one connection");
            return Err(StoreError::LimitReached(why));
        }
        channels.insert(channel.name.clone(), channel.clone());
        Ok(())
    }

    async fn channels(&self, agent: &str) -> Result<Vec<Channel>, StoreError> {
        Ok(self.lock().channels.get(agent).into_iter().flat_map(|own| own.values().cloned()).collect())
    }

    async fn remove_channel(&self, agent: &str, name: &str) -> Result<bool, StoreError> {
        Ok(self.lock().channels.get_mut(agent).is_some_and(|own| own.remove(name).is_some()))
    }

    async fn offer_token(
        &self,
        app: AppId,
        device: DeviceId,
        token: &PushToken,
        _now: Timestamp,
    ) -> Result<(), StoreError> {
        let state = &mut *self.lock();
        let former = state.app(app)?.device(device)?.registration.token.clone();
        state.offered_tokens.insert(device, (app, token.clone(), former));
        Ok(())
    }

    async fn take_offered_token(
        &self,
        app: AppId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<Option<DeviceId>, StoreError> {
        Ok(self.lock().take_offered_token(app, token, now))
    }

    async fn replaced_tokens(
        &self,
        app: AppId,
        tokens: &[String],
    ) -> Result<Vec<Option<DeviceId>>, StoreError> {
        let state = self.lock();
        let row = state.app(app)?;
        let find = |text: &String| {
            let token = PushToken::new(text.clone()).ok()?;
            row.replaced_tokens.get(&token).copied().filter(|device| row.devices.contains_key(device))
        };
        Ok(tokens.iter().map(find).collect())
    }
}

impl AppRow {
    /// Notes a token that a device had; of those it keeps a few, the newest.
    fn note_former_token(&mut self, token: PushToken, device: DeviceId) {
        let former = self.former_tokens.entry(device).or_default();
        former.retain(|known| *known != token);
        former.push_back(token.clone());
        if former.len() > FORMER_TOKENS_PER_DEVICE_MAX_COUNT
            && let Some(oldest) = former.pop_front()
        {
            self.replaced_tokens.remove(&oldest);
        }
        self.replaced_tokens.insert(token, device);
    }
}

impl Tables {
    /// Forgets what the gateway kept of a removed device, but not what it has sent.
    pub(super) fn forget_device(&mut self, app: AppId, device: DeviceId) {
        self.channels.values_mut().for_each(|own| own.retain(|_, channel| channel.device != device));
        self.offered_tokens.remove(&device);
        if let Some(row) = self.apps.get_mut(&app) {
            row.replaced_tokens.retain(|_, of| *of != device);
            row.former_tokens.remove(&device);
        }
    }

    /// Keeps the newest dead letters of the device that sent a message.
    fn forget_older_dead(&mut self, id: UpstreamId) {
        let Some(device) =
            self.upstream.values().find(|row| row.message.id == id).map(|row| row.message.device)
        else {
            return;
        };
        let dead = |row: &&UpstreamRow| row.dead.is_some() && row.message.device == device;
        let mut dead: Vec<_> = self.upstream.values().filter(dead).map(|row| row.message.id).collect();
        dead.sort_unstable();
        let beyond = dead.len().saturating_sub(UPSTREAM_DEAD_PER_DEVICE_MAX_COUNT);
        dead.into_iter().take(beyond).for_each(|id| _ = self.upstream.remove(&id));
    }

    fn take_offered_token(&mut self, app: AppId, token: &PushToken, now: Timestamp) -> Option<DeviceId> {
        let mut offers = self.offered_tokens.iter();
        let device = *offers.find(|(_, (of, offered, _))| (*of, offered) == (app, token))?.0;
        let (_, _, former) = self.offered_tokens.remove(&device)?;
        let row = self.apps.get_mut(&app)?;
        let present = row.devices.get(&device).filter(|device| device.retired.is_none())?;
        if present.registration.token != former || !row.move_token(device, token, now) {
            return None;
        }
        row.note_former_token(former, device);
        Some(device)
    }

    pub(super) fn put_webhook(&mut self, webhook: UpstreamWebhook) -> Result<(), StoreError> {
        let row = self.app_mut(webhook.app)?;
        row.webhook = Some(webhook);
        Ok(())
    }

    pub(super) fn delete_webhook(&mut self, app: AppId) -> Result<(), StoreError> {
        let removed = self.app_mut(app)?.webhook.take();
        removed.map(drop).ok_or(StoreError::NotFound("webhook"))
    }

    fn keep(&mut self, message: UpstreamMessage) -> Result<bool, StoreError> {
        let own = self.upstream.values().filter(|row| row.message.device == message.device);
        let (mut known, mut waiting) = (false, 0);
        for row in own {
            known |= (row.message.kind, &row.message.key) == (message.kind, &message.key);
            waiting += usize::from(row.waits() && row.message.kind == UpstreamKind::Message);
        }
        if known {
            return Ok(false);
        }
        if message.kind == UpstreamKind::Message && waiting >= UPSTREAM_PER_DEVICE_MAX_COUNT {
            let why =
                format!("at most {UPSTREAM_PER_DEVICE_MAX_COUNT} messages of a device wait for its app");
            return Err(StoreError::LimitReached(why));
        }
        self.upstream.insert(message.id, UpstreamRow { message, is_settled: false, dead: None });
        Ok(true)
    }

    fn upstream_waiting(
        &self,
        app: AppId,
        page: Page,
        now: Timestamp,
    ) -> impl Iterator<Item = &UpstreamMessage> {
        let rows = self.upstream_after(app, page.after).filter(|row| row.waits());
        rows.map(|row| &row.message).filter(move |message| message.expires_at > now)
    }

    fn upstream_after(&self, app: AppId, after: u64) -> impl Iterator<Item = &UpstreamRow> {
        let rows = self.upstream.values();
        rows.filter(move |row| row.message.app == app && row.message.id.raw() > after)
    }

    /// Changes the messages that are there; the work returns what it came to for one.
    fn change_upstream(
        &mut self,
        app: AppId,
        ids: &[UpstreamId],
        mut work: impl FnMut(&mut UpstreamRow) -> Option<bool>,
    ) -> UpstreamChange {
        let mut change = UpstreamChange::default();
        for id in ids {
            let row = self.upstream.get_mut(id).filter(|row| row.message.app == app);
            change.note(*id, row.and_then(&mut work));
        }
        change
    }

    fn each_upstream(&mut self, app: AppId, ids: &[UpstreamId], mut work: impl FnMut(&mut UpstreamRow)) {
        for id in ids {
            if let Some(row) = self.upstream.get_mut(id).filter(|row| row.message.app == app) {
                work(row);
            }
        }
    }
}
