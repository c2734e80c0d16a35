//! The person and the roles that the claims of an ID token name.

use serde_json::{Map, Value};
use stentor_core::person::Person;

use super::id_token::Claims;
use super::refusal::{LoginRefusal, RefusalCode};
use crate::config::{MappedRole, OidcConfig};
use crate::contract::role::{AppRole, PersonInRoles, Roles};

/// Begins a value that is a role by itself: `stentor:app_…:sender`.
const ROLE_PREFIX: &str = "stentor:";

/// The claims that are read, and the meaning of their values.
pub(super) struct ClaimNames {
    name: String,
    roles: String,
    mapped: Vec<MappedRole>,
}

impl ClaimNames {
    pub(super) fn new(oidc: &OidcConfig) -> Result<Self, String> {
        let mapped = oidc.mapped_roles().map_err(|invalid| invalid.problem)?;
        Ok(Self { name: oidc.name_claim.clone(), roles: oidc.roles_claim.clone(), mapped })
    }

    /// Returns the person of a token, who must have a role.
    pub(super) fn person(&self, claims: &Claims) -> Result<PersonInRoles, LoginRefusal> {
        let name = claim(&claims.more, &self.name).and_then(Value::as_str).unwrap_or_default();
        let person =
            Person::new(&claims.sub, name).map_err(|_| LoginRefusal::invalid("its subject is none"))?;
        let values = texts(claim(&claims.more, &self.roles));
        let roles = Roles::of(values.iter().flat_map(|value| self.roles_of(value)));
        let roles =
            roles.map_err(|_| LoginRefusal::new(RefusalCode::TooManyRoles, "they are in too many apps"))?;
        if roles.is_empty() {
            return Err(LoginRefusal::new(
                RefusalCode::NoRole,
                "no value of the roles claim stands for a role",
            ));
        }
        Ok(PersonInRoles { person, roles })
    }

    fn roles_of(&self, value: &str) -> impl Iterator<Item = AppRole> {
        let plain = value.strip_prefix(ROLE_PREFIX).and_then(|role| role.parse().ok());
        let mapped = self.mapped.iter().filter(move |mapped| mapped.value == value).map(|mapped| mapped.role);
        plain.into_iter().chain(mapped)
    }
}

/// Returns a claim by its name or, if there is none, by its path, such as `realm_access.roles`.
fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    claim(claims.get(first)?.as_object()?, rest)
}

/// Returns the texts of a claim: of a list, or the only one.
fn texts(claim: Option<&Value>) -> Vec<&str> {
    match claim {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const APP: &str = "app_0000000000001";

    fn roles_of(claims: Value, roles_claim: &str) -> Result<String, &'static str> {
        let mut all = json!({"iss": "i", "sub": "248289", "aud": "a", "exp": 1, "iat": 0, "name": "Ada"});
        all.as_object_mut().expect("an object").extend(claims.as_object().expect("an object").clone());
        let claims: Claims = serde_json::from_value(all).expect("claims");
        let mapped = [("staff", "*:viewer".to_owned()), ("cn=push,dc=x", format!("{APP}:sender"))];
        let mapped = mapped
            .map(|(value, role)| MappedRole { value: value.to_owned(), role: role.parse().expect("a role") });
        let names =
            ClaimNames { name: "name".to_owned(), roles: roles_claim.to_owned(), mapped: mapped.into() };
        let who = names.person(&claims).map_err(|refusal| refusal.code.as_str())?;
        assert_eq!((who.person.subject(), who.person.name()), ("248289", "Ada"));
        let roles: Vec<_> = who.roles.list().map(|role| role.to_string()).collect();
        Ok(roles.join(" "))
    }

    #[test]
    fn values_stand_for_roles_as_the_settings_say_or_by_themselves() {
        let found = roles_of(json!({"roles": ["staff", "cn=push,dc=x", "else", 7]}), "roles");
        assert_eq!(found, Ok(format!("*:viewer {APP}:sender")));
        let plain = roles_of(
            json!({"roles": [format!("stentor:{APP}:admin"), "stentor:*:root", "*:admin"]}),
            "roles",
        );
        assert_eq!(plain, Ok(format!("{APP}:admin")));
        assert_eq!(roles_of(json!({"roles": "staff"}), "roles"), Ok("*:viewer".to_owned()));
    }

    #[test]
    fn a_claim_is_found_by_its_name_and_by_its_path() {
        let by_path = roles_of(json!({"realm_access": {"roles": ["staff"]}}), "realm_access.roles");
        let by_name = roles_of(json!({"https://x.example/roles": ["staff"]}), "https://x.example/roles");
        assert_eq!([by_path, by_name], [Ok("*:viewer".to_owned()), Ok("*:viewer".to_owned())]);
    }

    #[test]
    fn a_person_without_a_role_is_refused() {
        for claims in
            [json!({}), json!({"roles": []}), json!({"roles": {"staff": true}}), json!({"roles": ["admin"]})]
        {
            assert_eq!(roles_of(claims, "roles"), Err("no_role"));
        }
    }
}
