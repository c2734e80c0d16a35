//! Parsing of credentials from JSON; neither errors nor logs ever contain the secret.

use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value};
use stentor_core::error::Invalid;
use stentor_core::ports::provider::CredentialError;
use stentor_http2::{Endpoint, Roots};

/// The problem of a URL with credentials in it.
const NO_USER: &str = "must not hold a user or a password";

/// Reader of a credential's fields.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: &'static str,
}

/// Parses the JSON of a credential, which must be an object.
pub(crate) fn parse(secret: &str) -> Result<Map<String, Value>, CredentialError> {
    match serde_json::from_str(secret) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(invalid("credential", "must be a JSON object")),
        // The parser's own message may quote the input.
        Err(cause) => Err(invalid(
            "credential",
            &format!("is not JSON (line {}, column {})", cause.line(), cause.column()),
        )),
    }
}

pub(crate) fn invalid(field: &str, problem: &str) -> CredentialError {
    CredentialError::Invalid(Invalid::new(field, problem))
}

pub(crate) fn unusable(field: &str, problem: &str) -> CredentialError {
    CredentialError::Unusable(Invalid::new(field, problem))
}

impl<'a> Fields<'a> {
    pub(crate) fn new(map: &'a Map<String, Value>, path: &'static str) -> Self {
        Self { map, path }
    }

    /// Fails on unknown names.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), CredentialError> {
        let unknown = self.map.keys().find(|key| !known.contains(&key.as_str()));
        unknown.map_or(Ok(()), |key| {
            Err(self.invalid(key, &format!("unknown field; known are {}", known.join(", "))))
        })
    }

    /// Returns a required, non-empty text.
    pub(crate) fn text(&self, name: &str) -> Result<&'a str, CredentialError> {
        self.optional(name)?.ok_or_else(|| self.invalid(name, "is missing"))
    }

    /// Returns an optional text; fails if it is empty or of another type.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&'a str>, CredentialError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(Value::String(_)) => Err(self.invalid(name, "must not be empty")),
            Some(_) => Err(self.invalid(name, "must be a string")),
        }
    }

    pub(crate) fn secret(&self, name: &str) -> Result<SecretString, CredentialError> {
        self.text(name).map(SecretString::from)
    }

    pub(crate) fn invalid(&self, name: &str, problem: &str) -> CredentialError {
        CredentialError::Invalid(Invalid::new(self.path_of(name), problem))
    }

    pub(crate) fn unusable(&self, name: &str, problem: &str) -> CredentialError {
        unusable(&self.path_of(name), problem)
    }

    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    /// Reads `endpoint`, `server_name` and `ca_pem`, which point an adapter at another server.
    pub(crate) fn endpoint(&self, usual: &str) -> Result<Endpoint, CredentialError> {
        let url = self.optional("endpoint")?.unwrap_or(usual);
        let mut endpoint = endpoint_of(url).map_err(|problem| self.invalid("endpoint", problem))?;
        endpoint.server_name = self.optional("server_name")?.map(ToOwned::to_owned);
        if endpoint.server_name.is_some() && !endpoint.has_valid_name() {
            return Err(self.invalid("server_name", "must be a name of a host"));
        }
        endpoint.roots = self.roots()?;
        Ok(endpoint)
    }

    /// Reads `ca_pem`, the certificates to trust in place of the system's.
    pub(crate) fn roots(&self) -> Result<Roots, CredentialError> {
        let Some(pem) = self.optional("ca_pem")? else { return Ok(Roots::Native) };
        let roots = Roots::Pem(pem.to_owned().into());
        roots.check().map_err(|_| self.unusable("ca_pem", "must be certificates in PEM"))?;
        Ok(roots)
    }
}

/// Reads a scheme, a host and a port; the error never shows the URL.
fn endpoint_of(url: &str) -> Result<Endpoint, &'static str> {
    let wrong = "must be a URL such as https://host:443";
    let uri: http::Uri = url.parse().map_err(|_| wrong)?;
    let cleartext = match uri.scheme_str() {
        Some("https") => false,
        Some("http") => true,
        _ => return Err(wrong),
    };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(NO_USER);
    }
    let bare = matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("/"));
    let host = uri.host().ok_or(wrong)?.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(if cleartext { 80 } else { 443 });
    let mut endpoint = Endpoint::new(host, port);
    endpoint.cleartext = cleartext;
    if bare { Ok(endpoint) } else { Err(wrong) }
}

/// Checks that a URL can be a token endpoint; the error never shows the URL.
pub(crate) fn check_token_url(text: &str) -> Result<(), &'static str> {
    let wrong = "must be a URL such as https://host/token";
    let url = Url::parse(text).map_err(|_| wrong)?;
    if !matches!(url.scheme(), "https" | "http") || !url.has_host() {
        return Err(wrong);
    }
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user { Err(NO_USER) } else { Ok(()) }
}

/// Returns the host of a URL; empty if it has none.
pub(crate) fn host_of(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_scheme_a_host_and_a_port() {
        let endpoint = endpoint_of("https://[::1]:8443/").expect("a URL");
        assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.cleartext), ("::1", 8443, false));
        assert_eq!(endpoint_of("http://emulator").expect("a URL").port, 80);
        for wrong in ["", "host:1", "ftp://host", "https://host/path", "https://"] {
            assert!(endpoint_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn r17_an_endpoint_with_a_user_is_refused_and_not_shown() {
        for wrong in ["https://me:hush@host", "https://me@host:1/", "http://:hush@127.0.0.1", "https://@host"]
        {
            assert_eq!(endpoint_of(wrong).err(), Some(NO_USER), "{wrong}");
        }
    }

    #[test]
    fn roots_without_a_certificate_and_a_name_of_no_host_are_refused_by_their_fields() {
        let refused = |name: &str, value: &str| {
            let map = parse(&serde_json::json!({ name: value }).to_string()).expect("an object");
            Fields::new(&map, "").endpoint("https://push.example").expect_err("refused")
        };
        let roots = refused("ca_pem", "no certificate");
        assert!(matches!(&roots, CredentialError::Unusable(one) if one.field == "ca_pem"), "{roots:?}");
        for name in ["0", "a b", "me@host", "-"] {
            let refused = refused("server_name", name);
            assert!(
                matches!(&refused, CredentialError::Invalid(one) if one.field == "server_name"),
                "{name}"
            );
        }
    }

    #[test]
    fn broken_json_is_refused_without_being_quoted() {
        let refused = parse("{\"private_key\": \"hush").expect_err("refused").into_invalid();
        assert_eq!(refused.field, "credential");
        assert!(!refused.problem.contains("hush"));
    }
}
