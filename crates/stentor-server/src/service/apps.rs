//! Apps and their keys.

use secrecy::{ExposeSecret, SecretString};
use stentor_core::app::{ApiKey, App, Scope, Scopes};
use stentor_core::id::{AppId, KeyId};
use stentor_core::name::Label;

use super::{Answer, Caller, Identity, Problem, Service};
use crate::keys::new_secret;

/// A key just made; its secret is shown this once.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The key as it is kept.
    pub key: ApiKey,
    /// What the caller must keep.
    pub secret: SecretString,
}

impl Service {
    /// Makes an app.
    pub async fn create_app(&self, identity: Identity, name: Label) -> Answer<App> {
        identity.require_root()?;
        let created_at = self.now();
        let app = App { id: AppId::from_raw(self.next_id(created_at)), name, created_at };
        self.store.create_app(&app).await?;
        Ok(app)
    }

    /// Lists all apps.
    pub async fn apps(&self, identity: Identity) -> Answer<Vec<App>> {
        identity.require_root()?;
        Ok(self.store.apps().await?)
    }

    /// Gives one app; any key of it may ask.
    pub async fn app(&self, identity: Identity, app: AppId) -> Answer<App> {
        Ok(self.store.app(identity.on(app)?.app()).await?)
    }

    /// Removes an app with all that belongs to it.
    pub async fn delete_app(&self, identity: Identity, app: AppId) -> Answer<()> {
        identity.require_root()?;
        self.store.delete_app(app).await?;
        self.keyring.forget_app(app);
        for provider in self.credentials.forget_app(app) {
            self.belt.changed(app, provider);
        }
        Ok(())
    }

    /// Makes a key of an app.
    pub async fn create_key(
        &self,
        identity: Identity,
        app: AppId,
        name: Label,
        scopes: &[Scope],
    ) -> Answer<NewKey> {
        let app = self.administrated(identity, app).await?;
        if scopes.is_empty() {
            return Err(Problem::field("scopes", "must name at least one of send, register, admin"));
        }
        let (secret, created_at) = (new_secret(), self.now());
        let key = ApiKey {
            id: KeyId::from_raw(self.next_id(created_at)),
            app: Some(app),
            name,
            scopes: Scopes::of(scopes),
            hash: self.keyring.hash(secret.expose_secret()),
            created_at,
        };
        self.keyring.expect(&key.hash);
        self.store.create_key(&key).await?;
        Ok(NewKey { key, secret })
    }

    /// Lists an app's keys, without secrets.
    pub async fn keys(&self, identity: Identity, app: AppId) -> Answer<Vec<ApiKey>> {
        let app = self.administrated(identity, app).await?;
        Ok(self.store.keys(app).await?)
    }

    /// Removes a key; it opens nothing from now on.
    pub async fn delete_key(&self, identity: Identity, app: AppId, key: KeyId) -> Answer<()> {
        let app = self.administrated(identity, app).await?;
        self.store.delete_key(app, key).await?;
        self.keyring.forget_key(key);
        Ok(())
    }

    /// Checks that the caller may administrate the app, and that it exists.
    pub(super) async fn administrated(&self, identity: Identity, app: AppId) -> Answer<AppId> {
        let caller: Caller = identity.on(app)?;
        caller.require(Scope::Admin)?;
        Ok(self.store.app(app).await?.id)
    }
}
