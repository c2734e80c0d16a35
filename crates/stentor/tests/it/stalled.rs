//! Collapse and expiry with a push service that accepts requests and answers none, across a crash.

use crate::messages::{emulator, received, rest, set_credential};
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Short, but longer than a busy machine takes to start sending.
const SHORT_TTL: Duration = Duration::from_secs(5);

#[test]
fn a_stalled_service_and_a_crash_change_nothing_about_collapse_and_expiry() {
    let directory = TempDir::new().unwrap();
    let emulator = emulator(directory.path());
    let control = emulator.ready["control"].as_str().unwrap().to_owned();
    let mut server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    set_credential(&server, &emulator, directory.path());
    let registered = rest("POST", &format!("{control}/device/register"), None, None);
    let token = registered["token"].as_str().unwrap().to_owned();
    let device = server.ok(&["device", "register", "--platform", "android", "--token", &token]);
    let device = device["id"].as_str().unwrap();

    let policy = format!("{control}/policy");
    rest("PUT", &policy, None, Some(json!({"stall": {"all": true}})));
    let send = |more: &[&str]| {
        let sent = server.ok(&[&["message", "send", "--device", device], more].concat());
        sent["campaign"].as_str().unwrap().to_owned()
    };
    let plain = send(&["--body", "plain"]);
    let old = send(&["--body", "old", "--collapse-key", "score"]);
    let short = send(&["--body", "short", "--ttl-seconds", "5"]);
    let too_late = Instant::now() + SHORT_TTL;
    let new = send(&["--body", "new", "--collapse-key", "score"]);
    for campaign in [&plain, &old, &short, &new] {
        wait_for(&server, campaign, |ledger| ledger["totals"]["sending"] == 1);
    }

    server.process.kill();
    rest("PUT", &policy, None, Some(json!({})));
    std::thread::sleep(too_late.saturating_duration_since(Instant::now()));
    let server = Server::start(directory.path());
    let ends = [(&plain, "accepted"), (&old, "collapsed"), (&short, "expired"), (&new, "accepted")];
    for (campaign, state) in ends {
        let ledger = wait_for(&server, campaign, |ledger| !ledger["ended_at"].is_null());
        assert_eq!(ledger["totals"][state], json!(1), "{state}: {ledger}");
        assert_eq!(ledger["duplicate_bound"], json!(1), "{state}: {ledger}");
    }
    assert_eq!(received(&control, &token, 2), BTreeSet::from(["plain".to_owned(), "new".to_owned()]));
}

/// Polls a ledger until a condition holds; it must balance every time.
fn wait_for(server: &Server, campaign: &str, wished: impl Fn(&Value) -> bool) -> Value {
    let started_at = Instant::now();
    loop {
        let ledger = server.ok(&["campaign", "progress", "--once", campaign]);
        assert_eq!(ledger["balanced"], json!(true), "{ledger}");
        if wished(&ledger) {
            return ledger;
        }
        assert!(started_at.elapsed() < PATIENCE, "{ledger}: {}", server.process.log());
    }
}
