//! The servers of a stage beside its first one, over the same database.

use crate::child_process::ResourceUsage;
use crate::server::{Server, data_dir, share_secrets};
use std::ffi::OsString;
use std::path::Path;

/// The metric of attempts at push services, by provider and class.
const ATTEMPTS: &str = "stentor_delivery_attempts_total";

/// The usage of one server during a campaign, and its share of the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeFigures {
    /// Seconds of processor time.
    pub cpu_seconds: f64,
    /// The most memory that was resident.
    pub peak_rss_bytes: u64,
    /// Requests at push services; `None` where it was killed, and counts from its last start on.
    pub attempts: Option<u64>,
}

/// Starts `count` - 1 servers beside one that has started in this directory, each in a directory of its own below.
pub async fn start_beside(
    directory: &Path,
    count: u32,
    settings: Option<&String>,
    environment: &[(&'static str, OsString)],
) -> anyhow::Result<Vec<Server>> {
    let mut servers = Vec::new();
    for number in 2..=count {
        let own = directory.join(format!("node-{number}"));
        share_secrets(&data_dir(directory), &data_dir(&own))?;
        servers.push(Server::start_with(&own, settings.cloned(), environment.to_vec()).await?);
    }
    Ok(servers)
}

/// Adds up the usage of servers.
pub fn together(used: impl Iterator<Item = ResourceUsage>) -> ResourceUsage {
    used.reduce(ResourceUsage::with).unwrap_or_default()
}

/// Reads from a server's metrics its number of requests at push services since its start.
pub async fn attempts(server: &Server) -> anyhow::Result<u64> {
    Ok(sum(&server.client()?.text("/metrics").await?, ATTEMPTS))
}

/// Adds up a counter over all its labels.
fn sum(metrics: &str, name: &str) -> u64 {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let value = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse::<f64>().ok());
    metrics.lines().filter(of_name).filter_map(value).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_added_up_over_its_labels_and_no_other_counter_counts() {
        let metrics =
            "# HELP a_total x\na_total{of=\"b c\"} 3\na_total{of=\"d\"} 4\na_total_more 9\na_total 1\n";
        assert_eq!((sum(metrics, "a_total"), sum(metrics, "b_total")), (8, 0));
    }
}
