//! An unmodified reader of descriptions tests ours: it generates requests from `openapi.json`, valid and invalid ones, and follows the
//! links.

use crate::faces::ran;
use crate::process::Process;
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Number of requests for each operation; in the manual run it is a hundred (CONTRIBUTING.md).
const EXAMPLES: &str = "8";
/// The same requests each time: other seeds are left to the long manual run.
const SEED: &str = "1";

#[test]
fn a_foreign_tool_finds_nothing_in_the_description_that_the_server_does_otherwise() {
    let Some(home) = home() else { return };
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    let made = server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let app = made["app"]["id"].as_str().or(made["id"].as_str()).unwrap_or_else(|| panic!("{made}"));
    let description = format!("{}/openapi.json", server.process.url());
    let mut run = Command::new(home.join("bin/schemathesis"));
    run.current_dir(directory.path()).args(["--no-color", "run", &description, "--checks", "all"]);
    run.args(["--max-examples", EXAMPLES, "--phases", "examples,coverage,fuzzing,stateful"]);
    run.env("SCHEMATHESIS_HOOKS", clients().join("hooks.py"));
    run.args(["--continue-on-failure", "--generation-database", "none", "--seed", SEED]);
    run.args(["--header", &format!("Authorization: Bearer {}", server.root_key())]);
    run.args(["--header", &format!("X-Stentor-App: {app}")]);
    let output = run.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(
        text.contains("API Links") && !text.contains(" 0 selected"),
        "there are links to walk along: {text}"
    );
}

#[test]
fn every_reply_in_xml_is_what_the_description_says_and_says_what_json_does() {
    let Some(home) = home() else { return };
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    let (_apns, channels) = channels(directory.path());
    let mut judge = Command::new(home.join("bin/python"));
    judge.arg(clients().join("xml_judge.py")).args([server.process.url(), &server.root_key()]);
    judge.arg(channels.to_string());
    let output = ran(&mut judge);
    assert!(output.contains("is content"), "{output}");
}

/// Starts an APNs emulator with channels, and returns it with a credential for them.
fn channels(directory: &Path) -> (Process, Value) {
    let (ca, any) = (directory.join("apns-ca"), "127.0.0.1:0");
    let start = ["emulate", "apns", "--listen", any, "--management", any, "--ca-dir", ca.to_str().unwrap()];
    let emulator = Process::start(&start, &directory.join("apns.log"));
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let credential = json!({
        "key_p8": key.serialize_pem(), "key_id": "KEY0123456", "team_id": "TEAM012345",
        "bundle_id": "com.example.app", "endpoint": emulator.url(),
        "management_endpoint": emulator.ready["management"],
        "ca_pem": std::fs::read_to_string(emulator.ready["ca_file"].as_str().unwrap()).unwrap(),
    });
    (emulator, credential)
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judges/clients/schemathesis")
}

/// Finds the tool as installed by `tests/judges/install`; without it the test is skipped, unless it is required.
fn home() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join("schemathesis");
    let pins = clients().join("requirements.txt");
    let current = std::fs::read(home.join("pins")).ok() == std::fs::read(pins).ok();
    if current {
        return Some(home);
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let why = "schemathesis is not installed: run tests/judges/install --full";
    assert!(
        !required.split(',').any(|word| word.trim() == "judges"),
        "{why} (STENTOR_TEST_REQUIRE wants it)"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    None
}
