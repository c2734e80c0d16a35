//! The sessions of each owner that this server knows to be open, and those that ended before their time.

use std::collections::HashMap;

use parking_lot::Mutex;
use stentor_core::id::AppId;
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

/// Number and expiry of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberedSession {
    number: u64,
    expires_at: Timestamp,
}

#[derive(Debug)]
pub(in crate::service) struct SessionTable {
    by_owner: Mutex<HashMap<SessionOwner, OwnerSessions>>,
    opened: ArrivalLimiter<SessionOwner>,
}

/// Sessions of one owner, oldest first.
#[derive(Debug, Default)]
struct OwnerSessions {
    open: Vec<NumberedSession>,
    ended: Vec<NumberedSession>,
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

impl From<&SessionGrant> for NumberedSession {
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
    /// Opens a session.
    pub(super) fn open(
        &self,
        owner: SessionOwner,
        session: NumberedSession,
        now: Timestamp,
    ) -> ServiceResult<()> {
        self.opened.take(owner.clone()).map_err(|wait| {
            let problem = Problem::new(ErrorCode::RateLimited, "too many sessions are opened at once");
            Problem { retry_after_seconds: Some((wait.as_secs_f64().ceil() as u32).max(1)), ..problem }
        })?;
        let mut by_owner = self.by_owner.lock();
        by_owner.retain(|_, sessions| sessions.forget_expired(now));
        let sessions = by_owner.entry(owner).or_default();
        if sessions.open.len() >= OPEN_MAX_COUNT {
            let oldest = sessions.open.remove(0);
            sessions.ended.push(oldest);
        }
        sessions.open.push(session);
        Ok(())
    }

    /// Returns true if the session is open. A session of another server, or from before a restart, is counted from its first request on.
    pub(super) fn admit(&self, owner: SessionOwner, session: NumberedSession, now: Timestamp) -> bool {
        let mut by_owner = self.by_owner.lock();
        let sessions = by_owner.entry(owner).or_default();
        if sessions.open.contains(&session) {
            return true;
        }
        sessions.forget_expired(now);
        if sessions.ended.contains(&session) || sessions.open.len() >= OPEN_MAX_COUNT {
            return false;
        }
        sessions.open.push(session);
        true
    }

    /// Ends a session.
    pub(super) fn end(&self, owner: &SessionOwner, session: NumberedSession) {
        let mut by_owner = self.by_owner.lock();
        let sessions = by_owner.entry(owner.clone()).or_default();
        sessions.open.retain(|open| *open != session);
        if !sessions.ended.contains(&session) {
            sessions.ended.push(session);
        }
    }
}

impl OwnerSessions {
    /// Forgets expired sessions. Returns true if any is left.
    fn forget_expired(&mut self, now: Timestamp) -> bool {
        for sessions in [&mut self.open, &mut self.ended] {
            sessions.retain(|session| session.expires_at > now);
        }
        !(self.open.is_empty() && self.ended.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::SessionOwner::Operator;
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);
    const LATER: Timestamp = Timestamp::from_millis(2_000);

    fn session(number: usize) -> NumberedSession {
        NumberedSession { number: number as u64, expires_at: LATER }
    }

    #[test]
    fn one_session_more_than_an_owner_may_have_ends_the_oldest_and_no_one_elses() {
        let (table, other) = (SessionTable::default(), SessionOwner::App(AppId::from_raw(1)));
        for number in 0..=OPEN_MAX_COUNT {
            // Those of another server, which this one has not opened.
            match number {
                0 => assert!(table.admit(Operator, session(number), NOW)),
                _ => table.open(Operator, session(number), NOW).expect("opened"),
            }
        }
        table.open(other.clone(), session(0), NOW).expect("opened");
        assert!(table.admit(other, session(0), NOW));
        assert!(!table.admit(Operator, session(0), NOW), "it was the oldest");
        assert!((1..=OPEN_MAX_COUNT).all(|number| table.admit(Operator, session(number), NOW)));
        assert!(!table.admit(Operator, session(OPEN_MAX_COUNT + 1), NOW), "there are enough");
        assert!(table.open(Operator, session(0), NOW).is_err(), "so many at once");
    }

    #[test]
    fn an_ended_session_stays_so_until_it_expires_and_is_then_forgotten() {
        let table = SessionTable::default();
        let person = SessionOwner::Person("248289".to_owned());
        table.open(person.clone(), session(1), NOW).expect("opened");
        table.end(&person, session(1));
        table.end(&person, session(1));
        assert!(!table.admit(person, session(1), NOW));
        table.open(SessionOwner::App(AppId::from_raw(1)), session(2), LATER).expect("opened");
        assert_eq!(table.by_owner.lock().len(), 1, "the expired ones are forgotten");
    }
}
