//! The identity of a key or a person, and the app for which it acts.

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

    /// Selects the app: the identity's only one, or the one that the request names.
    pub async fn caller(&self, identity: Identity, named: Option<AppId>) -> ServiceResult<Caller> {
        let Some(app) = named.or_else(|| identity.app()) else {
            let whose = match identity {
                Identity::Person(_) => "the person may have several apps",
                Identity::Root | Identity::Key { .. } => "the root key belongs to no app",
            };
            return Err(Problem::new(ErrorCode::InvalidRequest, whose).with_hint("name the app"));
        };
        let caller = identity.on(app)?;
        // The root key and a role may concern an app that does not exist; it must be refused here.
        if !matches!(identity, Identity::Key { .. }) {
            self.known_app(app).await?;
        }
        Ok(caller)
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
