use async_trait::async_trait;
use stentor_core::audit::{Actor, AuditEntry};
use stentor_core::id::AuditId;
use stentor_core::name::Label;
use stentor_core::ports::store::{
    AuditFilter, AuditStore, Change, Changed, Idempotent, NewAuditEntry, Page, StoreError,
};
use stentor_core::time::Timestamp;

use super::MemoryStore;
use super::state::Tables;

#[async_trait]
impl AuditStore for MemoryStore {
    async fn change(&self, change: Change, entry: Option<NewAuditEntry>) -> Result<Changed, StoreError> {
        let state = &mut *self.lock();
        // Before the change, which may take the key away that asked for it.
        let entry = entry.map(|entry| (state.key_name(entry.note.actor), entry));
        let changed = state.apply(change)?;
        let is_made = !matches!(changed, Changed::Stored(Idempotent::Replayed(_) | Idempotent::KeyReused));
        if let Some((name, entry)) = entry.filter(|_| is_made) {
            state.keep_entry(entry, name);
        }
        Ok(changed)
    }

    async fn note_refused(&self, entry: NewAuditEntry) -> Result<(), StoreError> {
        let state = &mut *self.lock();
        let name = state.key_name(entry.note.actor);
        state.keep_entry(entry, name);
        Ok(())
    }

    async fn audit(&self, filter: AuditFilter, page: Page) -> Result<Vec<AuditEntry>, StoreError> {
        let below = if page.after == 0 { u64::MAX } else { page.after };
        let fits = |entry: &&AuditEntry| {
            entry.id.raw() < below
                && filter.app.is_none_or(|app| entry.note.app == Some(app))
                && filter.action.is_none_or(|action| entry.note.action == action)
                && filter.since.is_none_or(|since| entry.note.at >= since)
        };
        Ok(self.lock().audit.iter().rev().filter(fits).take(page.limit).cloned().collect())
    }

    async fn prune_audit(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let trail = &mut self.lock().audit;
        let (kept, mut left) = (trail.len(), limit);
        trail.retain(|entry| {
            let goes = left > 0 && entry.note.at < before;
            left -= usize::from(goes);
            !goes
        });
        Ok((kept - trail.len()) as u64)
    }
}

impl Tables {
    fn apply(&mut self, change: Change) -> Result<Changed, StoreError> {
        match change {
            Change::CreateApp(app) => self.create_app(&app)?,
            Change::DeleteApp(app, precondition) => {
                precondition.check(|| self.app(app).map(|row| Some(row.app.clone())))?;
                self.delete_app(app)?;
            }
            Change::CreateKey(key) => self.create_key(&key)?,
            Change::DeleteKey(app, key) => self.delete_key(app, key)?,
            Change::CreateAccount(account) => self.create_account(&account)?,
            Change::DeleteAccount(app, id) => self.delete_account(app, id)?,
            Change::PutCredential(credential) => self.put_credential(&credential)?,
            Change::DeleteCredential(app, provider) => self.delete_credential(app, provider)?,
            Change::PutUpstreamWebhook(webhook) => self.put_webhook(webhook)?,
            Change::DeleteUpstreamWebhook(app) => self.delete_webhook(app)?,
            Change::CreateSchedule(schedule, idempotency) => {
                return Ok(Changed::Stored(self.create_schedule(&schedule, idempotency)?));
            }
            Change::SetSchedule(app, id, state, next_due) => {
                return Ok(Changed::Schedule(Box::new(self.set_schedule(app, id, state, next_due)?)));
            }
            Change::DeleteSchedule(app, id, precondition) => self.delete_schedule(app, id, &precondition)?,
            Change::DeleteBrokenSchedule(app, id) => self.delete_broken_schedule(app, id)?,
            Change::Act(app, id, action, now) => {
                let (campaign, tickets) = self.act(app, id, action, now)?;
                return Ok(Changed::Campaign(Box::new(campaign), tickets));
            }
        }
        Ok(Changed::Done)
    }

    fn key_name(&self, actor: Actor) -> Option<Label> {
        let Actor::Key(key) = actor else { return None };
        let account = || self.accounts.get(&key).map(|account| account.name.clone());
        self.keys.get(&key).map(|key| key.name.clone()).or_else(account)
    }

    fn keep_entry(&mut self, entry: NewAuditEntry, key_name: Option<Label>) {
        let NewAuditEntry { note, max_count } = entry;
        let shelf = (note.app, note.kind());
        self.last_audit += 1;
        self.audit.push(AuditEntry { id: AuditId::from_raw(self.last_audit), note, key_name });
        let same = |entry: &AuditEntry| (entry.note.app, entry.note.kind()) == shelf;
        let mut over =
            (self.audit.iter().filter(|entry| same(entry)).count() as u64).saturating_sub(max_count);
        self.audit.retain(|entry| {
            let goes = over > 0 && same(entry);
            over -= u64::from(goes);
            !goes
        });
    }
}
