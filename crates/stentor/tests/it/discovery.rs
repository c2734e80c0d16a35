//! Servers are found: by their address, and by what they announce on the network, which here is the loopback of a namespace.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::clients::Python;
use crate::process::run_json;
use crate::server::Server;

const NOT_FOUND: i32 = 5;
/// What runs inside: a server that announces itself, two finders, and one more after it has said goodbye.
const STORY: &str = r#"
set -e
ip link set lo up
mkfifo ready
"$STENTOR" serve --announce --listen 127.0.0.1:0 --data-dir data --json > ready 2> server.log &
server=$!
read -r line < ready
tries=0
until "$STENTOR" discover --timeout 2 --json > found; do tries=$((tries + 1)); [ $tries -lt 15 ]; done
if [ -n "$PYTHON" ]; then "$PYTHON" -c "$FINDER" > bound; fi
kill -TERM $server
wait $server
code=0; "$STENTOR" discover --timeout 1 --json > gone || code=$?
echo $code > code
"#;
/// The Python client binds with nothing configured.
const FINDER: &str = r#"
import stentor
[found] = next(filter(None, (stentor.discover(timeout_seconds=2) for _ in range(15))))
assert found.document["service"] == "stentor", found
with stentor.Client.discover(timeout_seconds=10) as client:
    print(found.url, found.fingerprint, client.health.version()["name"])
"#;

#[test]
fn a_server_whose_address_is_known_tells_its_faces_under_its_key() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    let url = server.process.url();
    let (code, told) = run_json(&["discover", "--url", url]);
    let found = &told["servers"][0];
    assert_eq!((code, &found["url"]), (0, &Value::from(url)), "{told}");
    let faces = found["faces"].as_array().unwrap();
    let rest = faces.iter().find(|face| face["name"] == "rest").unwrap();
    assert_eq!(rest["address"], format!("{url}/v1"));
    let fingerprint = found["fingerprint"].as_str().unwrap();
    assert_eq!(run_json(&["discover", "--url", url, "--fingerprint", fingerprint]).0, 0);
    let other = fingerprint.chars().rev().collect::<String>();
    let (code, told) = run_json(&["discover", "--url", url, "--fingerprint", &other]);
    assert_eq!(code, NOT_FOUND, "{told}");
}

#[test]
fn a_server_that_announces_itself_is_found_and_no_longer_when_it_is_gone() {
    let directory = TempDir::new().unwrap();
    let python = Python::installed();
    let Some(output) = inside(directory.path(), python.as_ref()) else { return };
    let log = std::fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{log}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("found")).unwrap();
    let [server] = found["servers"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let url = server["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{found}");
    assert_eq!(read("code").trim(), NOT_FOUND.to_string(), "{}", read("gone"));
    if python.is_some() {
        let bound = format!("{url} {} stentor", server["fingerprint"].as_str().unwrap());
        assert_eq!(read("bound").trim(), bound);
    }
}

/// Runs the story in a network of its own; where that cannot be had the test is skipped, unless it must not be.
fn inside(directory: &Path, python: Option<&Python>) -> Option<Output> {
    if !alone("ip link set lo up").output().is_ok_and(|output| output.status.success()) {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|word| word.trim() == "rig");
        assert!(!is_required, "no network namespace (STENTOR_TEST_REQUIRE wants it)");
        let _ = writeln!(std::io::stderr(), "skipped: no network namespace");
        return None;
    }
    let mut story = alone(STORY);
    story.current_dir(directory).env("STENTOR", env!("CARGO_BIN_EXE_stentor"));
    if let Some(python) = python {
        story.env("PYTHON", python.program()).env("PYTHONPATH", Python::path()).env("FINDER", FINDER);
    }
    Some(story.output().unwrap())
}

/// Prepares a script in a network of its own, which has nothing but a loopback.
fn alone(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", script]);
    command
}
