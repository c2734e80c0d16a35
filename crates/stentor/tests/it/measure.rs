//! Measurements of commands and of running services by the command.

use crate::process::{run, run_json};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Options that disable the gate of a late link: these tests may run on a busy machine, because they do not measure speed.
const NO_GATE: [&str; 2] = ["--gate-lateness-ms", "60000"];

/// Serves HTTP on a free port until the test ends; `/slow` takes 30 ms longer, and `/none` is not there. Returns its URL.
fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    url
}

fn answer(mut stream: std::net::TcpStream) {
    let (mut seen, mut part) = (Vec::new(), [0; 1024]);
    loop {
        while let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).into_owned();
            seen.drain(..end + 4);
            if head.contains("/slow") {
                thread::sleep(Duration::from_millis(30));
            }
            let status = if head.contains("/none") { "404 Not Found" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 100\r\n\r\n{}", "a".repeat(100));
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return,
            Ok(count) => seen.extend_from_slice(&part[..count]),
        }
    }
}

fn measured(further: &[&str]) -> (i32, Value) {
    run_json(&[&["lab", "measure"], further, &NO_GATE[..]].concat())
}

#[test]
fn a_slower_url_is_found_slower_with_an_interval_and_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let (quick, slow) = (format!("{}/", service()), format!("{}/slow", service()));
    let amount = ["--forks", "4", "--requests", "3", "--warmup", "1", "--html", page.to_str().unwrap()];
    let (code, report) = measured(&[&[quick.as_str(), "--vs", slow.as_str()], &amount[..]].concat());
    assert_eq!((code, &report["ok"], &report["link"]), (0, &json!(true), &json!("none")), "{report}");
    let ratio = &report["candidates"][1]["ratio"];
    assert!(ratio["low"].as_f64().unwrap() > 1.0 && ratio["high"].is_f64(), "{report}");
    assert!(report["candidates"][1]["seconds"]["mean"].as_f64().unwrap() > 0.03, "{report}");
    assert!(
        report["candidates"][0]["first_seconds"]["count"] == 4 && report["candidates"][0]["ratio"].is_null(),
        "{report}"
    );
    let places: Vec<u64> =
        report["forks"].as_array().unwrap().iter().map(|one| one["candidate"].as_u64().unwrap()).collect();
    assert!(
        places.len() == 8 && places.chunks(2).all(|round| round[0] != round[1]),
        "each round has both: {places:?}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("is slower than") && page.contains("<svg"), "{page}");
}

#[test]
fn commands_are_compared_by_their_whole_time() {
    let (code, report) = measured(&["true", "--vs", "sleep 0.5", "--forks", "3"]);
    assert_eq!((code, &report["candidates"][0]["time"]), (0, &json!("run")), "{report}");
    let ratio = &report["candidates"][1]["ratio"];
    assert!(ratio["ratio"].as_f64().unwrap() > 2.0 && ratio["low"].is_f64(), "{report}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_what_to_do() {
    let url = service();
    let none = format!("{url}/none");
    for (arguments, code, advice) in [
        (&["false"][..], 1, "measure a command that succeeds"),
        (&[none.as_str()], 1, "404 Not Found"),
        (&["http://127.0.0.1:1/"], 1, "look at the service"),
        (&["sleep 60", "--patience-seconds", "1"], 1, "raise --patience-seconds"),
        (&["true", "--vs", url.as_str()], 2, "give only URLs, or only commands"),
        (&["true", "--link", "wlan"], 2, "stentor lab list links"),
        (&["true", "--forward", "80"], 2, "add --link"),
        (&[url.as_str(), "--body", "@none"], 2, "none cannot be read"),
    ] {
        let (ended, report) = measured(&[arguments, &["--forks", "2", "--requests", "1"]].concat());
        let sentence = report["error"].as_str().unwrap();
        assert!(ended == code && sentence.contains(advice), "{arguments:?}: {ended} {sentence}");
    }
    let refused = run(&["lab", "measure", "http://me:key@127.0.0.1/"]);
    assert!(
        refused.status.code() == Some(2) && String::from_utf8_lossy(&refused.stderr).contains("--header")
    );
}

/// Returns true if this machine has links; otherwise asserts that a measurement with one is refused, with the way out.
fn has_links() -> bool {
    let (_, shown) = run_json(&["lab", "link", "show"]);
    let levels = shown["levels"].as_array().unwrap();
    let netns = levels.iter().find(|level| level["level"] == "netns").unwrap();
    if netns["available"] == true {
        return true;
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.contains("rig"), "this machine has no links: {netns}");
    let (code, report) = measured(&["true", "--link", "wifi", "--forks", "2"]);
    assert!(code == 6 && report["error"].as_str().unwrap().contains("leave --link out"), "{report}");
    let _ = writeln!(std::io::stderr(), "skipped: this machine has no links");
    false
}

#[test]
fn a_link_delays_a_url_counts_its_bytes_by_purpose_and_gives_each_fork_a_seed() {
    if !has_links() {
        return;
    }
    let url = service();
    let amount = ["--forks", "2", "--requests", "3", "--warmup", "0"];
    let (code, report) = measured(&[&[url.as_str(), "--link", "3g"], &amount[..]].concat());
    assert_eq!((code, &report["rig"]), (0, &json!("netns")), "{report}");
    let candidate = &report["candidates"][0];
    assert!(
        candidate["seconds"]["mean"].as_f64().unwrap() > 0.25,
        "3G takes 300 ms for a round trip, with jitter: {report}"
    );
    // Four exchanges on one connection, each with a body of 100 bytes.
    assert_eq!(
        (&candidate["bytes"][1]["payload"], &candidate["bytes"][0]["payload"]),
        (&json!(100.0), &json!(0.0)),
        "{report}"
    );
    assert!(candidate["bytes"][0]["handshake"].as_f64().unwrap() > 0.0, "{report}");
    let seeds: Vec<&Value> = report["forks"].as_array().unwrap().iter().map(|fork| &fork["seed"]).collect();
    assert!(seeds.len() == 2 && seeds[0] != seeds[1], "{report}");
}

#[test]
fn a_command_behind_a_link_meets_the_services_of_its_fork() {
    if !has_links() {
        return;
    }
    let fetch = "python3 -c 'import os, urllib.request as web; web.urlopen(\"http://\" + os.environ[\"STENTOR_SERVER\"] + \":8000/\").read()'";
    let serve = ["--serve", "python3 -m http.server 8000 2> /dev/null", "--wait-port", "8000"];
    let (code, report) = measured(&[&[fetch, "--link", "lan", "--forks", "2"], &serve[..]].concat());
    assert_eq!(code, 0, "{report}");
    assert!(
        report["candidates"][0]["bytes"][1]["payload"].as_f64().unwrap() > 100.0,
        "a listing came back: {report}"
    );
}
