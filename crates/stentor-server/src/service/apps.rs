//! Apps and their keys.

use secrecy::ExposeSecret;
use stentor_core::app::{ApiKey, App, Scope, Scopes};
use stentor_core::audit::AuditAction;
use stentor_core::id::{AppId, KeyId};
use stentor_core::ports::store::{Change, KeyFilter};

use super::audit::{AuditSubject, Author};
use super::precondition::precondition;
use super::{Caller, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::apps::{AppList, AppRequest, AppView, KeyList, KeyRequest, KeyView, NewKey};
use crate::contract::table::{CreateApp, CreateKey, DeleteApp, DeleteKey, ListApps, ListKeys, ShowApp};
use crate::contract::{Conditional, Serve};
use crate::keys::new_secret;

impl Serve<CreateApp> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        (): (),
        AppRequest { name }: AppRequest,
    ) -> ServiceResult<AppView> {
        let created_at = self.now();
        let app = App { id: AppId::from_raw(self.next_id(created_at)), name, created_at };
        let author = Author::of(&identity, from);
        let subject =
            AuditSubject::new(AuditAction::AppCreate, app.id, app.id).with_detail(app.name.as_str());
        // Permission is checked before the change, so that a refusal leaves only its audit entry.
        self.permitted(&author, &subject, identity.allow::<CreateApp>()).await?;
        self.change(author, subject, Change::CreateApp(app.clone())).await?;
        Ok(app.into())
    }
}

impl Serve<ListApps> for Service {
    async fn serve(&self, identity: Identity, (): (), (): ()) -> ServiceResult<AppList> {
        identity.allow::<ListApps>()?;
        let apps = match identity {
            // The admin key of an app sees its own app and no other.
            Identity::Key { app: own, .. } => vec![self.store.app(own).await?],
            Identity::Root | Identity::Person(_) => self.store.apps().await?,
        };
        let seen = apps.into_iter().filter(|app| identity.sees(app.id));
        Ok(AppList { apps: seen.map(AppView::from).collect() })
    }
}

impl Serve<ShowApp> for Service {
    async fn serve(&self, identity: Identity, app: AppId, (): ()) -> ServiceResult<AppView> {
        Ok(self.store.app(identity.on(app)?.app()).await?.into())
    }
}

impl Serve<DeleteApp> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        app: AppId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        let (author, subject) =
            (Author::of(&identity, from), AuditSubject::new(AuditAction::AppDelete, app, app));
        self.permitted(&author, &subject, identity.allow::<DeleteApp>()).await?;
        let change = Change::DeleteApp(app, precondition(condition, AppView::from));
        self.change(author, subject, change).await?;
        // Caches follow the store: a failed removal changes nothing here.
        self.keyring.forget_app(app);
        // Connected devices of the app would otherwise continue to receive.
        self.gateway.cut_off_app(app);
        for provider in self.credentials.forget_app(app) {
            self.pipeline.changed(app, provider);
        }
        self.pipeline.forget_app(app);
        Ok(())
    }
}

impl Serve<CreateKey> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        app: AppId,
        KeyRequest { name, scopes }: KeyRequest,
    ) -> ServiceResult<NewKey> {
        let (secret, created_at) = (new_secret(), self.now());
        let id = KeyId::from_raw(self.next_id(created_at));
        let author = Author::of(&identity, from);
        let detail = format!("{name}: {}", scope_words(&scopes), name = name.as_str());
        let subject = AuditSubject::new(AuditAction::KeyCreate, app, id).with_detail(&detail);
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        if scopes.is_empty() {
            return Err(Problem::field("scopes", "must name at least one of send, register, admin"));
        }
        let key = ApiKey {
            id,
            app: Some(app),
            name,
            scopes: Scopes::of(&scopes),
            hash: self.keyring.hash(secret.expose_secret()),
            created_at,
        };
        // The mark is set before the key is stored: a key found without a mark would be refused.
        self.keyring.expect(&key.hash);
        self.change(author, subject, Change::CreateKey(key.clone())).await?;
        Ok(NewKey::new(key, secret.expose_secret().to_owned()))
    }
}

impl Serve<ListKeys> for Service {
    async fn serve(&self, identity: Identity, app: AppId, (): ()) -> ServiceResult<KeyList> {
        let app = self.administrated(identity, app).await?;
        Ok(KeyList {
            keys: self.store.keys(KeyFilter::App(app)).await?.into_iter().map(KeyView::from).collect(),
        })
    }
}

impl Serve<DeleteKey> for Service {
    async fn serve(
        &self,
        (identity, from): (Identity, Origin),
        (app, key): (AppId, KeyId),
        (): (),
    ) -> ServiceResult<()> {
        let (author, subject) =
            (Author::of(&identity, from), AuditSubject::new(AuditAction::KeyDelete, app, key));
        let app = self.administrated_by(&author, &subject, identity, app).await?;
        // The store first: if the cache were cleared before, a look-up could cache the key again.
        self.change(author, subject, Change::DeleteKey(app, key)).await?;
        self.keyring.forget_key(key);
        Ok(())
    }
}

impl Service {
    /// Checks that the caller may administrate the app, and that the app exists.
    pub(super) async fn administrated(&self, identity: Identity, app: AppId) -> ServiceResult<AppId> {
        administrates(identity, app)?;
        Ok(self.store.app(app).await?.id)
    }

    /// Does the same for a change. A refusal leaves an entry in the audit trail.
    pub(super) async fn administrated_by(
        &self,
        author: &Author,
        subject: &AuditSubject,
        identity: Identity,
        app: AppId,
    ) -> ServiceResult<AppId> {
        self.permitted(author, subject, administrates(identity, app)).await?;
        Ok(self.store.app(app).await?.id)
    }
}

fn administrates(identity: Identity, app: AppId) -> ServiceResult<()> {
    let caller: Caller = identity.on(app)?;
    // All operations on an app's keys and credentials require the same scope.
    caller.allow::<ListKeys>()
}

fn scope_words(scopes: &[Scope]) -> String {
    let word = |scope: &Scope| match scope {
        Scope::Send => "send",
        Scope::Register => "register",
        Scope::Admin => "admin",
        Scope::Join => "join",
    };
    scopes.iter().map(word).collect::<Vec<_>>().join(", ")
}
