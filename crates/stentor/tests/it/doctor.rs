//! The doctor's findings: an intact server, a damaged page, and no disturbance of a running server.

use crate::process::run_json;
use crate::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// Enough devices for a database of some hundred pages.
const DEVICES: u32 = 3000;

/// Imports devices through the public API.
fn fill(server: &Server, directory: &Path, first: u32) {
    let line =
        |number: u32| json!({"platform": "android", "token": format!("token-{number:08}")}).to_string();
    let lines: Vec<String> = (first..first + DEVICES).map(line).collect();
    let path = directory.join("devices.ndjson");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let report = server.ok(&["device", "import", path.to_str().unwrap()]);
    assert_eq!(report["created"], json!(DEVICES));
}

/// Inverts every bit of the page in the middle of a closed database.
fn damage(database: &Path) {
    let mut bytes = std::fs::read(database).unwrap();
    let page_bytes = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let start = bytes.len() / 2 / page_bytes * page_bytes;
    bytes[start..start + page_bytes].iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(database, bytes).unwrap();
}

/// Runs the doctor without a server, which is a broken finding too.
fn look_without_server(data: &Path) -> Value {
    let data = data.to_str().unwrap();
    let (code, found) = run_json(&["doctor", "--data-dir", data, "--server", "http://127.0.0.1:9"]);
    assert_eq!((code, &check(&found, "server")["health"]), (1, &json!("BROKEN")), "{found}");
    found
}

fn check(found: &Value, what: &str) -> Value {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["what"] == what);
    check.unwrap_or_else(|| panic!("{what} is missing in {found}")).clone()
}

#[test]
fn a_running_server_is_found_in_order_and_goes_on_writing() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    fill(&server, directory.path(), 0);
    for arguments in [&["doctor"][..], &["doctor", "--deep"]] {
        let found = server.ok(arguments);
        for what in ["clock", "file limit", "free disk", "database", "queue file", "server", "queue"] {
            assert_eq!(check(&found, what)["health"], "ok", "{found}");
        }
        assert!(check(&found, "database")["found"].as_str().unwrap().contains("WAL"), "{found}");
    }
    fill(&server, directory.path(), DEVICES);
}

#[test]
fn a_damaged_page_is_found() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    fill(&server, directory.path(), 0);
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success());
    let data = directory.path().join("data");
    damage(&data.join("stentor.db"));
    let found = look_without_server(&data);
    let database = check(&found, "database");
    assert_eq!(database["health"], "BROKEN", "{found}");
    assert!(database["found"].as_str().unwrap().contains("damaged"), "{found}");
    assert!(database["advice"].as_str().unwrap().contains("backup"), "{found}");
    assert_eq!(check(&found, "queue file")["health"], "ok", "{found}");
}

#[test]
fn a_damaged_queue_is_no_disaster() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success());
    let data = directory.path().join("data");
    damage(&data.join("queue.db"));
    let found = look_without_server(&data);
    let queue = check(&found, "queue file");
    assert_eq!(queue["health"], "warning", "{found}");
    assert!(queue["advice"].as_str().unwrap().contains("delete"), "{found}");
    assert_eq!(check(&found, "database")["health"], "ok", "{found}");
}
