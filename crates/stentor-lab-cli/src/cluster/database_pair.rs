//! The database of a cluster: a primary, and a standby if there is one. They change places.

use super::database::{DatabaseOptions, DatabaseServer};
use super::network::{ClusterHost, ClusterNetwork};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::failure::CommandFailure;
use stentor_stage::reporter::Reporter;

const SYNC_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Pause before another start of a server that ended by itself.
const PAUSE: Duration = Duration::from_millis(300);
const TRIES_MAX_COUNT: u32 = 20;

/// Both servers.
pub(crate) struct DatabasePair {
    servers: Vec<DatabaseServer>,
    primary: usize,
}

impl DatabasePair {
    /// Starts them in a folder.
    pub(crate) fn start(
        folder: &Path,
        network: &mut ClusterNetwork,
        options: &DatabaseOptions,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for name in ["database-a", "database-b"].iter().take(1 + usize::from(options.has_standby)) {
            let host = network.add_host()?;
            servers.push(DatabaseServer::prepare(&folder.join(name), host, options, reporter)?);
        }
        servers[0].init()?;
        servers[0].start(None)?;
        let mut pair = Self { servers, primary: 0 };
        pair.renew_standby()?;
        Ok(pair)
    }

    /// Returns the URL with both servers, by which a client finds the primary.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.servers.iter().map(DatabaseServer::authority).collect();
        format!("postgres://postgres@{}/postgres?target_session_attrs=read-write", hosts.join(","))
    }

    /// Host of the primary.
    pub(crate) fn primary_host(&self) -> ClusterHost {
        self.servers[self.primary].host.clone()
    }

    /// Host of the standby.
    pub(crate) fn standby_host(&self) -> Option<ClusterHost> {
        self.standby_place().map(|place| self.servers[place].host.clone())
    }

    /// The primary.
    pub(crate) fn primary(&mut self) -> &mut DatabaseServer {
        &mut self.servers[self.primary]
    }

    /// Kills the primary.
    pub(crate) fn kill_primary(&mut self) {
        self.primary().kill();
    }

    /// Kills the standby.
    pub(crate) fn kill_standby(&mut self) {
        if let Some(place) = self.standby_place() {
            self.servers[place].kill();
        }
    }

    /// Starts the servers that do not run, the primary first, with repeated tries: after a full disk it may need more than one.
    pub(crate) async fn start_again(&mut self) -> anyhow::Result<()> {
        let mut tries = 0;
        while !self.primary().is_alive() {
            self.primary().kill();
            tries += 1;
            match self.primary().start(None) {
                Err(error) if tries >= TRIES_MAX_COUNT => return Err(error),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        let Some(place) = self.standby_place() else { return Ok(()) };
        if !self.servers[place].is_alive() {
            let (standby, primary) = self.both(place);
            standby.kill();
            standby.start(Some(primary))?;
        }
        Ok(())
    }

    /// Kills the primary and makes the standby the primary.
    pub(crate) fn promote(&mut self) -> anyhow::Result<()> {
        let Some(place) = self.standby_place() else { return Ok(()) };
        self.kill_primary();
        self.servers[place].promote()?;
        self.primary = place;
        Ok(())
    }

    /// Copies the standby again from the primary, if the pair has a standby.
    pub(crate) fn renew_standby(&mut self) -> anyhow::Result<()> {
        let Some(place) = self.standby_place() else { return Ok(()) };
        let (standby, primary) = self.both(place);
        standby.kill();
        standby.copy_from(primary)?;
        standby.start(Some(primary))
    }

    /// Waits until the standby has all acknowledged commits.
    pub(crate) async fn until_in_sync(&self) -> anyhow::Result<()> {
        if self.standby_place().is_none() {
            return Ok(());
        }
        let begun = Instant::now();
        let sql =
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'";
        while self.servers[self.primary].ask(sql).ok().as_deref() != Some("1") {
            if begun.elapsed() > SYNC_LIMIT {
                return Err(CommandFailure::not_done("the standby does not follow the primary").into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn standby_place(&self) -> Option<usize> {
        (0..self.servers.len()).find(|place| *place != self.primary)
    }

    /// Returns the standby, mutable, and the primary.
    fn both(&mut self, standby: usize) -> (&mut DatabaseServer, &DatabaseServer) {
        let (first, second) = self.servers.split_at_mut(1);
        if standby == 0 { (&mut first[0], &second[0]) } else { (&mut second[0], &first[0]) }
    }
}
