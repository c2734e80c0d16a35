//! Kills at critical moments.

use super::caller::{Caller, PATIENCE, counts, set_policy, shop, to_token, until};
use crate::messages::rest;
use crate::process::Process;
use crate::server::Server;
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use tempfile::TempDir;

/// Number of responses after which the server is killed, in each round: few, many, and in between.
const ROUNDS: [usize; 3] = [37, 911, 402];

#[test]
fn r1_what_was_accepted_survives_a_kill_at_any_moment_and_is_sent_once_but_for_what_was_in_flight() {
    let directory = TempDir::new().unwrap();
    let (mut server, emulator, caller) = shop(directory.path(), "");
    let mut accepted_ids = HashSet::new();
    for answers in ROUNDS {
        let mut left = answers;
        caller.flood(&server, 64, &to_token("a-token"), |answer| {
            if let Some((StatusCode::ACCEPTED, said)) = answer {
                accepted_ids.insert(said["campaign"].as_str().unwrap().to_owned());
            }
            left -= 1;
            if left == 0 {
                // While other requests are in flight.
                server.process.signal(Signal::KILL);
            }
            left > 0
        });
        server.process.wait();
        server = Server::start(directory.path());
    }
    let campaigns = until("all campaigns end", || {
        let campaigns = caller.campaigns(&server);
        campaigns.iter().all(|one| one["state"] == "finished").then_some(campaigns)
    });
    let ids: HashSet<String> = campaigns.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert!(
        accepted_ids.len() > 1_000 && accepted_ids.is_subset(&ids),
        "{} of {} are there",
        ids.len(),
        accepted_ids.len()
    );
    let ledgers = caller.ledgers(&server, &campaigns);
    let sum = |field: &str| ledgers.iter().map(|ledger| ledger[field].as_u64().unwrap()).sum::<u64>();
    for ledger in &ledgers {
        assert_eq!(
            (&ledger["balanced"], &ledger["totals"]["accepted"]),
            (&json!(true), &json!(1)),
            "{ledger}"
        );
        let in_flight = ledger["duplicate_bound"].as_u64().unwrap() > 0;
        assert!(
            !in_flight || ledger["ambiguous"] == json!(1),
            "what may have been sent twice is marked: {ledger}"
        );
    }
    let sent = counts(&emulator)["accepted"].as_u64().unwrap();
    let all = campaigns.len() as u64;
    assert!(
        sent >= all && sent - all <= sum("duplicate_bound"),
        "{sent} for {all}: {}",
        sum("duplicate_bound")
    );
}

/// Starts an APNs emulator with a device, and lets an app send there; returns the device's token.
fn apns(directory: &std::path::Path, server: &Server) -> (Process, String) {
    let (ca, listen) = (directory.join("apns-ca"), "127.0.0.1:0");
    let start =
        ["emulate", "apns", "--listen", listen, "--control", listen, "--ca-dir", ca.to_str().unwrap()];
    let emulator = Process::start(&start, &directory.join("apns.log"));
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let file = directory.join("AuthKey_KEY0123456.p8");
    std::fs::write(&file, key.serialize_pem()).unwrap();
    let ca_file = emulator.ready["ca_file"].as_str().unwrap();
    let whose = ["--team-id", "TEAM012345", "--bundle-id", "com.example.app"];
    let set =
        ["app", "credential", "set", "--provider", "apns", "--endpoint", emulator.url(), "--ca", ca_file];
    server.ok(&[&set[..], &whose[..], &[file.to_str().unwrap()][..]].concat());
    let control = emulator.ready["control"].as_str().unwrap();
    let registered = rest("POST", &format!("{control}/device/register"), None, None);
    let token = registered["token"].as_str().unwrap().to_owned();
    (emulator, token)
}

/// Listens as a device; the messages arrive as lines.
fn listen(emulator: &Process, token: &str) -> impl Iterator<Item = Value> {
    let control = emulator.ready["control"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&control).unwrap();
    write!(stream, "GET /device/{token}/messages HTTP/1.1\r\nHost: {control}\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("200"));
    // Around the lines of JSON there are headers and the lengths of chunks.
    lines.filter_map(|line| serde_json::from_str(&line).ok().filter(Value::is_object))
}

#[test]
fn r13_a_kill_between_the_answer_and_the_commit_sends_once_more_under_the_same_id_and_marks_it() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    let created = server.ok(&["app", "create", "shop"]);
    let caller = Caller::new(created["key"]["secret"].as_str().unwrap());
    let (emulator, token) = apns(directory.path(), &server);
    let mut heard = listen(&emulator, &token);
    set_policy(&emulator, json!({"stall": {"all": true, "taken_over": true}}));
    let body =
        json!({"target": {"token": {"platform": "apple", "token": token}}, "notification": {"title": "Hi"}});
    let sent = caller.call(&server, Method::POST, "/v1/messages", Some(&body));
    let path = format!("/v1/campaigns/{}", sent["campaign"].as_str().unwrap());
    let first = heard.next().unwrap();

    // The push service has accepted it. Now no commit is possible, the response arrives, and the server dies with it.
    let file = rusqlite::Connection::open(directory.path().join("data/stentor.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    set_policy(&emulator, json!({}));
    until("the answer has come", || {
        (caller.metric(&server, "stentor_deliveries_total{") >= 1.0).then_some(())
    });
    let ledger = caller.call(&server, Method::GET, &path, None);
    assert_eq!(ledger["totals"]["sending"], json!(1), "it is not committed: {ledger}");
    server.process.kill();
    drop(file);

    server = Server::start(directory.path());
    let ledger = until("the end", || {
        let ledger = caller.call(&server, Method::GET, &path, None);
        (!ledger["ended_at"].is_null()).then_some(ledger)
    });
    let second = heard.next().unwrap();
    assert_eq!(first["message_id"], second["message_id"], "the same apns-id, so that a device can tell");
    assert_eq!(counts(&emulator)["accepted"], json!(2), "once more and not again");
    let figures = ["balanced", "ambiguous", "duplicate_bound"].map(|field| ledger[field].clone());
    assert_eq!(
        (figures, &ledger["totals"]["accepted"]),
        ([json!(true), json!(1), json!(1)], &json!(1)),
        "{ledger}"
    );
}
