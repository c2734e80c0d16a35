//! The libraries for devices, in other languages: their parts, and what their pages say.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

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
    let example = directory.path().join("example.py");
    std::fs::write(&example, example_of("python-device", "python")).unwrap();
    let mut mypy = Command::new(python.program());
    mypy.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(directory.path().join("cache"));
    mypy.arg(library.join("src/stentor_device"));
    mypy.arg(library.join("tests/story.py")).arg(library.join("tests/parts.py")).arg(example);
    ran(mypy.env("MYPYPATH", library.join("src")));
}

#[test]
fn the_example_of_the_python_library_for_devices_runs() {
    if is_installed("python3") {
        example_runs(python().args(["-c", &example_of("python-device", "python")]));
    }
}

/// Runs the example of a page as a device that gets one message with both parts.
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
    let told = child.told();
    assert!(told.contains("Hi: you") && told.contains("data: go"), "{told}");
}

/// A program that is killed when a test fails before its end.
struct Ended(Option<Child>);

impl Ended {
    fn told(mut self) -> String {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}");
        told
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

/// Prepares Python where it finds the library for devices.
pub(crate) fn python() -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", client("python-device").join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Finds out whether a runtime is there; without it the test is skipped, unless it must not be.
pub(crate) fn is_installed(program: &str) -> bool {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word.trim() == "judges");
    let is_there = is_there(program);
    assert!(is_there || !is_required, "there is no {program} (STENTOR_TEST_REQUIRE wants it)");
    is_there
}

/// Finds out whether a program is there, and says so where it is not.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !is_there {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    is_there
}
