//! A cache of keys, so that a request needs no look-up in the store.

mod look_ups;
mod marks;

use std::collections::{HashMap, HashSet};

use stentor_core::account::IssuedAccount;
use stentor_core::app::ApiKey;
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::{AccountFilter, AppStore, KeyFilter};
use stentor_core::time::Timestamp;

use super::{ErrorCode, Identity, Problem, ServiceResult};
use crate::keys::{KeyHash, LoginAttempt, Pepper, SessionGrant, TokenGrant, looks_like_key, same_hash};
use look_ups::LookUps;
use marks::Marks;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Most keys and apps in the cache; when it is full, it is cleared.
const REMEMBERED_MAX_COUNT: usize = 65_536;

/// The root key, the pepper, and the cache.
#[derive(Debug)]
pub struct Keyring {
    pepper: Pepper,
    root: KeyHash,
    known: RwLock<Known>,
    keys: LookUps<KeyHash, Identity>,
    accounts: LookUps<KeyId, Option<IssuedAccount>>,
    /// Marks of all keys that may be in the store: a key without a mark is unknown without a look-up.
    marks: Marks,
}

#[derive(Debug, Default)]
struct Known {
    keys: HashMap<KeyHash, Identity>,
    accounts: HashMap<KeyId, Identity>,
    apps: HashSet<AppId>,
    /// Number of removals: the result of a look-up that began before one is not cached.
    removals: u64,
}

impl Keyring {
    /// Creates a keyring that knows only the root key.
    #[must_use]
    pub fn new(pepper: Pepper, root_secret: &str) -> Self {
        let root = pepper.hash(root_secret);
        let (known, keys, accounts, marks) = Default::default();
        Self { pepper, root, known, keys, accounts, marks }
    }

    /// Loads the hashes of all keys, so that an unknown key costs no look-up.
    pub(super) async fn learn(&self, store: &dyn AppStore) -> ServiceResult<()> {
        let hashes = store.key_hashes(marks::MAX_COUNT + 1).await?;
        self.marks.learn(&hashes);
        Ok(())
    }

    /// Marks a key that is about to be stored.
    pub(super) fn expect(&self, hash: &KeyHash) {
        self.marks.add(hash);
    }

    /// Hashes a secret with the pepper of this installation.
    #[must_use]
    pub fn hash(&self, secret: &str) -> KeyHash {
        self.pepper.hash(secret)
    }

    /// Resolves a key to its identity, from the cache or the store.
    pub async fn identify(&self, store: &dyn AppStore, secret: &str) -> ServiceResult<Identity> {
        if !looks_like_key(secret) {
            return Err(unknown_key());
        }
        self.identify_hash(store, self.hash(secret)).await
    }

    /// Resolves the hash of a key in the same way.
    pub(super) async fn identify_hash(&self, store: &dyn AppStore, hash: KeyHash) -> ServiceResult<Identity> {
        if same_hash(&hash, &self.root) {
            return Ok(Identity::Root);
        }
        // Counter and key are read under one lock; otherwise a removal in between would be missed.
        let (found, removals) = self.remembered(&hash);
        match found {
            Some(identity) => Ok(identity),
            None if !self.marks.may_have(&hash) => Err(unknown_key()),
            None => self.look_up(store, hash, removals).await,
        }
    }

    /// Returns true if the app is known to exist, and the counter of removals for `remember_app`.
    pub fn knows_app(&self, app: AppId) -> (bool, u64) {
        let known = self.read();
        (known.apps.contains(&app), known.removals)
    }

    /// Caches the existence of an app, unless something was removed since `removals` was read.
    pub fn remember_app(&self, app: AppId, removals: u64) {
        let mut known = self.write();
        if known.removals == removals {
            known.make_room();
            known.apps.insert(app);
        }
    }

    /// Evicts a removed key.
    pub fn forget_key(&self, key: KeyId) {
        let mut known = self.write();
        // Incremented under the lock under which look-ups compare it; otherwise the result of an earlier look-up would be cached.
        known.removals += 1;
        known.keys.retain(|_, identity| !matches!(identity, Identity::Key { id, .. } if *id == key));
    }

    /// Evicts a removed app with its keys.
    pub fn forget_app(&self, gone: AppId) {
        let mut known = self.write();
        known.removals += 1;
        known.apps.remove(&gone);
        known.keys.retain(|_, identity| identity.app() != Some(gone));
        known.accounts.retain(|_, identity| identity.app() != Some(gone));
    }

    /// Clears the cache.
    pub(super) fn forget_all(&self) {
        let mut known = self.write();
        known.removals += 1;
        known.clear();
    }

    /// Evicts a removed account.
    pub(super) fn forget_account(&self, account: KeyId) {
        let mut known = self.write();
        known.removals += 1;
        known.accounts.remove(&account);
    }

    /// Encodes an access token.
    pub(super) fn access_token(&self, grant: TokenGrant) -> String {
        self.pepper.access_token(grant)
    }

    /// Decodes an access token of this installation.
    pub(super) fn token_grant(&self, token: &str) -> Option<TokenGrant> {
        self.pepper.token_grant(token)
    }

    /// Encodes a session token of the console.
    pub(super) fn session_token(&self, grant: &SessionGrant) -> String {
        self.pepper.session_token(grant)
    }

    /// Decodes a session token of this installation.
    pub(super) fn session_grant(&self, token: &str) -> Option<SessionGrant> {
        self.pepper.session_grant(token)
    }

    /// Returns the text that a page of the session sends with each change.
    pub(super) fn csrf_token(&self, grant: &SessionGrant) -> String {
        self.pepper.csrf_token(grant)
    }

    /// Returns true if the text is the one of the session.
    pub(super) fn is_csrf_token(&self, grant: &SessionGrant, text: &str) -> bool {
        self.pepper.is_csrf_token(grant, text)
    }

    /// Begins a login at the identity provider.
    pub(super) fn begin_login(&self, expires_at: Timestamp) -> (LoginAttempt, String) {
        self.pepper.begin_login(expires_at)
    }

    /// Decodes a login that this installation began.
    pub(super) fn login_attempt(&self, token: &str) -> Option<LoginAttempt> {
        self.pepper.login_attempt(token)
    }

    /// Reads an account from the store.
    pub(super) async fn account(
        &self,
        store: &dyn AppStore,
        id: KeyId,
    ) -> ServiceResult<Option<IssuedAccount>> {
        let removals = self.read().removals;
        let found = async { Ok(store.accounts(AccountFilter::Id(id)).await?.pop()) };
        self.accounts.once((id, removals), found).await
    }

    /// Resolves an account to its identity, from the cache or the store.
    pub(super) async fn account_identity(
        &self,
        store: &dyn AppStore,
        id: KeyId,
    ) -> ServiceResult<Option<Identity>> {
        let (found, removals) = {
            let known = self.read();
            // Under one lock, as in `identify`.
            (known.accounts.get(&id).cloned(), known.removals)
        };
        if found.is_some() {
            return Ok(found);
        }
        let Some(account) = self.account(store, id).await? else { return Ok(None) };
        let identity = Identity::Key { id, app: account.app, scopes: account.scopes };
        let mut known = self.write();
        // A removal since then may concern this account.
        if known.removals == removals {
            known.make_room();
            known.accounts.insert(id, identity.clone());
        }
        Ok(Some(identity))
    }

    async fn look_up(&self, store: &dyn AppStore, hash: KeyHash, removals: u64) -> ServiceResult<Identity> {
        self.keys.once((hash, removals), self.find(store, hash, removals)).await
    }

    async fn find(&self, store: &dyn AppStore, hash: KeyHash, removals: u64) -> ServiceResult<Identity> {
        // The index holds hashes; they are compared once more in constant time.
        let found =
            store.keys(KeyFilter::Hash(hash)).await?.into_iter().find(|key| same_hash(&key.hash, &hash));
        if found.is_none() {
            // A key created later is marked again.
            self.marks.drop(&hash);
        }
        let identity = found.as_ref().and_then(identity_of).ok_or_else(unknown_key)?;
        let mut known = self.write();
        if known.removals == removals {
            known.make_room();
            known.keys.insert(hash, identity.clone());
        }
        Ok(identity)
    }

    fn remembered(&self, hash: &KeyHash) -> (Option<Identity>, u64) {
        let known = self.read();
        (known.keys.get(hash).cloned(), known.removals)
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write()
    }
}

impl Known {
    fn clear(&mut self) {
        self.keys.clear();
        self.accounts.clear();
        self.apps.clear();
    }

    fn make_room(&mut self) {
        // All at once: entries in use are soon looked up again, and no order of use has to be kept.
        if self.keys.len() + self.accounts.len() + self.apps.len() >= REMEMBERED_MAX_COUNT {
            self.clear();
        }
    }
}

fn identity_of(key: &ApiKey) -> Option<Identity> {
    key.app.map(|app| Identity::Key { id: key.id, app, scopes: key.scopes })
}

fn unknown_key() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "the API key is not known")
        .with_hint("keys look like sk_…; the root key is in root.key of the data directory")
}

#[cfg(test)]
mod tests;
