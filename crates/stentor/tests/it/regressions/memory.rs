//! Memory: it does not grow with the waiting messages, nor with the callers.

use super::caller::{set_policy, shop, to_token, until};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

#[test]
fn r10_at_the_limit_of_the_queue_memory_stays_flat_however_many_ask() {
    const ROOM: u64 = 100;
    let directory = TempDir::new().unwrap();
    let settings = format!("[pipeline]\nmax_queued_chunks = {ROOM}\n");
    let (server, emulator, caller) = shop(directory.path(), &settings);
    set_policy(&emulator, json!({"stall": {"all": true}}));
    let (mut accepted, mut refused) = (0_u64, 0_u64);
    let mut flood = |refusals: u64| {
        let until = refused + refusals;
        caller.flood(&server, 64, &to_token("a-token"), |answer| {
            let (status, said) = answer.expect("an answer, whatever it says");
            match status {
                StatusCode::ACCEPTED => accepted += 1,
                _ => {
                    assert_eq!((status.as_u16(), &said["code"]), (503, &json!("queue_full")), "{said}");
                    refused += 1;
                }
            }
            refused < until
        });
        server.process.rss_bytes()
    };
    let full = flood(2_000);
    let later = flood(8_000);
    assert!((ROOM..=3 * ROOM).contains(&accepted), "{accepted} kept with room for {ROOM}");
    assert!(later <= full + 8 * MIB, "{} MiB, and {} MiB after 8000 refusals more", full / MIB, later / MIB);
}

#[test]
fn r15_a_backlog_behind_a_slow_push_service_costs_no_memory_and_its_age_is_told() {
    const DEVICES: usize = 5_000;
    const CAMPAIGNS: usize = 30;
    let directory = TempDir::new().unwrap();
    let settings = "[pipeline]\nmax_unsettled_deliveries = 1_000\nchunk_max_devices = 500\n";
    let (server, emulator, caller) = shop(directory.path(), settings);
    caller.import(&server, (0..DEVICES).map(|number| format!("token-{number}")));
    let everyone = json!({"target": "everyone", "data": {"k": "v"}});
    // Everything has been done once: caches are filled, connections are open.
    caller.call(&server, Method::POST, "/v1/messages", Some(&everyone));
    until("the first campaign", || (caller.campaigns(&server)[0]["state"] == "finished").then_some(()));
    let before = server.process.rss_bytes();

    set_policy(&emulator, json!({"stall": {"all": true}}));
    let began = Instant::now();
    let send = || caller.call(&server, Method::POST, "/v1/messages", Some(&everyone));
    let campaigns: Vec<_> = (0..CAMPAIGNS).map(|_| send()["campaign"].as_str().unwrap().to_owned()).collect();
    let sent: Vec<_> = campaigns.iter().map(|id| json!({"id": id})).collect();
    until("all of it waits", || {
        let totals = caller.ledgers(&server, &sent).into_iter().map(|books| books["totals"].clone());
        let open = |totals: Value| {
            ["queued", "sending"].iter().filter_map(|state| totals[state].as_u64()).sum::<u64>()
        };
        (totals.map(open).sum::<u64>() == (CAMPAIGNS * DEVICES) as u64).then_some(())
    });
    let depth = || caller.metric(&server, "stentor_queue_depth{");
    let chunks = depth();
    let expanded = Instant::now();
    let behind = server.process.rss_bytes();
    assert!(behind <= before + 24 * MIB, "{} MiB before, {} MiB behind", before / MIB, behind / MIB);

    // The oldest has waited since one of the campaigns was sent; a snapshot of the queue is a second old at most.
    let old = |age: f64| {
        let (least, most) = (expanded.elapsed().as_secs_f64() - 1.5, began.elapsed().as_secs_f64() + 0.5);
        assert!((least..=most).contains(&age), "{age} s, expected {least} to {most}");
    };
    let age = || caller.metric(&server, "stentor_queue_oldest_age_seconds ");
    old(age());
    while expanded.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(100));
    }
    old(age());
    assert!(server.process.rss_bytes() <= behind + 8 * MIB, "it grows while nothing moves");

    // Sending a tenth takes a tenth of the time and shows the same. The responses are late enough for several snapshots of the queue in
    // that time.
    for campaign in &campaigns[CAMPAIGNS / 10..] {
        caller.call(&server, Method::POST, &format!("/v1/campaigns/{campaign}/cancel"), None);
    }
    set_policy(&emulator, json!({"latency": {"kind": "fixed", "ms": 400}}));
    let (mut peak, mut ages) = (0, 0);
    until("the backlog is gone", || {
        peak = peak.max(server.process.rss_bytes());
        let left = depth();
        // Some of it is sent and some still waits; the canceled part is behind it.
        if (0.92 * chunks..=0.98 * chunks).contains(&left) {
            old(age());
            ages += 1;
        }
        (left < 1.0).then_some(())
    });
    assert!(ages > 0, "it was never seen half gone");
    assert!(age() < 2.0, "{} s old, and nothing waits", age());
    assert!(peak <= before + 32 * MIB, "{} MiB before, {} MiB at most", before / MIB, peak / MIB);
}
