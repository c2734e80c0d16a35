//! Discovery of servers: by their address, and by their announcements on the network, here the loopback of a namespace.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::clients::Python;
use crate::process::run_json;
use crate::server::Server;

const NOT_FOUND: i32 = 5;
/// The script in the namespace: a server that announces itself, two searches, and one more after its goodbye.
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
/// The script in the namespace with TLS: a server with a certificate for a name, from an authority that only some searches know.
const TLS_STORY: &str = r#"
set -e
ip link set lo up
mkfifo ready
export STENTOR__API__TLS_CERT_FILE=$PWD/cert.pem STENTOR__API__TLS_KEY_FILE=$PWD/key.pem
"$STENTOR" serve --announce --listen 127.0.0.1:0 --data-dir data --json > ready 2> server.log &
server=$!
read -r line < ready
tries=0
until "$STENTOR" discover --ca ca.pem --timeout 2 --json > found; do tries=$((tries + 1)); [ $tries -lt 15 ]; done
code=0; "$STENTOR" discover --ca other.pem --timeout 2 --json > gone 2> why || code=$?
echo $code > code
if [ -n "$PYTHON" ]; then "$PYTHON" -c "$TLS_FINDER" > bound; fi
kill -TERM $server
wait $server
"#;
/// The Python client connects over TLS with the authority alone, and finds nothing with another one.
const TLS_FINDER: &str = r#"
import stentor
[found] = next(filter(None, (stentor.discover(timeout_seconds=2, ca="ca.pem") for _ in range(15))))
assert stentor.discover(timeout_seconds=2, ca="other.pem") == [], "certified by nobody it knows"
with stentor.Client.discover(timeout_seconds=10, ca="ca.pem") as client:
    print(found.url, found.fingerprint, client.health.version()["name"])
"#;
/// The Python client connects without configuration.
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
    let (code, report) = run_json(&["discover", "--url", url]);
    let found = &report["servers"][0];
    assert_eq!((code, &found["url"]), (0, &Value::from(url)), "{report}");
    let faces = found["faces"].as_array().unwrap();
    let rest = faces.iter().find(|face| face["name"] == "rest").unwrap();
    assert_eq!(rest["address"], format!("{url}/v1"));
    let fingerprint = found["fingerprint"].as_str().unwrap();
    assert_eq!(run_json(&["discover", "--url", url, "--fingerprint", fingerprint]).0, 0);
    let other = fingerprint.chars().rev().collect::<String>();
    let (code, report) = run_json(&["discover", "--url", url, "--fingerprint", &other]);
    assert_eq!(code, NOT_FOUND, "{report}");
}

#[test]
fn a_server_that_announces_itself_is_found_and_no_longer_when_it_is_gone() {
    let directory = TempDir::new().unwrap();
    let python = Python::installed();
    let Some(url) = found_inside(STORY, directory.path(), python.as_ref()) else { return };
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
}

#[test]
fn a_server_with_tls_is_found_by_the_name_of_its_certificate_under_an_authority_of_ones_own() {
    let directory = TempDir::new().unwrap();
    let python = Python::installed();
    certify(directory.path());
    let Some(url) = found_inside(TLS_STORY, directory.path(), python.as_ref()) else { return };
    assert!(url.starts_with("https://localhost:"), "{url}");
    let why = std::fs::read_to_string(directory.path().join("why")).unwrap();
    assert!(why.contains("https://localhost:") && why.contains("is left out"), "{why}");
}

#[test]
fn a_file_without_a_certificate_is_refused_as_an_authority() {
    let directory = TempDir::new().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for file in [empty, directory.path().join("missing.pem")] {
        let file = file.to_str().unwrap();
        let (code, report) = run_json(&["discover", "--url", "https://127.0.0.1:1", "--ca", file]);
        assert_eq!(code, 1, "{report}");
        assert!(report["error"].as_str().unwrap().contains(file), "{report}");
    }
}

/// Writes a certificate for `localhost` with its key, its authority, and another authority.
fn certify(directory: &Path) {
    // Each has its own name: a certificate with the name of its authority counts as self-signed.
    let named = |name: &str, hosts: &[&str]| {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(hosts).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let authority = |name: &str| {
        let mut params = named(name, &[]);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
        rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (authority("ours"), authority("other"));
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = named("a server", &["localhost"]);
    params.use_authority_key_identifier_extension = true;
    let cert = params.signed_by(&key, &ours).unwrap();
    let (cert, key) = (cert.pem(), key.serialize_pem());
    let files = [("ca.pem", ours.pem()), ("other.pem", other.pem()), ("cert.pem", cert), ("key.pem", key)];
    files.into_iter().for_each(|(name, text)| std::fs::write(directory.join(name), text).unwrap());
}

/// Runs a script; returns the URL of the one server that it found, to which the Python client has connected as well.
fn found_inside(story: &str, directory: &Path, python: Option<&Python>) -> Option<String> {
    let output = inside(story, directory, python)?;
    let log = std::fs::read_to_string(directory.join("server.log")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{log}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("found")).unwrap();
    let [server] = found["servers"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let url = server["url"].as_str().unwrap();
    assert_eq!(read("code").trim(), NOT_FOUND.to_string(), "{}", read("gone"));
    if python.is_some() {
        let bound = format!("{url} {} stentor", server["fingerprint"].as_str().unwrap());
        assert_eq!(read("bound").trim(), bound);
    }
    Some(url.to_owned())
}

/// Runs a script in its own network namespace; if there is none the test is skipped, unless it is required.
fn inside(story: &str, directory: &Path, python: Option<&Python>) -> Option<Output> {
    if !alone("ip link set lo up").output().is_ok_and(|output| output.status.success()) {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|word| word.trim() == "rig");
        assert!(!is_required, "no network namespace (STENTOR_TEST_REQUIRE wants it)");
        let _ = writeln!(std::io::stderr(), "skipped: no network namespace");
        return None;
    }
    let mut story = alone(story);
    story.current_dir(directory).env("STENTOR", env!("CARGO_BIN_EXE_stentor"));
    if let Some(python) = python {
        story.env("PYTHON", python.program()).env("PYTHONPATH", Python::path()).env("FINDER", FINDER);
        story.env("TLS_FINDER", TLS_FINDER);
    }
    Some(story.output().unwrap())
}

/// Prepares a script in its own network namespace, which has only a loopback.
fn alone(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", script]);
    command
}
