//! Apps and their keys.

use secrecy::{ExposeSecret, SecretString};
use stentor_core::app::{ApiKey, App, Scope, Scopes};
use stentor_core::audit::AuditAction;
use stentor_core::id::{AppId, KeyId};
use stentor_core::name::Label;
use stentor_core::ports::store::Change;

use super::audit::{Author, Matter};
use super::{Caller, Identity, Origin, Problem, Service, ServiceResult};
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
    pub async fn create_app(&self, identity: Identity, from: Origin, name: Label) -> ServiceResult<App> {
        let created_at = self.now();
        let app = App { id: AppId::from_raw(self.next_id(created_at)), name, created_at };
        let author = Author::of(identity, from);
        let matter = Matter::new(AuditAction::AppCreate, app.id, app.id).with_detail(app.name.as_str());
        self.permitted(&author, &matter, identity.require_root()).await?;
        self.change(author, matter, Change::CreateApp(app.clone())).await?;
        Ok(app)
    }

    /// Lists all apps.
    pub async fn apps(&self, identity: Identity) -> ServiceResult<Vec<App>> {
        identity.require_root()?;
        Ok(self.store.apps().await?)
    }

    /// Returns one app; any key of it may ask.
    pub async fn app(&self, identity: Identity, app: AppId) -> ServiceResult<App> {
        Ok(self.store.app(identity.on(app)?.app()).await?)
    }

    /// Removes an app with all that belongs to it.
    pub async fn delete_app(&self, identity: Identity, from: Origin, app: AppId) -> ServiceResult<()> {
        let (author, matter) = (Author::of(identity, from), Matter::new(AuditAction::AppDelete, app, app));
        self.permitted(&author, &matter, identity.require_root()).await?;
        self.change(author, matter, Change::DeleteApp(app)).await?;
        self.keyring.forget_app(app);
        for provider in self.credentials.forget_app(app) {
            self.belt.changed(app, provider);
        }
        Ok(())
    }

    /// Makes a key of an app.
    pub async fn create_key(
        &self,
        (identity, from): (Identity, Origin),
        app: AppId,
        name: Label,
        scopes: &[Scope],
    ) -> ServiceResult<NewKey> {
        let (secret, created_at) = (new_secret(), self.now());
        let id = KeyId::from_raw(self.next_id(created_at));
        let author = Author::of(identity, from);
        let detail = format!("{name}: {}", scope_words(scopes), name = name.as_str());
        let matter = Matter::new(AuditAction::KeyCreate, app, id).with_detail(&detail);
        let app = self.administrated_by(&author, &matter, identity, app).await?;
        if scopes.is_empty() {
            return Err(Problem::field("scopes", "must name at least one of send, register, admin"));
        }
        let key = ApiKey {
            id,
            app: Some(app),
            name,
            scopes: Scopes::of(scopes),
            hash: self.keyring.hash(secret.expose_secret()),
            created_at,
        };
        self.keyring.expect(&key.hash);
        self.change(author, matter, Change::CreateKey(key.clone())).await?;
        Ok(NewKey { key, secret })
    }

    /// Lists an app's keys, without secrets.
    pub async fn keys(&self, identity: Identity, app: AppId) -> ServiceResult<Vec<ApiKey>> {
        let app = self.administrated(identity, app).await?;
        Ok(self.store.keys(app).await?)
    }

    /// Removes a key; it opens nothing from now on.
    pub async fn delete_key(
        &self,
        identity: Identity,
        from: Origin,
        app: AppId,
        key: KeyId,
    ) -> ServiceResult<()> {
        let (author, matter) = (Author::of(identity, from), Matter::new(AuditAction::KeyDelete, app, key));
        let app = self.administrated_by(&author, &matter, identity, app).await?;
        self.change(author, matter, Change::DeleteKey(app, key)).await?;
        self.keyring.forget_key(key);
        Ok(())
    }

    /// Checks that the caller may administrate the app, and that it exists.
    pub(super) async fn administrated(&self, identity: Identity, app: AppId) -> ServiceResult<AppId> {
        administrates(identity, app)?;
        Ok(self.store.app(app).await?.id)
    }

    /// Checks the same of a change; a refusal leaves an entry in the audit trail.
    pub(super) async fn administrated_by(
        &self,
        author: &Author,
        matter: &Matter,
        identity: Identity,
        app: AppId,
    ) -> ServiceResult<AppId> {
        self.permitted(author, matter, administrates(identity, app)).await?;
        Ok(self.store.app(app).await?.id)
    }
}

fn administrates(identity: Identity, app: AppId) -> ServiceResult<()> {
    let caller: Caller = identity.on(app)?;
    caller.require(Scope::Admin)
}

fn scope_words(scopes: &[Scope]) -> String {
    let word = |scope: &Scope| match scope {
        Scope::Send => "send",
        Scope::Register => "register",
        Scope::Admin => "admin",
    };
    scopes.iter().map(word).collect::<Vec<_>>().join(", ")
}
