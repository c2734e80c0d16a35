//! Who asks, and for which app.

use stentor_core::app::{Scope, Scopes};
use stentor_core::id::{AppId, KeyId};

use super::{ErrorCode, Problem, Service, ServiceResult};

/// Whose key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The operator: every app, every scope.
    Root,
    /// A key of one app.
    Key {
        /// Its public name.
        id: KeyId,
        /// The app it opens.
        app: AppId,
        /// What it may do.
        scopes: Scopes,
    },
}

/// An identity that speaks for one app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    app: AppId,
    key: Option<KeyId>,
    scopes: Scopes,
}

impl Identity {
    /// Returns the app that the key belongs to; none for the operator's.
    #[must_use]
    pub const fn app(&self) -> Option<AppId> {
        match self {
            Self::Root => None,
            Self::Key { app, .. } => Some(*app),
        }
    }

    /// Refuses everybody but the operator.
    pub fn require_root(&self) -> ServiceResult<()> {
        match self {
            Self::Root => Ok(()),
            Self::Key { .. } => Err(Problem::new(ErrorCode::Forbidden, "only the root key may do this")),
        }
    }

    /// Speaks for the app that a path names: the operator for any, a key only for its own.
    pub fn on(&self, app: AppId) -> ServiceResult<Caller> {
        match self {
            Self::Root => Ok(Caller { app, key: None, scopes: Scopes::of(&[Scope::Admin]) }),
            Self::Key { id, app: own, scopes } if *own == app => {
                Ok(Caller { app, key: Some(*id), scopes: *scopes })
            }
            Self::Key { .. } => Err(Problem::new(ErrorCode::NotFound, "there is no such app for this key")),
        }
    }
}

impl Caller {
    /// Returns the app.
    #[must_use]
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns the key; `None` for the operator's.
    #[must_use]
    pub const fn key(&self) -> Option<KeyId> {
        self.key
    }

    /// Refuses a key without the scope.
    pub fn require(&self, scope: Scope) -> ServiceResult<()> {
        self.require_any(&[scope])
    }

    /// Refuses a key with none of the scopes.
    pub fn require_any(&self, scopes: &[Scope]) -> ServiceResult<()> {
        if scopes.iter().any(|scope| self.scopes.allows(*scope)) {
            return Ok(());
        }
        let words: Vec<_> = scopes.iter().map(|scope| scope_word(*scope)).collect();
        let detail = format!("the key lacks the scope {}", words.join(" or "));
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

impl Service {
    /// Finds out whose key it is.
    pub async fn identify(&self, secret: &str) -> ServiceResult<Identity> {
        self.keyring.identify(self.store.as_ref(), secret).await
    }

    /// Chooses the app: a key's own, or the one that the operator names.
    pub async fn caller(&self, identity: Identity, named: Option<AppId>) -> ServiceResult<Caller> {
        match (identity, named) {
            (Identity::Key { app, .. }, None) => identity.on(app),
            (Identity::Key { .. }, Some(app)) => identity.on(app),
            (Identity::Root, Some(app)) => {
                self.known_app(app).await?;
                identity.on(app)
            }
            (Identity::Root, None) => {
                Err(Problem::new(ErrorCode::InvalidRequest, "the root key belongs to no app")
                    .with_hint("name the app: header `X-Stentor-App: app_…` or `?app=app_…`"))
            }
        }
    }

    async fn known_app(&self, app: AppId) -> ServiceResult<()> {
        if !self.keyring.knows_app(app) {
            self.store.app(app).await?;
            self.keyring.remember_app(app);
        }
        Ok(())
    }
}

const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Send => "`send`",
        Scope::Register => "`register`",
        Scope::Admin => "`admin`",
    }
}
