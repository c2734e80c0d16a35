//! Readers of descriptions accept ours, and clients generated from it compile, register a device and send a message.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::faces::{clients, home, ran};
use crate::server::Server;

/// The tools, each with the file that pins its version.
const TOOLS: [(&str, &str); 5] = [
    ("openapi", "requirements.txt"),
    ("openapi-node", "package-lock.json"),
    ("openapi-java", "pom.xml"),
    ("openapi-kotlin", "pom.xml"),
    ("openapi-go", "go.mod"),
];

#[test]
fn redocly_spectral_and_a_validator_take_the_description() {
    judged("readers", &["openapi", "openapi-node"]);
}

#[test]
fn the_client_in_python_registers_and_sends() {
    judged("python", &["openapi"]);
}

#[test]
fn the_client_of_openapi_python_client_registers_and_sends() {
    judged("openapi-python-client", &["openapi"]);
}

#[test]
fn the_client_in_go_registers_and_sends() {
    judged("go", &["openapi", "openapi-go"]);
}

#[test]
fn the_client_in_typescript_registers_and_sends() {
    judged("typescript", &["openapi", "openapi-node"]);
}

#[test]
fn the_client_in_java_registers_and_sends() {
    judged("java", &["openapi", "openapi-java"]);
}

#[test]
fn the_client_in_kotlin_registers_and_sends() {
    judged("kotlin", &["openapi", "openapi-kotlin"]);
}

/// Generates a client with one generator; without its dependencies the test is skipped, unless it is required.
fn judged(language: &str, tools: &[&str]) {
    let wanted = TOOLS.iter().filter(|(tool, _)| tools.contains(tool));
    let Some(homes) = wanted.map(|(tool, pins)| home(tool, pins)).collect::<Option<Vec<_>>>() else { return };
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    let app = server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let description = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let mut judge = Command::new(clients("openapi").join("judge"));
    judge.arg(language).arg(description.canonicalize().unwrap()).arg(directory.path().join("made"));
    judge.env("JUDGES", homes[0].parent().unwrap()).env("STENTOR_URL", server.process.url());
    judge.env("STENTOR_KEY", app["key"]["secret"].as_str().unwrap_or_else(|| panic!("{app}")));
    let output = ran(judge.current_dir(directory.path()));
    assert!(output.contains("is content"), "{output}");
    if language != "readers" {
        let sent = server.ok(&["campaign", "list"]);
        assert_eq!(sent["campaigns"].as_array().map(Vec::len), Some(1), "{sent}");
    }
}
