//! Several servers over one database: the first one's companions, which know the same secrets.

use crate::server::{Server, data_dir};
use anyhow::Context;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// After so long without a sign of life a server is taken for dead.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long a server is away, so that the others have taken it for dead and gone on.
pub const AWAY: Duration = Duration::from_secs(8);
/// What a fault takes of the campaign's time, with what follows it.
const SECONDS_PER_FAULT: u64 = 12;
/// The campaign lasts so long at least.
const SECONDS_MIN: u64 = 10;
/// Small, so that each server has its part of a small campaign.
const CHUNK_MAX_DEVICES: u32 = 50;
/// What all servers of an installation must have alike.
const SECRETS: [&str; 3] = ["key.pepper", "root.key", "seal.key"];

/// How many servers there are, and how fast they may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeGroupOptions {
    /// The servers, the first among them.
    pub nodes: u32,
    /// What each credential may send in a minute, through whichever servers.
    pub quota_per_minute: u32,
}

impl NodeGroupOptions {
    /// So many servers, and a pace at which a campaign lasts long enough for so many faults.
    pub fn for_faults(nodes: u32, faults: u32, devices: u64) -> Self {
        let seconds = (u64::from(faults) * SECONDS_PER_FAULT).max(SECONDS_MIN);
        // Half of the devices are those of one credential.
        let per_minute = (devices * 30 / seconds).max(60);
        Self { nodes, quota_per_minute: u32::try_from(per_minute).unwrap_or(u32::MAX) }
    }

    /// Returns what the servers are told.
    pub(crate) fn settings(self) -> String {
        format!(
            "[node]\nsilence_max_ms = {}\n[pipeline]\nchunk_max_devices = {CHUNK_MAX_DEVICES}\nquota_ramp_ms = 0\n",
            SILENCE_MAX.as_millis()
        )
    }

    /// Puts the pace into credentials.
    pub(crate) fn limit(self, credentials: &mut [Value; 2]) {
        credentials.iter_mut().for_each(|credential| credential["quota"] = json!(self.quota_per_minute));
    }
}

/// The servers beside the first.
#[derive(Default)]
pub struct NodeGroup {
    pub(crate) servers: Vec<Server>,
}

impl NodeGroup {
    /// Starts them, each in a directory of its own in that of the first.
    pub(crate) async fn start(
        directory: &Path,
        options: Option<NodeGroupOptions>,
        settings: Option<String>,
        environment: Vec<(&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for place in 2..=options.map_or(1, |options| options.nodes) {
            let own = directory.join(format!("node-{place}"));
            share_secrets(&data_dir(directory), &data_dir(&own))?;
            servers.push(Server::start_with(&own, settings.clone(), environment.clone()).await?);
        }
        Ok(Self { servers })
    }

    /// Fails when one has ended by itself.
    pub(crate) fn check_alive(&mut self) -> anyhow::Result<()> {
        self.servers.iter_mut().try_for_each(Server::check_alive)
    }

    /// Asks all to end.
    pub(crate) fn stop(&mut self) {
        for server in &mut self.servers {
            let _what_the_first_used_is_told = server.stop();
        }
    }
}

/// Copies the secrets of a server that has started for one to come.
pub fn share_secrets(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for secret in SECRETS {
        std::fs::copy(from.join(secret), to.join(secret))
            .with_context(|| format!("{secret} cannot be copied to {}", to.display()))?;
    }
    Ok(())
}
