//! The address of NATS servers, with the user: `nats://user@host:4222,host2:4222?password_file=…`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, ServerAddr};
use stentor_core::ports::queue::QueueError;
use stentor_core::ports::store::StoreError;

/// The schemes that are understood: with `tls` nothing is said in clear.
const SCHEMES: [&str; 2] = ["nats://", "tls://"];

/// The address of NATS servers; its displayed form contains no password.
#[derive(Clone)]
pub struct NatsAddress {
    servers: Vec<ServerAddr>,
    /// Name and password, or the token that stands alone.
    user: Option<(String, String)>,
    credentials: Option<PathBuf>,
    roots: Option<PathBuf>,
    is_encrypted: bool,
}

impl NatsAddress {
    /// Returns the name under which the servers are shown: without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        let scheme = if self.is_encrypted { "tls" } else { "nats" };
        let servers = self.servers.iter().map(|server| format!("{}:{}", server.host(), server.port()));
        format!("{scheme}://{}", servers.collect::<Vec<_>>().join(","))
    }

    /// Connects within `wait`; from then on a lost connection is reopened.
    pub(super) async fn connect(&self, wait: Duration) -> Result<Client, QueueError> {
        let mut options = ConnectOptions::new().name("stentor").connection_timeout(wait);
        options = options.request_timeout(Some(wait)).require_tls(self.is_encrypted);
        if let Some((user, password)) = self.user.clone() {
            options = if password.is_empty() {
                options.token(user)
            } else {
                options.user_and_password(user, password)
            };
        }
        if let Some(path) = &self.credentials {
            options = options.credentials_file(path).await.map_err(|error| unavailable(&error))?;
        }
        if let Some(path) = &self.roots {
            options = options.add_root_certificates(path.clone());
        }
        options.connect(&self.servers).await.map_err(|error| unavailable(&error))
    }
}

/// Returns that the servers cannot do it now.
pub(super) fn unavailable(why: &impl fmt::Display) -> QueueError {
    QueueError::Unavailable(format!("NATS: {why}"))
}

impl FromStr for NatsAddress {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        let refused = |why: &str| StoreError::Conflict(format!("the address of the queue: {why}"));
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let scheme = SCHEMES.iter().find(|scheme| base.starts_with(**scheme));
        let scheme = scheme.ok_or_else(|| refused("it begins with nats:// or tls://"))?;
        let (mut servers, mut user) = (Vec::new(), None);
        for server in base[scheme.len()..].split(',') {
            let server = server.strip_prefix(scheme).unwrap_or(server);
            // The user is split off, because the client logs the addresses of servers.
            let (who, host) = server.rsplit_once('@').map_or((None, server), |(who, host)| (Some(who), host));
            servers.push(format!("{scheme}{host}").parse().map_err(|_| refused("it is no list of servers"))?);
            user = user.or(who);
        }
        let user = user.map(|who| {
            let (name, password) = who.split_once(':').unwrap_or((who, ""));
            (name.to_owned(), password.to_owned())
        });
        let is_encrypted = *scheme == "tls://";
        let mut address = Self { servers, user, credentials: None, roots: None, is_encrypted };
        for (name, value) in
            query.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| pair.split_once('='))
        {
            address.set(name, Path::new(value))?;
        }
        Ok(address)
    }
}

impl NatsAddress {
    fn set(&mut self, name: &str, path: &Path) -> Result<(), StoreError> {
        let refused = |why: String| StoreError::Conflict(format!("the address of the queue: {why}"));
        match name {
            "credentials_file" => self.credentials = Some(path.to_owned()),
            "sslrootcert" => self.roots = Some(path.to_owned()),
            "password_file" => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| refused(format!("{}: {error}", path.display())))?;
                let user = self.user.as_mut().ok_or_else(|| refused("a password needs a user".to_owned()))?;
                text.lines().next().unwrap_or_default().clone_into(&mut user.1);
            }
            _ => return Err(refused(format!("it has no option {name}"))),
        }
        Ok(())
    }
}

impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsAddress").field(&self.shown()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_servers_and_a_user_and_shows_no_password() {
        let address: NatsAddress = "nats://me:secret@a.example,b.example:4333".parse().expect("fine");
        assert_eq!(format!("{address:?}"), "NatsAddress(\"nats://a.example:4222,b.example:4333\")");
        assert_eq!(address.user, Some(("me".to_owned(), "secret".to_owned())));
        assert!(!format!("{:?}", address.servers).contains("secret"), "the client logs these");
        let token: NatsAddress = "tls://token@a.example?sslrootcert=/ca.pem".parse().expect("fine");
        assert!(token.is_encrypted && token.roots.is_some());
        for wrong in ["http://a", "nats://a?password_file=/nowhere/at/all", "nats://a?color=red"] {
            assert!(wrong.parse::<NatsAddress>().is_err(), "{wrong}");
        }
    }
}
