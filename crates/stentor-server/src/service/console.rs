//! Sessions of the console: a key opens one, a browser names it with each request, and it ends with its key.

mod session_table;

use stentor_core::app::Scope;

use super::{ErrorCode, Identity, Problem, Service, ServiceResult};
use crate::keys::SessionGrant;

pub(super) use session_table::SessionTable;

/// The scopes of which a key needs one. A key with the scope `join` alone is in every copy of an app.
const SCOPES: &[Scope] = &[Scope::Send, Scope::Register, Scope::Admin];

/// An open session.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleSession {
    /// Identity of its key.
    pub(crate) identity: Identity,
    /// The content of its token.
    pub(crate) grant: SessionGrant,
}

impl Service {
    /// Opens a session with a key and returns it with its token.
    pub(crate) async fn open_session(&self, secret: &str) -> ServiceResult<(ConsoleSession, String)> {
        let identity = self.keyring.identify(self.store.as_ref(), secret).await?;
        if let Some(app) = identity.app() {
            identity.on(app)?.require_any(SCOPES)?;
        }
        let now = self.now();
        let expires_at = now.plus(self.settings.limits.session_life);
        let grant = SessionGrant { key: self.keyring.hash(secret), session: rand::random(), expires_at };
        self.sessions.open(identity.app(), (&grant).into(), now)?;
        let token = self.keyring.session_token(&grant);
        Ok((ConsoleSession { identity, grant }, token))
    }

    /// Returns the session of a token, unless it has ended or its key was deleted.
    pub(crate) async fn session(&self, token: &str) -> ServiceResult<ConsoleSession> {
        let grant = self.keyring.session_grant(token).ok_or_else(ended)?;
        let now = self.now();
        if grant.expires_at <= now {
            return Err(ended());
        }
        let identity = self.keyring.identify_hash(self.store.as_ref(), grant.key).await;
        let identity = identity.map_err(|problem| match problem.code {
            ErrorCode::Unauthorized => ended(),
            _ => problem,
        })?;
        match self.sessions.admit(identity.app(), (&grant).into(), now) {
            true => Ok(ConsoleSession { identity, grant }),
            false => Err(ended()),
        }
    }

    /// Ends a session.
    pub(crate) fn end_session(&self, session: &ConsoleSession) {
        self.sessions.end(session.identity.app(), (&session.grant).into());
    }

    /// Returns the text that a page of the session sends with each change.
    pub(crate) fn csrf_token(&self, session: &ConsoleSession) -> String {
        self.keyring.csrf_token(&session.grant)
    }

    /// Rejects a change that does not come from a page of the session.
    pub(crate) fn require_csrf_token(&self, session: &ConsoleSession, text: &str) -> ServiceResult<()> {
        match self.keyring.is_csrf_token(&session.grant, text) {
            true => Ok(()),
            false => Err(Problem::new(ErrorCode::Forbidden, "the change does not come from the console")
                .with_hint("`GET /console/session` has the text for the header `X-Stentor-CSRF`")),
        }
    }
}

fn ended() -> Problem {
    Problem::new(ErrorCode::Unauthorized, "the session of the console has ended").with_hint("log in again")
}
