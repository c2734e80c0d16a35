//! The audit trail: one entry per change with its author, stored in the same transaction.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stentor_core::audit::{Actor, AuditAction, AuditNote};
use stentor_core::id::{AppId, AuditId, KeyId};
use stentor_core::ports::store::{AuditFilter, Change, Changed, NewAuditEntry, Page};

use super::calendar::instant;
use super::long_list::LongList;
use super::{Caller, Identity, Origin, Problem, Service, ServiceResult};
use crate::contract::audit::{AuditList, AuditQuery, EntryView};
use crate::contract::table::ListAudit;
use crate::contract::{Before, Serve};

/// Interval in which at most one refusal per author is recorded, because refusals cost a caller nothing.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);
/// Most authors for whom the last refusal is remembered.
const REFUSED_AUTHORS_MAX_COUNT: usize = 4_096;
/// Longest detail of an entry.
const DETAIL_MAX_CHARS: usize = 200;

/// The author of a change, and the origin of the request.
#[derive(Debug, Clone)]
pub(super) struct Author {
    actor: Actor,
    /// The app of a key, or the only app of a person.
    home: Option<AppId>,
    origin: Origin,
}

/// The subject of an audit entry.
#[derive(Debug, Clone)]
pub(super) struct AuditSubject {
    pub(super) action: AuditAction,
    pub(super) app: Option<AppId>,
    /// Id or name of the changed thing.
    pub(super) thing: String,
    /// A short description; contains no secret.
    pub(super) detail: String,
}

/// Time of the last recorded refusal of each author.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<RefusedAuthor, Instant>>);

/// An author whose refusals are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum RefusedAuthor {
    Key(KeyId),
    Person(String),
}

impl Author {
    /// Returns the author of a change of apps, keys and credentials.
    pub(super) fn of(identity: &Identity, origin: Origin) -> Self {
        let (actor, home) = match identity {
            Identity::Root => (Actor::Root, None),
            Identity::Key { id, app, .. } => (Actor::Key(*id), Some(*app)),
            Identity::Person(who) => (Actor::Person(who.person.clone()), identity.app()),
        };
        Self { actor, home, origin }
    }

    /// Returns the actor.
    pub(super) const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the author of a change within an app.
    pub(super) fn for_caller(caller: Caller, origin: Origin) -> Self {
        let (actor, home) = match (caller.key(), &origin.person) {
            (Some(key), _) => (Actor::Key(key), Some(caller.app())),
            (None, Some(person)) => (Actor::Person(person.clone()), Some(caller.app())),
            (None, None) => (Actor::Root, None),
        };
        Self { actor, home, origin }
    }
}

impl RefusedAuthor {
    /// Returns `None` for the operator, whom nothing is refused.
    fn of(actor: &Actor) -> Option<Self> {
        match actor {
            Actor::Root => None,
            Actor::Key(key) => Some(Self::Key(*key)),
            Actor::Person(person) => Some(Self::Person(person.subject().to_owned())),
        }
    }
}

impl AuditSubject {
    /// Describes a change of a thing in an app.
    pub(super) fn new(action: AuditAction, app: AppId, thing: impl ToString) -> Self {
        Self { action, app: Some(app), thing: thing.to_string(), detail: String::new() }
    }

    /// Adds a short description; control characters become spaces, because a terminal could obey them.
    pub(super) fn with_detail(self, detail: &str) -> Self {
        let plain = detail.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        Self { detail: plain.take(DETAIL_MAX_CHARS).collect(), ..self }
    }
}

impl Refusals {
    /// Returns true if a refusal of the author is to be recorded now.
    fn admit(&self, author: RefusedAuthor) -> bool {
        let mut known = self.0.lock();
        if known.get(&author).is_some_and(|last| last.elapsed() < REFUSAL_PAUSE) {
            return false;
        }
        // Cleared when full: at worst some refusals are recorded once more within their second.
        if known.len() >= REFUSED_AUTHORS_MAX_COUNT {
            known.clear();
        }
        known.insert(author, Instant::now());
        true
    }
}

impl AuditQuery {
    fn filter(&self, app: Option<AppId>) -> ServiceResult<AuditFilter> {
        let action = self.action.as_deref().map(|text| text.parse().map_err(|_| unknown_action()));
        let since = self.since.as_deref().map(|text| instant("since", text)).transpose()?;
        Ok(AuditFilter { app, action: action.transpose()?, since })
    }
}

impl Serve<ListAudit> for Service {
    async fn serve(
        &self,
        (identity, app): (Identity, Option<AppId>),
        (): (),
        query: AuditQuery,
    ) -> ServiceResult<AuditList> {
        let page = Before { before: query.before.clone(), limit: query.limit };
        let page = page.page(|text| text.parse().ok().map(AuditId::raw))?;
        let filter = query.filter(app)?;
        identity.allow::<ListAudit>()?;
        let (mut list, mut after) = (LongList::new(page.limit), page.after);
        while let Some(limit) = list.wanted() {
            let found = self.store.audit(filter, Page { after, limit }).await?;
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), EntryView::from(one))));
        }
        let (entries, next) = list.page();
        Ok(AuditList { entries, next })
    }
}

impl Service {
    /// Makes a change and records its entry in one transaction.
    pub(super) async fn change(
        &self,
        author: Author,
        subject: AuditSubject,
        change: Change,
    ) -> ServiceResult<Changed> {
        Ok(self.store.change(change, Some(self.audit_entry(author, subject))).await?)
    }

    /// Returns the entry of a permitted change.
    pub(super) fn audit_entry(&self, author: Author, subject: AuditSubject) -> NewAuditEntry {
        let note = self.audit_note(author, subject, false);
        NewAuditEntry { note, max_count: self.settings.limits.audit_max_count }
    }

    /// Passes on the result of a permission check. A refusal leaves an entry in the audit trail.
    pub(super) async fn permitted<T>(
        &self,
        author: &Author,
        subject: &AuditSubject,
        answer: ServiceResult<T>,
    ) -> ServiceResult<T> {
        if let (Err(_), Some(refused)) = (&answer, RefusedAuthor::of(&author.actor))
            && self.refusals.admit(refused)
        {
            let note = self.audit_note(author.clone(), subject.clone(), true);
            let entry = NewAuditEntry { note, max_count: self.settings.limits.audit_max_count };
            // The request is refused in any case, even if the trail cannot be written.
            if let Err(error) = self.store.change(Change::Refused, Some(entry)).await {
                tracing::warn!(%error, actor = ?author.actor, "a refused change is not in the audit trail");
            }
        }
        answer
    }

    fn audit_note(&self, author: Author, subject: AuditSubject, refused: bool) -> AuditNote {
        let Author { actor, home, origin } = author;
        // Recorded under the app of the refused author, so that it displaces no entries of another app.
        let app = if refused { home } else { subject.app };
        AuditNote {
            at: self.now(),
            actor,
            app,
            action: subject.action,
            thing: subject.thing,
            detail: subject.detail,
            address: origin.address,
            request_id: origin.request_id,
            refused,
        }
    }
}

/// Logs a defect: the store replied to a change with a reply of another kind.
pub(super) fn unexpected() -> Problem {
    tracing::error!("the store answered a change with something else");
    Problem::new(super::ErrorCode::Internal, "the server failed at this request")
}

fn unknown_action() -> Problem {
    let words: Vec<_> = AuditAction::ALL.iter().map(|action| action.as_str()).collect();
    Problem::field("action", format!("must be one of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_is_short_and_has_nothing_that_a_terminal_obeys() {
        let subject =
            AuditSubject::new(AuditAction::AppCreate, AppId::from_raw(1), "").with_detail("a\u{1b}[2J\nb");
        assert_eq!(subject.detail, "a [2J b");
        assert_eq!(subject.with_detail(&"é".repeat(500)).detail.chars().count(), DETAIL_MAX_CHARS);
    }

    #[test]
    fn one_refusal_of_an_author_is_kept_and_the_next_ones_are_not() {
        let refusals = Refusals::default();
        let (key, person) = (RefusedAuthor::Key(KeyId::from_raw(1)), RefusedAuthor::Person("1".to_owned()));
        for author in [key, person] {
            assert!(refusals.admit(author.clone()) && !refusals.admit(author));
        }
    }
}
