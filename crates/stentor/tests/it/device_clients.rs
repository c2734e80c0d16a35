//! The libraries for devices, in other languages: their unit tests, and the examples on their pages.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::clients::{Python, blocks, client, ran};
use crate::device_run::{Scene, until};

#[test]
fn the_parts_of_the_python_library_for_devices_are_content() {
    if !is_installed("python3") {
        return;
    }
    ran(python().arg(client("python-device").join("tests/parts.py")));
}

#[test]
fn the_python_library_for_devices_and_what_uses_it_are_typed() {
    let Some(python) = Python::installed() else { return };
    let directory = TempDir::new().unwrap();
    let library = client("python-device");
    // Here with the dependency for decryption, which need not be installed.
    ran(with_library(&mut Command::new(python.program())).arg(library.join("tests/parts.py")));
    let example = directory.path().join("example.py");
    std::fs::write(&example, example_of("python-device", "python")).unwrap();
    let mut mypy = Command::new(python.program());
    mypy.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(directory.path().join("cache"));
    mypy.arg(library.join("src/stentor_device"));
    mypy.arg(library.join("tests/story.py")).arg(library.join("tests/parts.py")).arg(example);
    mypy.arg(client("../examples/device_idle.py")).arg(client("../examples/device_mailbox.py"));
    ran(mypy.env("MYPYPATH", library.join("src")));
}

#[test]
fn the_example_of_the_python_library_for_devices_runs() {
    if is_installed("python3") {
        example_runs(python().args(["-c", &example_of("python-device", "python")]));
    }
}

#[test]
fn the_parts_of_the_java_library_for_devices_are_content() {
    let Some(classes) = java_classes() else { return };
    let output = ran(java(&classes).arg("stentor.device.Parts").arg(classes.path().join("parts")));
    assert!(output.contains("parts are content"), "{output}");
}

#[test]
fn the_example_of_the_java_library_for_devices_runs() {
    let Some(classes) = java_classes() else { return };
    let source = classes.path().join("Kiosk.java");
    std::fs::write(&source, example_of("java-device", "java")).unwrap();
    compile(&classes, &[source]);
    example_runs(java(&classes).arg("Kiosk"));
}

#[test]
fn what_an_idle_device_costs_can_be_measured() {
    if !is_installed("python3") {
        return;
    }
    for protocol in ["mqtt", "mcs"] {
        let mut measuring = python();
        measuring
            .arg(client("../examples/device_idle.py"))
            .args(["--stentor", env!("CARGO_BIN_EXE_stentor")]);
        let output = ran(measuring.args(["--heartbeats", "1", "--only", protocol, "--json"]));
        let report: Value = serde_json::from_str(&output).unwrap();
        let row = &report["rows"][0];
        let sum = |name: &str| row[name].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
        // A ping, its response and one or two acknowledgements: each is a segment.
        assert!((3..=5).contains(&sum("segments")), "{row}");
        assert_eq!(sum("wire_bytes"), sum("payload_bytes") + 52 * sum("segments"), "{row}");
    }
}

#[test]
fn what_devices_cost_that_are_away_can_be_measured() {
    if !is_installed("python3") {
        return;
    }
    let mut measuring = python();
    measuring.arg(client("../examples/device_mailbox.py")).args(["--stentor", env!("CARGO_BIN_EXE_stentor")]);
    let output = ran(measuring.args(["--devices", "3000", "--messages", "100", "--json"]));
    let report: Value = serde_json::from_str(&output).unwrap();
    let campaign = &report["campaign"];
    assert_eq!(campaign["rows_by_table"]["chunks"], 3, "a row for a thousand devices: {campaign}");
    assert!(campaign["rows"].as_u64().unwrap() <= 8, "{campaign}");
    assert_eq!(report["return"]["messages"], 100, "{report}");
}

/// Runs the example of a page as a device, which gets one message with both parts.
fn example_runs(program: &mut Command) {
    let scene = Scene::open();
    let folder = scene.folder();
    std::fs::create_dir(&folder).unwrap();
    let child = program
        .current_dir(&folder)
        .env("STENTOR_URL", scene.server.process.url())
        .env("STENTOR_KEY", &scene.join_key)
        .stdout(Stdio::piped())
        .spawn();
    let child = Ended(Some(child.unwrap()));
    until("the registration", || folder.join("kiosk/device.json").exists());
    scene.server.ok(&[
        "message",
        "send",
        "--topic",
        "news",
        "--title",
        "Hi",
        "--body",
        "you",
        "--data",
        "command=go",
    ]);
    let output = child.told();
    assert!(output.contains("Hi: you") && output.contains("data: go"), "{output}");
}

/// A program that is killed when a test fails before its end.
struct Ended(Option<Child>);

impl Ended {
    fn told(mut self) -> String {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        text
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn example_of(library: &str, language: &str) -> String {
    let page = std::fs::read_to_string(client(library).join("README.md")).unwrap();
    blocks(&page, language).remove(0)
}

/// Prepares a Python with the library for devices.
pub(crate) fn python() -> Command {
    let mut command = Command::new("python3");
    with_library(&mut command);
    command
}

/// Adds the library for devices to a Python's path.
pub(crate) fn with_library(python: &mut Command) -> &mut Command {
    python.env("PYTHONPATH", client("python-device").join("src")).env("PYTHONDONTWRITEBYTECODE", "1")
}

/// Prepares a Java with the compiled classes.
pub(crate) fn java(classes: &TempDir) -> Command {
    let mut command = Command::new("java");
    command.arg("-cp").arg(classes.path());
    command
}

/// Compiles the library for devices with its tests, without warnings.
pub(crate) fn java_classes() -> Option<TempDir> {
    if !is_installed("javac") {
        return None;
    }
    let classes = TempDir::new().unwrap();
    let library = client("java-device");
    let folders = ["src/stentor/device", "tests", "tests/stentor/device"];
    let sources = folders.iter().flat_map(|folder| std::fs::read_dir(library.join(folder)).unwrap());
    let sources = sources.map(|entry| entry.unwrap().path());
    let sources: Vec<PathBuf> = sources.filter(|path| path.extension() == Some(OsStr::new("java"))).collect();
    compile(&classes, &sources);
    Some(classes)
}

fn compile(classes: &TempDir, sources: &[PathBuf]) {
    let mut javac = Command::new("javac");
    javac.args(["--release", "11", "-Xlint:all", "-Werror", "-cp"]).arg(classes.path());
    ran(javac.arg("-d").arg(classes.path()).args(sources));
}

/// Returns true if a runtime is installed; without it the test is skipped, unless it is required.
pub(crate) fn is_installed(program: &str) -> bool {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word.trim() == "judges");
    let is_there = is_there(program);
    assert!(is_there || !is_required, "there is no {program} (STENTOR_TEST_REQUIRE wants it)");
    is_there
}

/// Returns true if a program is installed, and logs its absence.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !is_there {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    is_there
}
