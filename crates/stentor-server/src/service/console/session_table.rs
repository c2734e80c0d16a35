//! The sessions of each owner that this server knows to be open.

use std::collections::HashMap;

use parking_lot::Mutex;
use stentor_core::id::AppId;
use stentor_core::ports::store::EndedSession;
use stentor_core::time::Timestamp;

use super::super::{ErrorCode, Identity, Problem, ServiceResult};
use crate::arrival_limiter::{ArrivalLimiter, ArrivalRate};
use crate::keys::SessionGrant;

/// Most open sessions of one app, of one person, or of the operator; with one more the oldest ends.
const OPEN_MAX_COUNT: usize = 32;
/// Sessions of one app, of one person, or of the operator, that open at once and then in a second. It limits the sessions that have ended, too.
const OPENED: ArrivalRate = ArrivalRate { burst_max_count: 32, per_second_max_count: 1 };

/// The owner of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SessionOwner {
    /// The root key.
    Operator,
    /// A key of an app.
    App(AppId),
    /// The person with this subject.
    Person(String),
}

#[derive(Debug)]
pub(in crate::service) struct SessionTable {
    /// Sessions of each owner, oldest first, as they would end.
    by_owner: Mutex<HashMap<SessionOwner, Vec<EndedSession>>>,
    opened: ArrivalLimiter<SessionOwner>,
}

impl From<&Identity> for SessionOwner {
    fn from(identity: &Identity) -> Self {
        match identity {
            Identity::Root => Self::Operator,
            Identity::Key { app, .. } => Self::App(*app),
            Identity::Person(who) => Self::Person(who.person.subject().to_owned()),
        }
    }
}

impl From<&SessionGrant> for EndedSession {
    fn from(grant: &SessionGrant) -> Self {
        Self { number: grant.session, expires_at: grant.expires_at }
    }
}

impl Default for SessionTable {
    fn default() -> Self {
        Self { by_owner: Mutex::default(), opened: ArrivalLimiter::new(OPENED) }
    }
}

impl SessionTable {
    /// Opens a session. Returns the oldest one if it ends in its place.
    pub(super) fn open(
        &self,
        owner: SessionOwner,
        session: EndedSession,
        now: Timestamp,
    ) -> ServiceResult<Option<EndedSession>> {
        self.opened.take(owner.clone()).map_err(|wait| {
            let problem = Problem::new(ErrorCode::RateLimited, "too many sessions are opened at once");
            Problem { retry_after_seconds: Some((wait.as_secs_f64().ceil() as u32).max(1)), ..problem }
        })?;
        let mut by_owner = self.by_owner.lock();
        by_owner.retain(|_, sessions| forget_expired(sessions, now));
        let sessions = by_owner.entry(owner).or_default();
        let oldest = (sessions.len() >= OPEN_MAX_COUNT).then(|| sessions.remove(0));
        sessions.push(session);
        Ok(oldest)
    }

    /// Returns true if the session is open. A session of another server, or from before a restart, is counted from its first request on.
    pub(super) fn admit(&self, owner: SessionOwner, session: EndedSession, now: Timestamp) -> bool {
        let mut by_owner = self.by_owner.lock();
        let sessions = by_owner.entry(owner).or_default();
        if sessions.contains(&session) {
            return true;
        }
        forget_expired(sessions, now);
        if sessions.len() >= OPEN_MAX_COUNT {
            return false;
        }
        sessions.push(session);
        true
    }

    /// Removes a session that has ended.
    pub(super) fn remove(&self, owner: &SessionOwner, session: EndedSession) {
        if let Some(sessions) = self.by_owner.lock().get_mut(owner) {
            sessions.retain(|open| *open != session);
        }
    }
}

/// Forgets expired sessions. Returns true if any is left.
fn forget_expired(sessions: &mut Vec<EndedSession>, now: Timestamp) -> bool {
    sessions.retain(|session| session.expires_at > now);
    !sessions.is_empty()
}

#[cfg(test)]
mod tests {
    use super::SessionOwner::Operator;
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const LATER: Timestamp = Timestamp::from_millis(2_000);

    fn session(number: usize) -> EndedSession {
        EndedSession { number: number as u64, expires_at: LATER }
    }

    #[test]
    fn one_session_more_than_an_owner_may_have_ends_the_oldest_and_no_one_elses() {
        let (table, other) = (SessionTable::default(), SessionOwner::App(AppId::from_raw(1)));
        for number in 0..=OPEN_MAX_COUNT {
            // Those of another server, which this one has not opened.
            match number {
                0 => assert!(table.admit(Operator, session(number), NOW)),
                OPEN_MAX_COUNT => {
                    assert_eq!(table.open(Operator, session(number), NOW), Ok(Some(session(0))))
                }
                _ => assert_eq!(table.open(Operator, session(number), NOW), Ok(None)),
            }
        }
        table.open(other.clone(), session(0), NOW).expect("opened");
        assert!(table.admit(other, session(0), NOW));
        assert!((1..=OPEN_MAX_COUNT).all(|number| table.admit(Operator, session(number), NOW)));
        assert!(!table.admit(Operator, session(OPEN_MAX_COUNT + 1), NOW), "there are enough");
        assert!(table.open(Operator, session(0), NOW).is_err(), "so many at once");
    }

    #[test]
    fn a_session_that_was_removed_or_has_expired_makes_room() {
        let table = SessionTable::default();
        let person = SessionOwner::Person("248289".to_owned());
        table.open(person.clone(), session(1), NOW).expect("opened");
        table.open(person.clone(), session(2), NOW).expect("opened");
        table.remove(&person, session(1));
        assert_eq!(table.by_owner.lock()[&person], [session(2)]);
        table.open(SessionOwner::App(AppId::from_raw(1)), session(3), LATER).expect("opened");
        assert_eq!(table.by_owner.lock().len(), 1, "the expired ones are forgotten");
    }
}
