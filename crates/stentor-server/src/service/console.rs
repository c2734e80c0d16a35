//! Sessions of the console: a key or a person opens one, and a browser names it with each request.

mod session_table;

use std::sync::Arc;
use std::time::Duration;

use stentor_core::app::Scope;

use super::{ErrorCode, Identity, Problem, Service, ServiceResult};
use crate::contract::role::PersonInRoles;
use crate::keys::{LoginAttempt, PersonGrant, SessionGrant, SessionHolder};

pub(super) use session_table::SessionTable;

/// The scopes of which a key needs one. A key with the scope `join` alone is in every copy of an app.
const SCOPES: &[Scope] = &[Scope::Send, Scope::Register, Scope::Admin];

/// Longest time that a person takes to log in at the identity provider.
pub(crate) const LOGIN_LIFE: Duration = Duration::from_secs(600);

/// An open session.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleSession {
    /// Identity of its holder.
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
        self.opened_session(identity, SessionHolder::Key(self.keyring.hash(secret))).await
    }

    /// Opens a session for a person whom the identity provider has named, and returns it with its token.
    pub(crate) async fn open_person_session(
        &self,
        who: PersonInRoles,
        settings: u64,
    ) -> ServiceResult<(ConsoleSession, String)> {
        let holder = SessionHolder::Person(PersonGrant { who: who.clone(), settings });
        self.opened_session(Identity::Person(Arc::new(who)), holder).await
    }

    async fn opened_session(
        &self,
        identity: Identity,
        holder: SessionHolder,
    ) -> ServiceResult<(ConsoleSession, String)> {
        let now = self.now();
        let expires_at = now.plus(self.settings.limits.session_life);
        let grant = SessionGrant { holder, session: rand::random(), expires_at };
        let oldest = self.sessions.open((&identity).into(), (&grant).into(), now)?;
        if let Some(oldest) = oldest {
            self.store.end_session(oldest, now).await?;
        }
        let token = self.keyring.session_token(&grant);
        Ok((ConsoleSession { identity, grant }, token))
    }

    /// Returns the session of a token, unless it has ended at any server, its key was deleted, or the settings of the login have changed.
    pub(crate) async fn session(&self, token: &str) -> ServiceResult<ConsoleSession> {
        let grant = self.keyring.session_grant(token).ok_or_else(ended)?;
        let now = self.now();
        if grant.expires_at <= now {
            return Err(ended());
        }
        let identity = self.holder(&grant.holder).await?;
        let has_ended = self.store.is_session_ended(grant.session).await?;
        if has_ended {
            self.sessions.remove(&(&identity).into(), (&grant).into());
            return Err(ended());
        }
        match self.sessions.admit((&identity).into(), (&grant).into(), now) {
            true => Ok(ConsoleSession { identity, grant }),
            false => Err(ended()),
        }
    }

    async fn holder(&self, holder: &SessionHolder) -> ServiceResult<Identity> {
        match holder {
            SessionHolder::Key(hash) => {
                let identity = self.keyring.identify_hash(self.store.as_ref(), *hash).await;
                identity.map_err(|problem| match problem.code {
                    ErrorCode::Unauthorized => ended(),
                    _ => problem,
                })
            }
            SessionHolder::Person(person) if self.settings.person_settings == Some(person.settings) => {
                Ok(Identity::Person(Arc::new(person.who.clone())))
            }
            SessionHolder::Person(_) => Err(ended()),
        }
    }

    /// Begins a login at the identity provider; returns its secrets and the token that the browser keeps.
    pub(crate) fn begin_login(&self) -> (LoginAttempt, String) {
        self.keyring.begin_login(self.now().plus(LOGIN_LIFE))
    }

    /// Returns the secrets of a login that has not expired.
    pub(crate) fn login_attempt(&self, token: &str) -> Option<LoginAttempt> {
        self.keyring.login_attempt(token).filter(|attempt| attempt.expires_at > self.now())
    }

    /// Ends a session, at every server of the store.
    pub(crate) async fn end_session(&self, session: &ConsoleSession) -> ServiceResult<()> {
        self.store.end_session((&session.grant).into(), self.now()).await?;
        self.sessions.remove(&(&session.identity).into(), (&session.grant).into());
        Ok(())
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
