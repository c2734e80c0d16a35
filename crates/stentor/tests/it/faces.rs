//! Unmodified clients of other formats test our faces: they work with them without help.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use stentor_server::contract::table::OPERATIONS;
use tempfile::TempDir;

use crate::process::stentor;
use crate::server::Server;

#[test]
fn zeep_uses_the_soap_face_from_its_description_alone() {
    let Some(home) = home("faces", "requirements.txt") else { return };
    Shop::open().ask(Command::new(home.join("bin/python")).arg(clients("faces").join("zeep_judge.py")));
}

#[test]
fn the_soap_client_of_php_uses_the_soap_face_from_its_description_alone() {
    if !has_soap_of_php() {
        return;
    }
    Shop::open().ask(Command::new("php").arg(clients("faces").join("soap_judge.php")));
}

#[test]
fn the_client_of_pythons_library_uses_the_xml_rpc_face() {
    let Some(home) = home("faces", "requirements.txt") else { return };
    Shop::open().ask(Command::new(home.join("bin/python")).arg(clients("faces").join("xmlrpc_judge.py")));
}

#[test]
fn cxf_uses_the_soap_face_with_what_wsdl2java_made_of_its_description() {
    let Some(home) = home("java-faces", "pom.xml") else { return };
    judged_with_generated_classes(
        &home,
        "org.apache.cxf.tools.wsdlto.WSDLToJava",
        "/soap?wsdl",
        "SoapJudge.java",
    );
}

#[test]
fn cxf_uses_the_rest_face_with_what_wadl2java_made_of_its_description() {
    let Some(home) = home("java-faces", "pom.xml") else { return };
    let (tool, description) = ("org.apache.cxf.tools.wadlto.WADLToJava", "/.well-known/stentor/wadl");
    judged_with_generated_classes(&home, tool, description, "RestJudge.java");
}

#[test]
fn woden_reads_the_rest_face_as_wsdl_2_and_has_no_complaint() {
    let Some(home) = home("java-faces", "pom.xml") else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("rest.wsdl2");
    std::fs::write(&file, ran(&mut stentor(&["contract", "wsdl2"]))).unwrap();
    let output = ran(java(&jars(&home), "WodenJudge.java").arg(&file).arg(OPERATIONS.len().to_string()));
    assert!(output.contains("is content"), "{output}");
}

#[test]
fn apache_xml_rpc_uses_the_xml_rpc_face() {
    let Some(home) = home("java-faces", "pom.xml") else { return };
    Shop::open().ask(&mut java(&jars(&home), "RpcJudge.java"));
}

/// Returns true if PHP is installed with its SOAP extension; it must be if `STENTOR_TEST_REQUIRE` says so.
pub(crate) fn has_soap_of_php() -> bool {
    let status = Command::new("php").args(["-r", "exit(class_exists('SoapClient') ? 0 : 1);"]).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        skip(&["judges"], "PHP with its SOAP extension is not installed (php-cli, php-soap)");
    }
    is_there
}

/// A server with an app, and the app's key.
pub(crate) struct Shop {
    pub(crate) directory: TempDir,
    pub(crate) server: Server,
    pub(crate) key: String,
}

impl Shop {
    pub(crate) fn open() -> Self {
        Self::open_with("")
    }

    /// Opens a shop on a server with its own settings.
    pub(crate) fn open_with(settings: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start_with(directory.path(), settings);
        let made = server.ok(&["app", "create", "shop"]);
        server.ok(&["app", "credential", "set", "--provider", "null"]);
        let key = made["key"]["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        Self { directory, server, key }
    }

    /// Runs a client against the server; its exit code must be 0.
    pub(crate) fn ask(&self, client: &mut Command) {
        let client = client.current_dir(self.directory.path());
        let output = ran(client.args([self.server.process.url(), &self.key]));
        assert!(output.contains("is content"), "{output}");
    }
}

pub(crate) fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    text.into_owned()
}

/// Generates classes from a description with a tool of CXF, and runs a client with them against a server.
fn judged_with_generated_classes(home: &Path, tool: &str, description: &str, source: &str) {
    let shop = Shop::open();
    let (jars, made) = (jars(home), shop.directory.path().join("made"));
    std::fs::create_dir(&made).unwrap();
    let mut command = Command::new("java");
    command.args(["-cp", &jars, tool, "-p", "stentor", "-compile"]);
    command.arg("-d").arg(&made).arg("-classdir").arg(&made);
    ran(command.arg(format!("{}{description}", shop.server.process.url())));
    shop.ask(&mut java(&format!("{}:{jars}", made.display()), source));
}

fn java(classes: &str, source: &str) -> Command {
    let mut command = Command::new("java");
    command.args(["-cp", classes]).arg(clients("java-faces").join(source));
    command
}

fn jars(home: &Path) -> String {
    format!("{}/lib/*", home.display())
}

pub(crate) fn clients(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judges/clients").join(name)
}

/// Finds a client as installed by `tests/judges/install`; without it the test is skipped, unless it is required.
pub(crate) fn home(client: &str, pins: &str) -> Option<PathBuf> {
    home_wanted_by(&["judges"], client, pins)
}

/// The same for a client that is required only if all of these words are listed.
pub(crate) fn home_wanted_by(words: &[&str], client: &str, pins: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join(client);
    if std::fs::read(home.join("pins")).ok() == std::fs::read(clients(client).join(pins)).ok() {
        return Some(home);
    }
    skip(words, &format!("{client} is not installed: run tests/judges/install --full"));
    None
}

/// Logs that a client is missing, outside the captured output, or fails if all of these words are required.
fn skip(words: &[&str], why: &str) {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = words.iter().all(|wanted| required.split(',').any(|word| word.trim() == *wanted));
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE wants it)");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
