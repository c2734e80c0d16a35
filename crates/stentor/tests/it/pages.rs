//! The sessions of the pages, run from start to end beside a fresh data directory: the output must match the page.
//!
//! The blocks of `sh`, `python` and `php` of a page are one session, in its own network namespace, so that the ports named by pages are
//! free. Comments at the beginning of a paragraph explain it; comments after a command are its expected output, in which `…` matches
//! anything, and spaces and line ends do not count. A block with `no_run` after its language is not run: it needs the network, or something
//! that belongs to others. The same applies to a block that begins with `#!`, which is a file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::clients::{Python, built_package};
use crate::faces::{has_soap_of_php, home};
use crate::process::PROGRAM;

/// Tools that the pages use and a small system may lack.
const TOOLS: [&str; 5] = ["curl", "jq", "zstd", "openssl", "python3"];
/// Timeout of a session.
const TIMEOUT_SECONDS: &str = "300";
/// Questions of a newcomer, and most lines of an answer.
const QUESTIONS: usize = 20;
const ANSWER_MAX_LINES: usize = 5;
/// Languages of executable blocks.
const LANGUAGES: [PageLanguage; 3] = [
    PageLanguage { name: "sh", program: "", comment: "#" },
    PageLanguage { name: "python", program: "python3 -", comment: "#" },
    PageLanguage { name: "php", program: "php", comment: "//" },
];
const END_OF_BLOCK: &str = "END_OF_BLOCK";

/// A language with its command, which the shell does without, and the prefix of its comments.
struct PageLanguage {
    name: &'static str,
    program: &'static str,
    comment: &'static str,
}

#[test]
fn the_sessions_of_the_readme_print_what_it_says() {
    Session::of(&["README.md"]).paste();
}

#[test]
fn the_session_of_the_guide_to_the_api_prints_what_it_says() {
    Session::of(&["docs/api.md"]).paste();
}

#[test]
fn the_session_of_the_rest_page_prints_what_it_says() {
    let Some(grpc) = home("grpc", "requirements.txt") else { return };
    let session = Session::of(&["docs/faces/rest.md"]);
    // The compiler in grpcio-tools is Google's.
    let compiler = format!("#!/bin/sh\nexec {}/bin/python -m grpc_tools.protoc -I. \"$@\"\n", grpc.display());
    session.add_program("protoc", &compiler);
    session.paste();
}

#[test]
fn the_sessions_of_the_soap_page_print_what_it_says() {
    let Some(faces) = home("faces", "requirements.txt") else { return };
    if !has_soap_of_php() {
        return;
    }
    Session::of(&["docs/faces/soap.md"]).with_programs_of(faces.join("bin")).paste();
}

#[test]
fn the_sessions_of_the_xml_rpc_page_print_what_it_says() {
    Session::of(&["docs/faces/xmlrpc.md"]).paste();
}

#[test]
fn the_sessions_of_the_grpc_page_print_what_it_says() {
    let Some(grpc) = home("grpc", "requirements.txt") else { return };
    let Some(grpcurl) = home_of_grpcurl() else { return };
    let session =
        Session::of(&["docs/faces/grpc.md"]).with_programs_of(grpcurl).with_programs_of(grpc.join("bin"));
    session.link("grpc", &grpc);
    session.paste();
}

#[test]
fn the_session_of_the_sockets_page_prints_what_it_says() {
    Session::of(&["docs/faces/socket.md"]).paste();
}

#[test]
fn the_sessions_about_being_found_print_what_the_page_says() {
    let Some(python) = Python::installed() else { return };
    Session::of(&["docs/discovery.md"]).with_python(&python).paste();
}

#[test]
fn the_sessions_of_the_clients_print_what_their_page_says() {
    let Some(python) = Python::installed() else { return };
    let Some(package) = built_package() else { return };
    let session = Session::of(&["docs/clients.md"]).with_python(&python);
    session.link("node_modules", &package.path().join("node_modules"));
    session.paste();
}

#[test]
fn who_comes_from_fcm_gets_what_the_page_says() {
    let Some(google) = home("python", "requirements.txt") else { return };
    Session::of(&["README.md", "docs/migrate-from-fcm.md"]).with_programs_of(google.join("bin")).paste();
}

#[test]
fn who_comes_from_the_legacy_api_gets_what_the_page_says() {
    Session::of(&["README.md", "docs/migrate-from-gcm.md"]).paste();
}

#[test]
fn who_comes_from_gorush_gets_what_the_page_says() {
    Session::of(&["README.md", "docs/migrate-from-gorush.md"]).paste();
}

#[test]
fn who_comes_from_rpush_gets_what_the_page_says() {
    Session::of(&["README.md", "docs/migrate-from-rpush.md"]).paste();
}

#[test]
fn each_question_of_a_newcomer_has_a_short_answer_that_leads_on() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/questions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let questions: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(questions.len(), QUESTIONS);
    for question in questions {
        let (title, answer) = question.split_once('\n').unwrap();
        let lines = answer.trim().lines().count();
        assert!(title.ends_with('?') && (1..=ANSWER_MAX_LINES).contains(&lines), "{title}: {lines} lines");
        assert!(answer.contains(".md"), "{title} leads nowhere");
    }
}

/// A part of a session, and its output according to the page.
struct PageStep {
    at: String,
    code: String,
    printed: String,
}

/// The sessions of some pages, one after the other, in a separate folder.
struct Session {
    folder: TempDir,
    steps: Vec<PageStep>,
    programs: Vec<PathBuf>,
    modules: PathBuf,
}

impl Session {
    fn of(pages: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let steps =
            pages.iter().flat_map(|page| steps(page, &std::fs::read_to_string(root.join(page)).unwrap()));
        let steps = steps.collect();
        let own = folder.path().join("programs");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir(folder.path().join("printed")).unwrap();
        let session = Self { folder, steps, programs: vec![own], modules: PathBuf::new() };
        session.link("programs/stentor", Path::new(PROGRAM));
        // Used by pages that say "from a checkout".
        for name in ["examples", "clients"] {
            session.link(name, &root.join(name));
        }
        session
    }

    fn with_programs_of(mut self, folder: PathBuf) -> Self {
        self.programs.push(folder);
        self
    }

    fn with_python(mut self, python: &Python) -> Self {
        self.modules = Python::path().canonicalize().unwrap();
        let folder = python.program().parent().unwrap().to_owned();
        self.with_programs_of(folder)
    }

    fn link(&self, name: &str, to: &Path) {
        symlink(to, self.folder.path().join(name)).unwrap();
    }

    fn add_program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.path().join("programs").join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs all steps and compares their output; if a tool of the system is missing the test is skipped.
    fn paste(&self) {
        assert!(self.steps.iter().any(|step| !step.printed.is_empty()), "no page says what is printed");
        if let Some(tool) = TOOLS.iter().find(|tool| !is_installed(tool)) {
            return skip("judges", &format!("{tool} is not installed"));
        }
        if !alone("ip link set lo up").output().is_ok_and(|output| output.status.success()) {
            return skip("rig", "no network namespace");
        }
        let output = self.run();
        let printed =
            |number: usize| std::fs::read_to_string(self.folder.path().join(format!("printed/{number}")));
        for (number, step) in self.steps.iter().enumerate() {
            let Ok(actual) = printed(number) else { panic!("{} was not reached", step.at) };
            let errors = String::from_utf8_lossy(&output.stderr);
            // The steps after the failed one were never started.
            let is_last = printed(number + 1).is_err();
            assert!(!is_last || output.status.success(), "{} failed:\n{actual}\n{errors}", step.at);
            let says = &step.printed;
            assert!(
                agrees(says, &actual),
                "{}\nthe page says:\n{says}\nthis came:\n{actual}\n{errors}",
                step.at
            );
        }
    }

    fn run(&self) -> Output {
        let mut script = String::from("set -eo pipefail\nip link set lo up\n");
        for (number, step) in self.steps.iter().enumerate() {
            let _ = writeln!(script, "{{\n{}\n}} > \"$PRINTED/{number}\"", step.code);
        }
        let file = self.folder.path().join("session.sh");
        std::fs::write(&file, script).unwrap();
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path = self.programs.iter().rev().cloned().chain(std::env::split_paths(&system));
        let mut session = alone("exec bash session.sh");
        session.current_dir(self.folder.path()).env_clear();
        session.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", self.folder.path());
        session.env("PRINTED", self.folder.path().join("printed")).env("PYTHONPATH", &self.modules);
        session.env("LANG", "C.UTF-8").output().unwrap()
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Prepares a script in its own network namespace; its processes end with it.
fn alone(script: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", TIMEOUT_SECONDS, "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["--map-root-user", "sh", "-c", script]);
    command
}

fn home_of_grpcurl() -> Option<PathBuf> {
    crate::faces::home_wanted_by(&["judges", "go"], "grpcurl", "go.mod")
}

fn skip(word: &str, why: &str) {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|one| one.trim() == word);
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE wants it)");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Lists the steps of all executable blocks of a page.
fn steps(page: &str, text: &str) -> Vec<PageStep> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<_> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let is_program = block.first().is_some_and(|line| line.starts_with("#!"));
        if let Some(language) = LANGUAGES.iter().find(|language| language.name == info && !is_program) {
            found.extend(steps_of_block(&format!("{page}:{}", number + 1), &block, language));
        }
    }
    found
}

/// Splits a block after each stated output, and after each background command, which may print at any time. A block in a language other
/// than the shell's is one step.
fn steps_of_block(at: &str, block: &[&str], language: &PageLanguage) -> Vec<PageStep> {
    let PageLanguage { program, comment, .. } = *language;
    let mut steps = vec![PageStep { at: at.to_owned(), code: String::new(), printed: String::new() }];
    let mut is_behind_code = false;
    for line in block {
        let step = steps.last_mut().expect("there is one");
        let runs_on =
            step.code.lines().last().is_some_and(|line| line.split(" #").next().is_some_and(is_beside));
        match line.strip_prefix(comment) {
            Some(comment_text) if is_behind_code => step.printed.push_str(comment_text),
            _ if program.is_empty() && (runs_on || !step.printed.is_empty()) && !line.is_empty() => {
                let code = format!("{line}\n");
                steps.push(PageStep { at: format!("{at} `{line}`"), code, printed: String::new() });
                is_behind_code = !line.starts_with(comment);
            }
            comment_text => {
                step.code.push_str(line);
                step.code.push('\n');
                is_behind_code = !line.is_empty() && (is_behind_code || comment_text.is_none());
            }
        }
    }
    if !program.is_empty() {
        let code = &steps[0].code;
        steps[0].code = format!("{program} <<'{END_OF_BLOCK}'\n{code}{END_OF_BLOCK}");
    }
    steps
}

/// Returns true if a shell command runs in the background.
fn is_beside(command: &str) -> bool {
    let command = command.trim_end();
    command.ends_with('&') && !command.ends_with("&&")
}

/// Returns true if the output matches the page's text, in which `…` matches anything; a page without a stated output matches any.
fn agrees(page: &str, actual: &str) -> bool {
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let (page, actual) = (dense(page), dense(actual));
    if page.is_empty() {
        return true;
    }
    let pieces: Vec<_> = page.split('…').collect();
    let [first, between @ .., last] = pieces.as_slice() else { return page == actual };
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    for piece in between {
        let Some(place) = rest.find(piece) else { return false };
        rest = &rest[place + piece.len()..];
    }
    rest.ends_with(last)
}
