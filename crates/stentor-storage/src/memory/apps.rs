use async_trait::async_trait;
use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, App, Credential};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, KeyId};
use stentor_core::limits::{ACCOUNTS_PER_APP_MAX_COUNT, KEYS_PER_APP_MAX_COUNT};
use stentor_core::ports::store::{AppStore, StoreError};

use super::MemoryStore;
use super::state::{AppRow, Tables};

#[async_trait]
impl AppStore for MemoryStore {
    async fn app(&self, id: AppId) -> Result<App, StoreError> {
        Ok(self.lock().app(id)?.app.clone())
    }

    async fn apps(&self) -> Result<Vec<App>, StoreError> {
        Ok(self.lock().apps.values().map(|row| row.app.clone()).collect())
    }

    async fn key_by_hash(&self, hash: &[u8; 32]) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.lock().keys.values().find(|key| key.hash == *hash).cloned())
    }

    async fn key_hashes(&self, limit: usize) -> Result<Vec<[u8; 32]>, StoreError> {
        Ok(self.lock().keys.values().take(limit).map(|key| key.hash).collect())
    }

    async fn keys(&self, app: AppId) -> Result<Vec<ApiKey>, StoreError> {
        Ok(self.lock().keys.values().filter(|key| key.app == Some(app)).cloned().collect())
    }

    async fn account(&self, id: KeyId) -> Result<Option<IssuedAccount>, StoreError> {
        Ok(self.lock().accounts.get(&id).cloned())
    }

    async fn accounts(&self, app: AppId) -> Result<Vec<IssuedAccount>, StoreError> {
        Ok(self.lock().accounts.values().filter(|account| account.app == app).cloned().collect())
    }

    async fn credentials(&self) -> Result<Vec<Credential>, StoreError> {
        Ok(self.lock().apps.values().flat_map(|row| row.credentials.values().cloned()).collect())
    }

    async fn credential(&self, app: AppId, provider: ProviderKind) -> Result<Credential, StoreError> {
        let state = self.lock();
        state.app(app)?.credentials.get(&provider).cloned().ok_or(StoreError::NotFound("credential"))
    }

    async fn last_id(&self) -> Result<u64, StoreError> {
        Ok(self.lock().last_id())
    }
}

impl Tables {
    pub(super) fn create_app(&mut self, app: &App) -> Result<(), StoreError> {
        if self.apps.contains_key(&app.id) {
            return Err(StoreError::Conflict("the app id is in use".to_owned()));
        }
        self.apps.insert(app.id, AppRow::new(app.clone()));
        Ok(())
    }

    pub(super) fn create_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        if let Some(app) = key.app {
            self.app(app)?;
        }
        if self.keys.values().any(|known| known.id == key.id || known.hash == key.hash) {
            return Err(StoreError::Conflict("the key is in use".to_owned()));
        }
        let known = self.keys.values().filter(|known| known.app.is_some() && known.app == key.app).count();
        if known >= KEYS_PER_APP_MAX_COUNT {
            return Err(StoreError::LimitReached(format!(
                "an app has at most {KEYS_PER_APP_MAX_COUNT} keys"
            )));
        }
        self.keys.insert(key.id, key.clone());
        Ok(())
    }

    pub(super) fn delete_key(&mut self, app: AppId, key: KeyId) -> Result<(), StoreError> {
        self.keys.get(&key).filter(|known| known.app == Some(app)).ok_or(StoreError::NotFound("key"))?;
        self.keys.remove(&key);
        Ok(())
    }

    pub(super) fn create_account(&mut self, account: &IssuedAccount) -> Result<(), StoreError> {
        self.app(account.app)?;
        if self.accounts.contains_key(&account.id) {
            return Err(StoreError::Conflict("the account is in use".to_owned()));
        }
        let known = self.accounts.values().filter(|known| known.app == account.app).count();
        if known >= ACCOUNTS_PER_APP_MAX_COUNT {
            let why = format!("an app has at most {ACCOUNTS_PER_APP_MAX_COUNT} service accounts");
            return Err(StoreError::LimitReached(why));
        }
        self.accounts.insert(account.id, account.clone());
        Ok(())
    }

    pub(super) fn delete_account(&mut self, app: AppId, id: KeyId) -> Result<(), StoreError> {
        let known = self.accounts.get(&id).filter(|known| known.app == app);
        known.ok_or(StoreError::NotFound("account"))?;
        self.accounts.remove(&id);
        Ok(())
    }

    pub(super) fn put_credential(&mut self, credential: &Credential) -> Result<(), StoreError> {
        self.app_mut(credential.app)?.credentials.insert(credential.provider, credential.clone());
        Ok(())
    }

    pub(super) fn delete_credential(&mut self, app: AppId, provider: ProviderKind) -> Result<(), StoreError> {
        let removed = self.app_mut(app)?.credentials.remove(&provider);
        removed.map(|_| ()).ok_or(StoreError::NotFound("credential"))
    }

    pub(super) fn delete_app(&mut self, id: AppId) -> Result<(), StoreError> {
        let app = self.apps.remove(&id).ok_or(StoreError::NotFound("app"))?;
        app.devices.keys().for_each(|device| self.forget_device(id, *device));
        self.upstream.retain(|_, row| row.message.app != id);
        self.keys.retain(|_, key| key.app != Some(id));
        self.accounts.retain(|_, account| account.app != id);
        self.campaigns.retain(|_, row| row.campaign.app != id);
        self.chunks.retain(|_, chunk| chunk.facts.lane.app != id);
        self.open.retain(|chunk| self.chunks.contains_key(chunk));
        self.schedules.retain(|_, schedule| schedule.app != id);
        Ok(())
    }

    fn last_id(&self) -> u64 {
        let lasts = [
            self.apps.keys().next_back().map(|id| id.raw()),
            self.keys.keys().next_back().map(|id| id.raw()),
            self.accounts.keys().next_back().map(|id| id.raw()),
            self.campaigns.keys().next_back().map(|id| id.raw()),
            self.schedules.keys().next_back().map(|id| id.raw()),
            Some(self.last_instance),
        ];
        lasts.into_iter().flatten().max().unwrap_or(0)
    }
}
