//! The caller of an operation: its key, its app and its address.

use std::net::IpAddr;
use std::sync::Arc;

use stentor_core::app::{Scope, Scopes};
use stentor_core::id::{AppId, KeyId};
use stentor_core::person::Person;

use super::role::{PersonInRoles, Role};
use super::table::SendMessage;
use super::{Access, ErrorCode, Operation, Problem, ServiceResult};
use crate::owner::{Owner, SourceNetwork};

/// The authenticated key or person of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The operator, with access to every app and every scope.
    Root,
    /// A key of one app.
    Key {
        /// Its public name.
        id: KeyId,
        /// The app that it belongs to.
        app: AppId,
        /// Its scopes.
        scopes: Scopes,
    },
    /// A person, in a session of the console.
    Person(Arc<PersonInRoles>),
}

/// Origin of a request: address of the caller, request id in the log, and the person if there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Address of the caller, if known.
    pub address: Option<IpAddr>,
    /// Id of the request.
    pub request_id: String,
    /// The person whose session of the console made the request.
    pub person: Option<Person>,
}

/// Kind of caller that acts for an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    /// The operator.
    Root,
    /// A key of the app.
    Key(KeyId),
    /// A person with a role in the app; the origin of the request names it.
    Person,
    /// The gateway, acting for a sender that reaches a device of the app without a key of the app.
    Gateway,
}

/// An identity that acts for one app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    app: AppId,
    kind: CallerKind,
    scopes: Scopes,
}

/// The part of the caller's identity that an operation needs.
pub trait CallerKnowledge: Send {
    /// True if the request may name the app that it acts for.
    const NAMES_APP: bool;
}

impl CallerKnowledge for Identity {
    const NAMES_APP: bool = false;
}

impl CallerKnowledge for Caller {
    const NAMES_APP: bool = true;
}

/// Adds the request's origin, for operations that leave an entry in the audit trail.
impl<T: CallerKnowledge> CallerKnowledge for (T, Origin) {
    const NAMES_APP: bool = T::NAMES_APP;
}

/// Adds the named app, for operations that may also concern all apps.
impl CallerKnowledge for (Identity, Option<AppId>) {
    const NAMES_APP: bool = true;
}

impl Identity {
    /// Returns the app of the key, or the only app of the person; `None` for the operator's key and a person of several apps.
    #[must_use]
    pub fn app(&self) -> Option<AppId> {
        match self {
            Self::Root => None,
            Self::Key { app, .. } => Some(*app),
            Self::Person(who) => who.roles.sole_app(),
        }
    }

    /// Returns true if the identity may see the app.
    #[must_use]
    pub fn sees(&self, app: AppId) -> bool {
        match self {
            Self::Root => true,
            Self::Key { app: own, .. } => *own == app,
            Self::Person(who) => who.roles.in_app(app).is_some(),
        }
    }

    /// Returns the owner that shared resources are charged to. A key with only the `join` scope is embedded in an app that everybody has,
    /// so its user counts as a guest.
    #[must_use]
    pub fn owner(&self, network: SourceNetwork) -> Owner {
        match self {
            Self::Root => Owner::Operator,
            Self::Key { app, scopes, .. } if *scopes == Scopes::of(&[Scope::Join]) => {
                Owner::Guest(*app, network)
            }
            Self::Key { app, .. } => Owner::App(*app),
            // Until the request names an app; somebody with a role in all apps belongs to the operator.
            Self::Person(who) => match who.roles.list().next().and_then(|role| role.app) {
                Some(app) => Owner::App(app),
                None => Owner::Operator,
            },
        }
    }

    /// Rejects an identity other than the operator and an admin of all apps if only they may call the operation. Other operations are
    /// checked once the app is known.
    pub fn allow<O: Operation>(&self) -> ServiceResult<()> {
        match O::FACTS.access {
            Access::Root => self.require_root(),
            Access::AnyKey | Access::Scopes(_) | Access::Reading(_) => Ok(()),
        }
    }

    /// Rejects every identity but the operator and an admin of all apps.
    fn require_root(&self) -> ServiceResult<()> {
        match self {
            Self::Root => Ok(()),
            Self::Person(who) if who.roles.everywhere() == Some(Role::Admin) => Ok(()),
            Self::Person(_) => Err(admin_of_all_only()),
            Self::Key { .. } => Err(root_only()),
        }
    }

    /// Returns a caller that acts for the app named in the path. The operator may act for any app, a key only for its own, and a person for
    /// those with a role.
    pub fn on(&self, app: AppId) -> ServiceResult<Caller> {
        match self {
            Self::Root => Ok(Caller { app, kind: CallerKind::Root, scopes: Scopes::of(&[Scope::Admin]) }),
            Self::Key { id, app: own, scopes } if *own == app => {
                Ok(Caller { app, kind: CallerKind::Key(*id), scopes: *scopes })
            }
            Self::Key { .. } => Err(Problem::new(ErrorCode::NotFound, "there is no such app for this key")),
            Self::Person(who) => match who.roles.in_app(app) {
                Some(role) => Ok(Caller { app, kind: CallerKind::Person, scopes: role.scopes() }),
                None => Err(Problem::new(ErrorCode::NotFound, "there is no such app for this person")),
            },
        }
    }
}

impl Caller {
    /// Returns a caller for a Web Push sender, for which the gateway answers: it may send messages to the app's devices, and nothing else.
    pub(crate) fn of_gateway(app: AppId) -> Self {
        Self { app, kind: CallerKind::Gateway, scopes: Scopes::of(&[]) }
    }

    /// Returns the app.
    #[must_use]
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns the scopes.
    pub(crate) const fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// Returns the app key of the request; `None` for the operator, a person and the gateway.
    #[must_use]
    pub const fn key(&self) -> Option<KeyId> {
        match self.kind {
            CallerKind::Key(key) => Some(key),
            CallerKind::Root | CallerKind::Person | CallerKind::Gateway => None,
        }
    }

    /// Returns true for a person.
    #[must_use]
    pub const fn is_person(&self) -> bool {
        matches!(self.kind, CallerKind::Person)
    }

    /// Rejects a caller that may not call the operation.
    pub fn allow<O: Operation>(&self) -> ServiceResult<()> {
        match (self.kind, O::FACTS.access) {
            (CallerKind::Gateway, _) if O::FACTS == SendMessage::FACTS => Ok(()),
            (CallerKind::Gateway, _) => Err(Problem::new(ErrorCode::Forbidden, "the gateway may only send")),
            (CallerKind::Person, Access::Reading(_)) => Ok(()),
            (_, Access::Scopes(scopes) | Access::Reading(scopes)) => self.require_any(scopes),
            (_, Access::AnyKey) | (CallerKind::Root, Access::Root) => Ok(()),
            (CallerKind::Person, Access::Root) => Err(admin_of_all_only()),
            (CallerKind::Key(_), Access::Root) => Err(root_only()),
        }
    }

    /// Rejects a key with none of the scopes.
    pub(crate) fn require_any(&self, scopes: &[Scope]) -> ServiceResult<()> {
        if scopes.iter().any(|scope| self.scopes.allows(*scope)) {
            return Ok(());
        }
        let words: Vec<_> = scopes.iter().map(|scope| scope_word(*scope)).collect();
        let lacks = if self.is_person() { "the person's role lacks" } else { "the key lacks" };
        let detail = format!("{lacks} the scope {}", words.join(" or "));
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

fn root_only() -> Problem {
    Problem::new(ErrorCode::Forbidden, "only the root key may do this")
}

fn admin_of_all_only() -> Problem {
    Problem::new(ErrorCode::Forbidden, "only an admin of all apps may do this")
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
        for response in refused {
            assert_eq!(response.map_err(|problem| problem.code), Err(ErrorCode::Forbidden));
        }
        assert_eq!(gateway.key(), None);
    }
}
