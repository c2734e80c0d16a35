//! The doctor's checks; each returns one finding.

mod files;
mod postgres;
mod sealing;
mod transport;

use crate::client::{ApiClient, segment};
use crate::commands::credential;
use crate::connection::ConnectionArgs;
use crate::output::{cell, thousands};
use crate::process::FEW_FILES;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stentor_node::{Depth, StorePlace, store_place};

pub(super) use transport::look as transport;

/// The earliest plausible time of the clock, in seconds (2026-11-01).
const EARLIEST_S: u64 = 1_793_491_200;
/// Free space in which an import and its write-ahead log can grow until an operator reacts.
const LITTLE_DISK_BYTES: u64 = 1 << 30;
/// A push service that throttles without stating a delay is paused for a minute; five minutes exceed that.
const OLD_BACKLOG_S: f64 = 300.0;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingHealth {
    /// In order.
    Good,
    /// Works, but needs attention.
    Doubtful,
    /// Does not work.
    Broken,
}

impl FindingHealth {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "warning",
            Self::Broken => "BROKEN",
        }
    }
}

/// The result of one check, with advice.
pub(super) struct ServerFinding {
    pub(super) subject: &'static str,
    pub(super) health: FindingHealth,
    pub(super) detail: String,
    pub(super) advice: Option<String>,
}

impl ServerFinding {
    fn good(subject: &'static str, detail: impl Into<String>) -> Self {
        Self { subject, health: FindingHealth::Good, detail: detail.into(), advice: None }
    }

    fn bad(
        subject: &'static str,
        health: FindingHealth,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { subject, health, detail: detail.into(), advice: Some(advice.into()) }
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "what": self.subject,
            "health": self.health.word(),
            "found": self.detail,
            "advice": self.advice,
        })
    }
}

/// Runs every check.
pub(super) async fn all(
    connection: &ConnectionArgs,
    config: Option<&Path>,
    depth: Depth,
) -> Vec<ServerFinding> {
    let mut findings = vec![clock(), file_limit(), disk(&connection.data_dir)];
    findings.push(sealing::look(&connection.data_dir, config));
    let place = crate::commands::config::load(config).ok().and_then(|config| store_place(&config).ok());
    let is_elsewhere = matches!(place, Some(StorePlace::Postgres(_)));
    findings.extend(files::look(connection.data_dir.clone(), depth, is_elsewhere).await);
    if let Some(place) = place {
        findings.extend(postgres::look(place).await);
    }
    match connection.client() {
        Ok(client) => findings.extend(server(&client).await),
        Err(error) => {
            let advice = "give a key, so that the running server is checked as well";
            findings.push(ServerFinding::bad(
                "server",
                FindingHealth::Doubtful,
                format!("not checked: {error:#}"),
                advice,
            ));
        }
    }
    findings
}

fn clock() -> ServerFinding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    if now < EARLIEST_S {
        let advice =
            "set the clock (timedatectl set-ntp true): push services refuse tokens from the wrong time";
        return ServerFinding::bad("clock", FindingHealth::Broken, "is in the past", advice);
    }
    ServerFinding::good("clock", "shows a plausible time")
}

fn file_limit() -> ServerFinding {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let detail = match hard {
        u64::MAX => "without limit".to_owned(),
        limit => format!("{} may be open", thousands(limit)),
    };
    if hard < FEW_FILES {
        let advice = "raise it: LimitNOFILE=65536 in a systemd unit, or ulimit -Hn 65536";
        return ServerFinding::bad("file limit", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("file limit", detail)
}

fn disk(data_dir: &Path) -> ServerFinding {
    let Ok(stat) = rustix::fs::statvfs(data_dir) else {
        let detail = format!("{} cannot be examined", data_dir.display());
        return ServerFinding::bad(
            "free disk",
            FindingHealth::Doubtful,
            detail,
            "point --data-dir at the server's data",
        );
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let detail = format!("{} MiB free", thousands(free >> 20));
    if free < LITTLE_DISK_BYTES {
        let advice = "make room: without it the server answers 503 rather than lose anything";
        return ServerFinding::bad("free disk", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("free disk", detail)
}

async fn server(client: &ApiClient) -> Vec<ServerFinding> {
    match client.probe("/readyz").await {
        Err(error) => {
            let detail = format!("{error:#}");
            vec![ServerFinding::bad("server", FindingHealth::Broken, detail, "start it with `stentor serve`")]
        }
        Ok((status, ready)) => {
            let mut findings = vec![readiness(status.is_success(), &ready), queue(&ready)];
            findings.extend(lanes(client).await);
            findings.extend(damage(client).await);
            findings.extend(credentials(client).await);
            findings
        }
    }
}

fn readiness(ready: bool, said: &Value) -> ServerFinding {
    if ready {
        return ServerFinding::good("server", "is ready: store and queue answer, the pipeline moves");
    }
    ServerFinding::bad(
        "server",
        FindingHealth::Broken,
        format!("is not ready: {said}"),
        "read its log: it names the cause",
    )
}

fn queue(ready: &Value) -> ServerFinding {
    let oldest_s = ready["oldest_ready_seconds"].as_f64().unwrap_or(0.0);
    let detail = format!("the oldest work waits for {oldest_s:.0} s");
    if oldest_s > OLD_BACKLOG_S {
        let advice = "see `stentor campaign list` for running campaigns, and the lanes below for parked ones";
        return ServerFinding::bad("queue", FindingHealth::Doubtful, detail, advice);
    }
    ServerFinding::good("queue", detail)
}

/// Queries the number of chunks given up as unreadable or unwritable, and of unreadable rows; an older server does not report them.
async fn damage(client: &ApiClient) -> Option<ServerFinding> {
    let status = client.get("/v1/status").await.ok()?;
    Some(damaged(status["damaged_chunks"].as_u64()?, status["damaged_rows"].as_u64().unwrap_or(0)))
}

fn damaged(chunks: u64, rows: u64) -> ServerFinding {
    let of_chunks = format!("{} damaged chunks were set aside", thousands(chunks));
    let of_rows = format!("{} damaged rows were left out of lists", thousands(rows));
    let detail = match (chunks, rows) {
        (0, 0) => return ServerFinding::good("kept work", "no chunk is damaged"),
        (_, 0) => of_chunks,
        (0, _) => of_rows,
        _ => format!("{of_chunks}, and {of_rows}"),
    };
    ServerFinding::bad(
        "kept work",
        FindingHealth::Broken,
        detail,
        "see the reason `damaged` in the campaigns' books and the numbers of chunks and rows in the log; check the disk, \
         and restore the last backup if others are damaged as well",
    )
}

async fn lanes(client: &ApiClient) -> Option<ServerFinding> {
    let status = client.get("/v1/status").await.ok()?;
    let providers = status["providers"].as_array().cloned().unwrap_or_default();
    let parked: Vec<String> = providers
        .iter()
        .flat_map(|provider| {
            let lanes = provider["parked"].as_array().cloned().unwrap_or_default();
            let name = cell(&provider["provider"]);
            lanes.into_iter().map(move |lane| {
                format!(
                    "{name} of {}: {} {}",
                    cell(&lane["app"]),
                    cell(&lane["reason"]),
                    cell(&lane["detail"])
                )
            })
        })
        .collect();
    if parked.is_empty() {
        return Some(ServerFinding::good("lanes", "none is parked"));
    }
    let advice =
        "correct the cause that each lane names (usually a credential); the server then retries by itself";
    Some(ServerFinding::bad("lanes", FindingHealth::Doubtful, parked.join("; "), advice))
}

async fn credentials(client: &ApiClient) -> Vec<ServerFinding> {
    let apps = match client.get("/v1/apps").await {
        Ok(apps) => apps["apps"].as_array().cloned().unwrap_or_default(),
        Err(_) => client.app().map(|app| vec![json!({"id": app})]).unwrap_or_default(),
    };
    let mut findings = Vec::new();
    for app in apps {
        findings.push(credentials_of(client, &cell(&app["id"])).await);
    }
    findings
}

async fn credentials_of(client: &ApiClient, app: &str) -> ServerFinding {
    let list: Vec<Value> = match client.get(&format!("/v1/apps/{}/credentials", segment(app))).await {
        Ok(list) => list["credentials"].as_array().cloned().unwrap_or_default(),
        Err(error) => {
            let advice = "use the root key, or a key with the scope admin";
            return ServerFinding::bad(
                "credentials",
                FindingHealth::Doubtful,
                format!("{app}: {error:#}"),
                advice,
            );
        }
    };
    let failed = tried(client, app, &list).await;
    if failed.is_empty() { credentials_found(app, &list) } else { not_working(app, &failed) }
}

/// Tests the credentials of an app on the server; returns those that fail, with host and cause. An older server does not support it.
async fn tried(client: &ApiClient, app: &str, list: &[Value]) -> Vec<String> {
    let mut failed = Vec::new();
    // A refused address is reported elsewhere, with the setting that allows it.
    for one in list.iter().filter(|one| one["reason"] != "address_refused") {
        let provider = cell(&one["provider"]);
        if let Ok(tried) = credential::check(client, app, &provider).await
            && tried["works"] == false
        {
            failed.push(format!("{provider}: {}", cell(&tried["cause"])));
        }
    }
    failed
}

/// Returns the finding for credentials that do not work although nothing has been refused yet.
fn not_working(app: &str, failed: &[String]) -> ServerFinding {
    let advice = "correct the cause that each names: the credential's endpoint or `ca_pem`, the route to the host, or the key itself";
    ServerFinding::bad("credentials", FindingHealth::Broken, format!("{app}: {}", failed.join("; ")), advice)
}

/// Returns the finding about an app's credentials.
fn credentials_found(app: &str, list: &[Value]) -> ServerFinding {
    let descriptions: Vec<String> = list.iter().map(credential_text).collect();
    let is_parked = |one: &Value| one["state"] == "parked";
    let parked = list.iter().any(is_parked);
    if list.iter().any(|one| is_parked(one) && one["reason"] == "address_refused") {
        let detail = format!("{app}: {}", descriptions.join(", "));
        let advice = "the server may not connect to its endpoint: allow the network with outbound.allowed_networks and \
                      start the server again, or set a credential with another endpoint";
        return ServerFinding::bad("credentials", FindingHealth::Broken, detail, advice);
    }
    match (list.is_empty(), parked) {
        (true, _) => {
            let advice = "set one with `stentor app credential set`; until then its messages wait";
            ServerFinding::bad("credentials", FindingHealth::Doubtful, format!("{app} has none"), advice)
        }
        (false, true) => {
            let advice = "the push service refuses it: set a good one with `stentor app credential set`";
            ServerFinding::bad(
                "credentials",
                FindingHealth::Broken,
                format!("{app}: {}", descriptions.join(", ")),
                advice,
            )
        }
        (false, false) => ServerFinding::good("credentials", format!("{app}: {}", descriptions.join(", "))),
    }
}

fn credential_text(credential: &Value) -> String {
    let parts = ["reason", "detail"].map(|name| credential[name].as_str());
    let reason = match parts {
        [Some(reason), Some(detail)] => Some(format!(" ({reason}: {detail})")),
        [reason, _] => reason.map(|reason| format!(" ({reason})")),
    };
    let (provider, state) = (cell(&credential["provider"]), cell(&credential["state"]));
    format!("{provider} {state}{}", reason.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_chunks_are_found_and_none_is_in_order() {
        assert_eq!(damaged(0, 0).health, FindingHealth::Good);
        let found = damaged(1_234, 0);
        assert_eq!(found.health, FindingHealth::Broken);
        assert!(found.detail.contains("1,234") && found.advice.is_some(), "{}", found.detail);
        assert!(!found.detail.contains("rows"), "{}", found.detail);
    }

    #[test]
    fn damaged_rows_are_found_with_chunks_and_without() {
        let found = damaged(0, 5_678);
        assert_eq!(found.health, FindingHealth::Broken);
        assert_eq!(found.detail, "5,678 damaged rows were left out of lists");
        let both = damaged(1_234, 5_678).detail;
        assert!(both.contains("1,234") && both.contains("5,678"), "{both}");
    }
}
