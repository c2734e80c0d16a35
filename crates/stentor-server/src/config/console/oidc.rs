//! Settings of the login of persons by OpenID Connect.

use std::path::PathBuf;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use stentor_core::error::Invalid;
use stentor_core::outbound::{Allowance, OutboundPolicy};

use super::super::OutboundConfig;
use super::super::outbound::allowances;
use crate::contract::role::AppRole;

/// Path of the page to which the identity provider sends the browser back.
const CALLBACK_PATH: &str = "/console/callback";
/// Largest difference between the clocks of both sides.
const LEEWAY_MAX_SECONDS: u64 = 600;
/// The scope that makes an OAuth request one of OpenID Connect.
const OPENID_SCOPE: &str = "openid";

/// Settings of the login by OpenID Connect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// The issuer's address; empty for a login by key alone.
    pub issuer: String,
    /// Name of this installation at the issuer.
    pub client_id: String,
    /// Its secret; empty for a public client, and for the secret of the file.
    pub client_secret: SecretString,
    /// File with the secret; empty for none.
    pub client_secret_file: PathBuf,
    /// Address of this server's callback, as browsers see it.
    pub redirect_url: String,
    /// Scopes that are requested.
    pub scopes: Vec<String>,
    /// The claim with the person's name.
    pub name_claim: String,
    /// The claim with the values that stand for roles.
    pub roles_claim: String,
    /// Roles by values of that claim: `value=app:role`.
    pub roles: Vec<String>,
    /// Networks beside the public internet in which the issuer may be.
    #[serde(deserialize_with = "allowances")]
    pub issuer_networks: Vec<Allowance>,
    /// Permitted difference between the clocks of both sides.
    pub clock_leeway_seconds: u64,
}

/// A value of the roles claim and the role that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedRole {
    /// The value.
    pub value: String,
    /// The role.
    pub role: AppRole,
}

impl OidcConfig {
    /// Returns true if persons can log in.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        !self.issuer.is_empty()
    }

    /// Returns a number that changes with the settings that decide about roles; `None` if persons cannot log in. Sessions of persons end
    /// when it changes.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let parts = [&self.issuer, &self.client_id, &self.roles_claim].into_iter().chain(&self.roles);
        let text: Vec<String> = parts.map(|part| format!("{}:{part}", part.len())).collect();
        let hash = blake3::hash(text.concat().as_bytes());
        let number = hash.as_bytes().first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        number.filter(|_| self.is_enabled())
    }

    /// Returns the policy for the addresses of the issuer. It includes the networks that are allowed for credentials.
    #[must_use]
    pub fn policy(&self, outbound: &OutboundConfig) -> OutboundPolicy {
        let both = self.issuer_networks.iter().chain(&outbound.allowed_networks);
        OutboundPolicy::new(both.copied().collect())
    }

    /// Returns the roles by values of the claim.
    pub fn mapped_roles(&self) -> Result<Vec<MappedRole>, Invalid> {
        self.roles.iter().map(|text| mapped(text)).collect()
    }

    /// Returns the problems found; they do not repeat the secret.
    pub(super) fn problems(&self) -> Vec<String> {
        if !self.is_enabled() {
            return Vec::new();
        }
        let given = |text: &str| if text.is_empty() { Some("must be given") } else { None };
        let has_both =
            !self.client_secret.expose_secret().is_empty() && !self.client_secret_file.as_os_str().is_empty();
        let is_oidc = self.scopes.iter().any(|scope| scope == OPENID_SCOPE);
        let wrong = [
            ("issuer", address_problem(&self.issuer)),
            ("client_id", given(&self.client_id)),
            ("client_secret", has_both.then_some("goes without client_secret_file: give one of them")),
            ("redirect_url", address_problem(&self.redirect_url).or_else(|| self.callback_problem())),
            ("scopes", (!is_oidc).then_some("must have \"openid\"")),
            ("name_claim", given(&self.name_claim)),
            ("roles_claim", given(&self.roles_claim)),
            (
                "clock_leeway_seconds",
                (self.clock_leeway_seconds > LEEWAY_MAX_SECONDS).then_some("must be at most 600"),
            ),
        ];
        let wrong =
            wrong.into_iter().filter_map(|(key, problem)| Some(format!("console.oidc.{key}: {}", problem?)));
        let roles =
            self.mapped_roles().err().map(|invalid| format!("console.oidc.roles: {}", invalid.problem));
        wrong.chain(roles).collect()
    }

    fn callback_problem(&self) -> Option<&'static str> {
        let url = Url::parse(&self.redirect_url).ok()?;
        (url.path() != CALLBACK_PATH || url.query().is_some()).then_some("must end with /console/callback")
    }
}

fn mapped(text: &str) -> Result<MappedRole, Invalid> {
    let (value, role) =
        text.rsplit_once('=').ok_or_else(|| Invalid::new("", format!("{text:?} must be value=app:role")))?;
    Ok(MappedRole { value: value.to_owned(), role: role.parse()? })
}

/// Returns the problem of an address to which secrets go: anybody on the line could read plain HTTP.
fn address_problem(text: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(text) else { return Some("must be an address such as https://id.example.org") };
    let has_more = url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    match url.scheme() {
        _ if has_more => Some("must have no user, no password and no fragment"),
        "https" => None,
        "http" if is_this_machine(&url) => None,
        _ => Some("must begin with https://, or with http:// on this machine"),
    }
}

fn is_this_machine(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}
