//! Roles of persons who use the console.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stentor_core::app::{Scope, Scopes};
use stentor_core::error::Invalid;
use stentor_core::id::AppId;
use stentor_core::person::Person;

/// The word for all apps in place of an app's id.
const EVERYWHERE: &str = "*";
/// Most apps in which a person has a role of its own, so that a session fits into a cookie.
const APPS_MAX_COUNT: usize = 32;

/// A role in an app. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything but keys and credentials.
    Viewer,
    /// Sends messages, and pauses, resumes and cancels campaigns.
    Sender,
    /// Registers devices, users, groups and topics.
    Operator,
    /// Does everything in the app.
    Admin,
}

/// The roles of a person, in some apps or in all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    everywhere: Option<Role>,
    apps: BTreeMap<AppId, Role>,
}

/// A role and the app in which it is held; `None` for all apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppRole {
    /// The app.
    pub app: Option<AppId>,
    /// The role.
    pub role: Role,
}

/// A person with roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonInRoles {
    /// The person.
    pub person: Person,
    /// The roles at the time of the login.
    pub roles: Roles,
}

impl Role {
    const ALL: [Self; 4] = [Self::Viewer, Self::Sender, Self::Operator, Self::Admin];

    /// Returns the name of the role.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Sender => "sender",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Returns the scopes that a key would need for the same changes.
    #[must_use]
    pub fn scopes(self) -> Scopes {
        Scopes::of(match self {
            Self::Viewer => &[],
            Self::Sender => &[Scope::Send],
            Self::Operator => &[Scope::Send, Scope::Register],
            Self::Admin => &[Scope::Admin],
        })
    }
}

impl Roles {
    /// Adds roles; the highest of each app counts. Fails if there are too many apps.
    pub fn of(granted: impl IntoIterator<Item = AppRole>) -> Result<Self, Invalid> {
        let mut roles = Self::default();
        for AppRole { app, role } in granted {
            match app {
                None => roles.everywhere = roles.everywhere.max(Some(role)),
                Some(app) => {
                    let held = roles.apps.entry(app).or_insert(role);
                    *held = role.max(*held);
                }
            }
        }
        if roles.apps.len() > APPS_MAX_COUNT {
            return Err(Invalid::new("roles", format!("are in more than {APPS_MAX_COUNT} apps")));
        }
        Ok(roles)
    }

    /// Returns true if there is no role.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.everywhere.is_none() && self.apps.is_empty()
    }

    /// Returns the role in all apps.
    #[must_use]
    pub const fn everywhere(&self) -> Option<Role> {
        self.everywhere
    }

    /// Returns the role in an app.
    #[must_use]
    pub fn in_app(&self, app: AppId) -> Option<Role> {
        self.everywhere.max(self.apps.get(&app).copied())
    }

    /// Returns the only app with a role.
    #[must_use]
    pub fn sole_app(&self) -> Option<AppId> {
        let is_sole = self.everywhere.is_none() && self.apps.len() == 1;
        self.apps.keys().next().copied().filter(|_| is_sole)
    }

    /// Lists the roles, the one in all apps first.
    pub fn list(&self) -> impl Iterator<Item = AppRole> {
        let everywhere = self.everywhere.map(|role| AppRole { app: None, role });
        everywhere
            .into_iter()
            .chain(self.apps.iter().map(|(app, role)| AppRole { app: Some(*app), role: *role }))
    }
}

impl FromStr for AppRole {
    type Err = Invalid;

    /// Parses `app_…:sender` or `*:viewer`.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong =
            || Invalid::new("", format!("{text:?} must be an app or *, a colon, and one of {}", words()));
        let (app, role) = text.split_once(':').ok_or_else(wrong)?;
        let role = Role::ALL.into_iter().find(|one| one.as_str() == role).ok_or_else(wrong)?;
        let app = match app {
            EVERYWHERE => None,
            id => Some(id.parse().map_err(|_| wrong())?),
        };
        Ok(Self { app, role })
    }
}

impl fmt::Display for AppRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.app {
            Some(app) => write!(f, "{app}:{}", self.role.as_str()),
            None => write!(f, "{EVERYWHERE}:{}", self.role.as_str()),
        }
    }
}

fn words() -> String {
    Role::ALL.map(Role::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(texts: &[&str]) -> Roles {
        Roles::of(texts.iter().map(|text| text.parse().expect(text))).expect("roles")
    }

    #[test]
    fn the_highest_role_of_an_app_counts_and_the_one_in_all_apps_holds_in_each() {
        let (one, other) = (AppId::from_raw(1), AppId::from_raw(2));
        let roles = roles(&["*:viewer", &format!("{one}:admin"), &format!("{one}:sender")]);
        assert_eq!(roles.in_app(one), Some(Role::Admin));
        assert_eq!(roles.in_app(other), Some(Role::Viewer));
        assert_eq!(roles.sole_app(), None);
        let shown: Vec<_> = roles.list().map(|role| role.to_string()).collect();
        assert_eq!(shown, ["*:viewer".to_owned(), format!("{one}:admin")]);
    }

    #[test]
    fn a_person_with_a_role_in_one_app_has_none_in_another() {
        let (one, other) = (AppId::from_raw(1), AppId::from_raw(2));
        let roles = roles(&[&format!("{one}:viewer")]);
        assert_eq!((roles.in_app(one), roles.in_app(other)), (Some(Role::Viewer), None));
        assert_eq!(roles.sole_app(), Some(one));
        assert!(Roles::default().is_empty() && !roles.is_empty());
    }

    #[test]
    fn a_text_that_is_no_role_is_refused() {
        for text in
            ["", "admin", "*", "*:", "*:root", "*:Admin", ":admin", "app_1:admin", "* :admin", "*:admin:x"]
        {
            assert!(text.parse::<AppRole>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn roles_in_more_apps_than_a_session_holds_are_refused() {
        let granted = |count: usize| {
            Roles::of(
                (1..=count as u64).map(|app| AppRole { app: Some(AppId::from_raw(app)), role: Role::Viewer }),
            )
        };
        assert!(granted(APPS_MAX_COUNT).is_ok() && granted(APPS_MAX_COUNT + 1).is_err());
    }
}
