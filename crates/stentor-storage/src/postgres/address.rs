//! The address of a database, as a URL of the form `postgres://user@host/database?sslmode=…`, with user and TLS options.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use stentor_core::ports::store::StoreError;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};

use super::session::DatabaseSession;
use super::tls::{self, Verification};
use crate::sql::Done;

/// TCP keepalive, for a machine that vanishes silently: the first probe after this idle time, further probes at the interval, and the end
/// of the connection after this number of probes. The timeout for unacknowledged data is equal to their total.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVES_COUNT: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_secs(11);

/// The settings of each session.
///
/// A commit is answered once it is on disk, whatever the server's default is. Every statement of this crate has an index, mostly in the
/// order of which it reads. A plan made while a table is empty and has no statistics would scan the whole table, or sort all rows within a
/// bound for the few thousand rows requested, in any number of parallel processes, for as long as the plan is cached. JIT compilation does
/// not pay off for such short statements.
///
/// A transaction may hold locks that all others wait for. By default, the server keeps the locks of a machine that vanished for two hours,
/// and those of a stopped process for ever. Therefore it probes silent connections as the client does, and ends an idle transaction before
/// the callers of other transactions give up.
///
/// The default time limits of a database are meant for other clients: each statement has its own here. The rules of the ledger are written
/// for transactions that see the commits of others (read committed), and lock the rows that they decide about.
const SESSION: &str =
    "SET synchronous_commit = on; SET client_min_messages = warning; SET enable_seqscan = off;
    SET default_transaction_isolation = 'read committed'; SET lock_timeout = 0; SET idle_session_timeout = 0;
    SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET jit = off;
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '11s'; SET idle_in_transaction_session_timeout = '5s'";

/// The time limits of a statement. The server cancels it first, so that the connection stays usable; if the server is silent, the client
/// closes the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatementLimits {
    server: Duration,
    pub(super) client: Duration,
}

impl StatementLimits {
    /// Returns the statement that sets the limit at the server.
    pub(super) fn setting(self) -> String {
        format!("SET statement_timeout = {}", self.server.as_millis())
    }

    /// Creates limits from the limit of the server; the client waits a third longer.
    pub(super) fn of_ms(statement_max_ms: u32) -> Self {
        let server = Duration::from_millis(statement_max_ms.max(1).into());
        Self { server, client: server + server / 3 }
    }
}

/// The address of a database; its displayed form contains no password.
#[derive(Clone)]
pub struct PostgresAddress {
    config: Config,
    verification: Option<Verification>,
    roots: Option<PathBuf>,
}

/// The options of the query string that the driver does not know.
#[derive(Default)]
struct AddressOptions {
    mode: Option<String>,
    roots: Option<PathBuf>,
    password: Option<PathBuf>,
}

impl PostgresAddress {
    /// Returns the name under which the database is shown: without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }

    /// Returns the options by which PostgreSQL's own programs connect to it, without the password.
    #[must_use]
    pub fn client_options(&self) -> String {
        let host = self.config.get_hosts().first().map(|host| match host {
            Host::Tcp(name) => format!("--host={name}"),
            Host::Unix(path) => format!("--host={}", path.display()),
        });
        let port = self.config.get_ports().first().map(|port| format!("--port={port}"));
        let user = self.config.get_user().map(|user| format!("--username={user}"));
        let database = self.config.get_dbname().map(|name| format!("--dbname={name}"));
        [host, port, user, database].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Reads the password from the first line of a file.
    pub fn set_password_file(&mut self, path: &Path) -> Result<(), StoreError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| {
            StoreError::Conflict(format!("the file of the password, {}: {error}", path.display()))
        })?;
        self.config.password(text.lines().next().unwrap_or_default());
        Ok(())
    }

    /// Connects within `wait`; the session waits for later answers as `limits` say.
    pub(super) fn connect(&self, wait: Duration, limits: StatementLimits) -> Done<DatabaseSession> {
        let mut config = self.config.clone();
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        // One after the other is tried: the last one must have its turn before the caller's patience ends.
        config.application_name("stentor").connect_timeout(wait / hosts);
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVES_COUNT).tcp_user_timeout(SILENCE_MAX);
        let first = format!("{SESSION}; {}", limits.setting());
        let waits = (wait, limits.client);
        match self.verification {
            None => DatabaseSession::open(&config, NoTls, &first, waits),
            Some(verification) => {
                let tls = tls::connector(verification, self.roots.as_deref())?;
                DatabaseSession::open(&config, tls, &first, waits)
            }
        }
    }
}

impl FromStr for PostgresAddress {
    type Err = StoreError;

    fn from_str(url: &str) -> Result<Self, StoreError> {
        let refused = |why: &str| StoreError::Conflict(format!("the address of the database: {why}"));
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(refused("it begins with postgres://"));
        }
        let (url, options) = AddressOptions::split(url);
        let mut config: Config = url.parse().map_err(|_| refused("it is no URL of PostgreSQL"))?;
        let (mode, verification) = match options.mode.as_deref() {
            Some("disable") => (SslMode::Disable, None),
            None | Some("prefer") => (SslMode::Prefer, Some(Verification::Nothing)),
            Some("require") => (SslMode::Require, Some(Verification::Nothing)),
            Some("verify-full") => (SslMode::Require, Some(Verification::Full)),
            Some(_) => return Err(refused("sslmode is disable, prefer, require or verify-full")),
        };
        config.ssl_mode(mode);
        let mut address = Self { config, verification, roots: options.roots };
        if let Some(path) = options.password {
            address.set_password_file(&path)?;
        }
        Ok(address)
    }
}

impl AddressOptions {
    /// Takes its own options out of a URL.
    fn split(url: &str) -> (String, Self) {
        let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), Self::default()) };
        let (mut options, mut rest) = (Self::default(), Vec::new());
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => options.mode = Some(mode.to_owned()),
                Some(("sslrootcert", path)) => options.roots = Some(PathBuf::from(path)),
                Some(("password_file", path)) => options.password = Some(PathBuf::from(path)),
                _ => rest.push(pair),
            }
        }
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        (format!("{base}{query}"), options)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.shown()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_the_server_is_checked_and_shows_no_password() {
        let address = |query: &str| format!("postgres://me:secret@db.example/push{query}").parse();
        let plain: PostgresAddress = address("?sslmode=disable").expect("fine");
        assert_eq!(plain.verification, None);
        assert_eq!(format!("{plain:?}"), "PostgresAddress(\"postgres://db.example/push\")");
        let usual: PostgresAddress = address("").expect("fine");
        assert_eq!(usual.verification, Some(Verification::Nothing));
        let full: PostgresAddress =
            address("?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=3").expect("fine");
        assert_eq!((full.verification, full.roots.is_some()), (Some(Verification::Full), true));
        for wrong in ["?sslmode=verify", "?sslmode=allow", "?password_file=/nowhere/at/all"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        assert!("mysql://db/push".parse::<PostgresAddress>().is_err());
    }
}
