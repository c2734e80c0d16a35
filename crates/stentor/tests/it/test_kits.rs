//! The test kits of the emulators: their own tests, and the code on their pages, which must be that of these tests.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::clients::{self, Python, blocks, client, ran};
use crate::device_clients::is_installed;
use crate::faces::{home, home_wanted_by};
use crate::process::{PROGRAM, Process};

/// The pages with lines that users copy, and the numbers of their blocks in each language.
const PAGES: [(&str, &[(&str, usize)]); 4] = [
    ("docs/test-kits.md", &[("python", 2), ("js", 3), ("java", 2), ("go", 1)]),
    ("clients/python-emulators/README.md", &[("python", 1)]),
    ("clients/node-emulators/README.md", &[("js", 1)]),
    ("clients/java-emulators/README.md", &[("java", 1)]),
];

/// The files that run, for each language.
const SOURCES: [(&str, &[&str]); 4] = [
    (
        "python",
        &["clients/python-emulators/tests/test_first.py", "clients/python-emulators/tests/test_sdks.py"],
    ),
    ("js", &["clients/node-emulators/tests/first.test.mjs", "clients/node-emulators/tests/sdks.test.mjs"]),
    (
        "java",
        &[
            "clients/java-emulators/src/test/java/stentor/junit/FirstTest.java",
            "clients/java-emulators/src/test/java/stentor/junit/SdksTest.java",
        ],
    ),
    ("go", &["tests/judges/clients/go/main.go"]),
];

#[test]
fn the_lines_on_the_pages_of_the_test_kits_are_those_of_their_tests() {
    for (page, expected) in PAGES {
        let text = read(page);
        for (language, count) in expected {
            let blocks = blocks(&text, language);
            assert_eq!(blocks.len(), *count, "{page}, {language}");
            let (_, files) = SOURCES.iter().find(|(name, _)| name == language).unwrap();
            let sources: Vec<String> = files.iter().map(|file| flat(&read(file))).collect();
            for block in blocks {
                let runs = sources.iter().any(|source| source.contains(&flat(&block)));
                assert!(runs, "{page} has lines that no test runs:\n{block}");
            }
        }
    }
}

#[test]
fn the_kit_for_pytest_passes_its_tests() {
    let Some(python) = home("python", "requirements.txt") else { return };
    let kit = client("python-emulators");
    let mut pytest = with_program(Command::new(python.join("bin/python")));
    pytest.env("PYTHONPATH", kit.join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    let options = ["-p", "pytest_stentor._fixtures", "-p", "no:cacheprovider", "--numprocesses", "2"];
    pytest.args(["-m", "pytest", "-q"]).args(options).arg("tests");
    ran(pytest.current_dir(kit));
}

#[test]
fn the_kit_for_pytest_and_its_tests_are_typed() {
    let Some(python) = Python::installed() else { return };
    let Some(libraries) = home("python", "requirements.txt") else { return };
    let cache = TempDir::new().unwrap();
    let mut mypy = Command::new(python.program());
    mypy.args(["-m", "mypy", "--python-executable"]).arg(libraries.join("bin/python"));
    mypy.arg("--cache-dir").arg(cache.path()).args(["src/pytest_stentor", "tests"]);
    ran(mypy.current_dir(client("python-emulators")));
}

#[test]
fn the_kit_for_node_passes_its_tests() {
    let Some(project) = node_project() else { return };
    let node = |arguments: &[&str]| {
        ran(with_program(Command::new("node")).args(arguments).current_dir(project.path()))
    };
    node(&["--test", "emulator.test.mjs", "first.test.mjs", "sdks.test.mjs"]);
    let types = ["node_modules/typescript/bin/tsc", "--strict", "--noEmit", "--module", "nodenext"];
    node(&[&types[..], &["--moduleResolution", "nodenext", "types.ts"]].concat());
}

#[test]
fn the_kit_for_node_passes_its_first_test_in_vitest_and_jest_in_files_beside_each_other() {
    let Some(project) = node_project() else { return };
    let Some(runners) = home("node-runners", "package-lock.json") else { return };
    let modules = project.path().join("node_modules");
    for name in ["vitest", "jest", "@jest"] {
        symlink(runners.join("node_modules").join(name), modules.join(name)).unwrap();
    }
    let text = read("clients/node-emulators/tests/first.test.mjs");
    let text = text.replace("before, test", "beforeAll, test").replace("{ after,", "{ afterAll,");
    let text = text.replace("before(async", "beforeAll(async").replace("after(async", "afterAll(async");
    let run = |runner: &str, import: &str, arguments: &[&str]| {
        let folder = project.path().join(runner);
        std::fs::create_dir(&folder).unwrap();
        for file in ["one.test.mjs", "other.test.mjs"] {
            std::fs::write(folder.join(file), text.replace("node:test", import)).unwrap();
        }
        ran(with_program(Command::new("node")).args(arguments).current_dir(project.path()));
    };
    run("vitest", "vitest", &["node_modules/vitest/vitest.mjs", "run", "--dir", "vitest"]);
    std::fs::write(project.path().join("package.json"), "{}").unwrap();
    let jest = ["--experimental-vm-modules", "node_modules/jest/bin/jest.js", "--no-cache", "--testMatch"];
    run("jest", "@jest/globals", &[&jest[..], &["**/jest/*.test.mjs"]].concat());
}

#[test]
fn the_kit_for_junit_passes_its_tests() {
    let kit = client("java-emulators");
    let Some(libraries) = clients::home("kit-java", &kit.join("pom.xml")) else { return };
    if !is_installed("javac") {
        return;
    }
    let classes = TempDir::new().unwrap();
    let path = format!("{}:{}", classes.path().display(), libraries.join("lib/*").display());
    let sources =
        ["main", "test"].map(|part| java_sources(&kit.join("src").join(part).join("java/stentor/junit")));
    let mut javac = Command::new("javac");
    javac.args(["--release", "17", "-Xlint:all,-processing,-classfile", "-Werror", "-cp", &path, "-d"]);
    ran(javac.arg(classes.path()).args(sources.concat()));
    let mut junit = with_program(Command::new("java"));
    junit.args(["-cp", &path, "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]);
    ran(junit.args(["--fail-if-no-tests", "--scan-classpath"]).arg(classes.path()));
}

#[test]
fn firebase_admin_for_go_sends_to_the_emulator_that_its_options_name() {
    let Some(judge) = home_wanted_by(&["judges", "go"], "go", "main.go") else { return };
    let folder = TempDir::new().unwrap();
    let account = folder.path().join("account.json");
    let (directory, account) = (folder.path().to_str().unwrap(), account.to_str().unwrap());
    let arguments =
        ["emulate", "fcm", "--control", "127.0.0.1:0", "--ca-dir", directory, "--credential", account];
    let keeping = [&arguments[..], &["--keep-messages", "1"]].concat();
    let emulator = Process::start(&keeping, &folder.path().join("emulator.log"));
    let mut sender = Command::new(judge.join("judge"));
    sender.env("SSL_CERT_FILE", folder.path().join("ca.pem")).args([account, "at", emulator.url()]);
    let report: Value = serde_json::from_str(&ran(&mut sender)).unwrap();
    assert_eq!(report["ok"], true, "{report}");
    let control = emulator.ready["control"].as_str().unwrap();
    let arrived = ran(Command::new("curl").args(["--silent", "--fail", &format!("{control}/messages")]));
    let arrived: Value = serde_json::from_str(&arrived).unwrap();
    assert_eq!(arrived["messages"][0]["token"], "phone", "{arrived}");
}

fn read(file: &str) -> String {
    std::fs::read_to_string(client("..").join(file)).unwrap()
}

/// Returns the lines without their indentation.
fn flat(code: &str) -> String {
    code.trim().lines().map(|line| format!("{}\n", line.trim())).collect()
}

fn with_program(mut command: Command) -> Command {
    command.env("STENTOR_BIN", PROGRAM);
    command
}

fn java_sources(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension() == Some(OsStr::new("java"))).collect()
}

/// Makes a folder with the tests of the kit for Node, in which it is installed beside the libraries.
fn node_project() -> Option<TempDir> {
    let kit = client("node-emulators");
    let compiler = clients::home("client-typescript", &client("typescript").join("package-lock.json"))?;
    let google = home("node", "package-lock.json")?;
    let apple = home("node-apns", "package-lock.json")?;
    let project = TempDir::new().unwrap();
    let modules = project.path().join("node_modules");
    std::fs::create_dir_all(modules.join("stentor-emulators/src")).unwrap();
    std::fs::copy(kit.join("package.json"), modules.join("stentor-emulators/package.json")).unwrap();
    copy_files(&kit.join("src"), &modules.join("stentor-emulators/src"));
    copy_files(&kit.join("tests"), project.path());
    let link =
        |home: &Path, name: &str| symlink(home.join("node_modules").join(name), modules.join(name)).unwrap();
    link(&compiler, "typescript");
    link(&google, "firebase-admin");
    link(&apple, "apns2");
    link(&apple, "@parse");
    Some(project)
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let file = entry.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}
