//! The identity of a key, and the app for which it acts.

use stentor_core::id::AppId;

use super::{Caller, ErrorCode, Identity, Problem, Service, ServiceResult};
use crate::keys::looks_like_token;

impl Service {
    /// Resolves a key or an access token to its identity.
    pub async fn identify(&self, secret: &str) -> ServiceResult<Identity> {
        if looks_like_token(secret) {
            return self.token_identity(secret).await;
        }
        self.keyring.identify(self.store.as_ref(), secret).await
    }

    /// Selects the app: a key's own, or the one that the operator names.
    pub async fn caller(&self, identity: Identity, named: Option<AppId>) -> ServiceResult<Caller> {
        match (identity, named) {
            (Identity::Key { app, .. }, None) => identity.on(app),
            (Identity::Key { .. }, Some(app)) => identity.on(app),
            (Identity::Root, Some(app)) => {
                // The root key has access to every app, so an app that does not exist must be refused here.
                self.known_app(app).await?;
                identity.on(app)
            }
            (Identity::Root, None) => {
                Err(Problem::new(ErrorCode::InvalidRequest, "the root key belongs to no app")
                    .with_hint("name the app"))
            }
        }
    }

    async fn known_app(&self, app: AppId) -> ServiceResult<()> {
        let (is_known, removals) = self.keyring.knows_app(app);
        if !is_known {
            self.store.app(app).await?;
            self.keyring.remember_app(app, removals);
        }
        Ok(())
    }
}
