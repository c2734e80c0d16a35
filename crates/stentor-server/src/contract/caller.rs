//! Who asks, for which app, and from where.

use std::net::IpAddr;

use stentor_core::app::{Scope, Scopes};
use stentor_core::id::{AppId, KeyId};

use super::table::SendMessage;
use super::{Access, ErrorCode, Operation, Problem, ServiceResult};
use crate::owner::{Owner, SourceNetwork};

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

/// Where a request comes from, and what it is called in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The caller's address, where it is known.
    pub address: Option<IpAddr>,
    /// The request's id.
    pub request_id: String,
}

/// Who speaks for an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    /// The operator.
    Root,
    /// A key of the app.
    Key(KeyId),
    /// The gateway, for whoever sends to a device of the app without a key of it.
    Gateway,
}

/// An identity that speaks for one app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    app: AppId,
    kind: CallerKind,
    scopes: Scopes,
}

/// Who asks, as far as an operation wants to know it.
pub trait CallerKnowledge: Send {
    /// Whether the app may be named that is spoken for.
    const NAMES_APP: bool;
}

impl CallerKnowledge for Identity {
    const NAMES_APP: bool = false;
}

impl CallerKnowledge for Caller {
    const NAMES_APP: bool = true;
}

/// With where the request comes from, for what leaves an entry in the audit trail.
impl<T: CallerKnowledge> CallerKnowledge for (T, Origin) {
    const NAMES_APP: bool = T::NAMES_APP;
}

/// With the app that is named, for what also concerns all apps.
impl CallerKnowledge for (Identity, Option<AppId>) {
    const NAMES_APP: bool = true;
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

    /// Returns in whose name the key takes what all share. A key that only lets devices join stands in an app that everybody has: whoever
    /// uses it is a guest.
    #[must_use]
    pub fn owner(&self, network: SourceNetwork) -> Owner {
        match self {
            Self::Root => Owner::Operator,
            Self::Key { app, scopes, .. } if *scopes == Scopes::of(&[Scope::Join]) => {
                Owner::Guest(*app, network)
            }
            Self::Key { app, .. } => Owner::App(*app),
        }
    }

    /// Refuses all but the operator an operation that only the operator may ask for; others depend on an app.
    pub fn allow<O: Operation>(&self) -> ServiceResult<()> {
        match O::FACTS.access {
            Access::Root => self.require_root(),
            Access::AnyKey | Access::Scopes(_) => Ok(()),
        }
    }

    /// Refuses everybody but the operator.
    fn require_root(&self) -> ServiceResult<()> {
        match self {
            Self::Root => Ok(()),
            Self::Key { .. } => Err(root_only()),
        }
    }

    /// Speaks for the app that a path names: the operator for any, a key only for its own.
    pub fn on(&self, app: AppId) -> ServiceResult<Caller> {
        match self {
            Self::Root => Ok(Caller { app, kind: CallerKind::Root, scopes: Scopes::of(&[Scope::Admin]) }),
            Self::Key { id, app: own, scopes } if *own == app => {
                Ok(Caller { app, kind: CallerKind::Key(*id), scopes: *scopes })
            }
            Self::Key { .. } => Err(Problem::new(ErrorCode::NotFound, "there is no such app for this key")),
        }
    }
}

impl Caller {
    /// Speaks for an app whose devices somebody sends to by Web Push, for whom the gateway answers: it may send messages, and
    /// nothing else.
    pub(crate) fn of_gateway(app: AppId) -> Self {
        Self { app, kind: CallerKind::Gateway, scopes: Scopes::of(&[]) }
    }

    /// Returns the app.
    #[must_use]
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns what it may do.
    pub(crate) const fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// Returns the key of the app that asks; `None` where none does.
    #[must_use]
    pub const fn key(&self) -> Option<KeyId> {
        match self.kind {
            CallerKind::Key(key) => Some(key),
            CallerKind::Root | CallerKind::Gateway => None,
        }
    }

    /// Refuses a key that may not ask for an operation.
    pub fn allow<O: Operation>(&self) -> ServiceResult<()> {
        match (self.kind, O::FACTS.access) {
            (CallerKind::Gateway, _) if O::FACTS == SendMessage::FACTS => Ok(()),
            (CallerKind::Gateway, _) => Err(Problem::new(ErrorCode::Forbidden, "the gateway may only send")),
            (_, Access::Scopes(scopes)) => self.require_any(scopes),
            (_, Access::AnyKey) | (CallerKind::Root, Access::Root) => Ok(()),
            (CallerKind::Key(_), Access::Root) => Err(root_only()),
        }
    }

    /// Refuses a key with none of the scopes.
    pub(crate) fn require_any(&self, scopes: &[Scope]) -> ServiceResult<()> {
        if scopes.iter().any(|scope| self.scopes.allows(*scope)) {
            return Ok(());
        }
        let words: Vec<_> = scopes.iter().map(|scope| scope_word(*scope)).collect();
        let detail = format!("the key lacks the scope {}", words.join(" or "));
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

fn root_only() -> Problem {
    Problem::new(ErrorCode::Forbidden, "only the root key may do this")
}

const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Send => "`send`",
        Scope::Register => "`register`",
        Scope::Admin => "`admin`",
        Scope::Join => "`join`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::table::{CancelCampaign, ListAudit, ListMembers, ShowApp};

    #[test]
    fn the_gateway_may_send_messages_and_do_nothing_else() {
        let gateway = Caller::of_gateway(AppId::from_raw(1));
        assert_eq!(gateway.allow::<SendMessage>(), Ok(()));
        let refused = [
            gateway.allow::<CancelCampaign>(),
            gateway.allow::<ListMembers>(),
            gateway.allow::<ShowApp>(),
            gateway.allow::<ListAudit>(),
            gateway.require_any(&[Scope::Send, Scope::Join]),
        ];
        for told in refused {
            assert_eq!(told.map_err(|problem| problem.code), Err(ErrorCode::Forbidden));
        }
        assert_eq!(gateway.key(), None);
    }
}
