//! Our own clients in other languages: the examples on their pages run, and a retry has no second effect.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::server::Server;

/// Number of 503 responses that a client gets before its request reaches the server.
const REFUSALS: usize = 2;
/// The `Retry-After` of the first of them; longer than the clients' own delays in these tests.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[test]
fn the_examples_of_the_python_client_run() {
    let Some(python) = Python::installed() else { return };
    let shop = Shop::open();
    let page = std::fs::read_to_string(client("python").join("README.md")).unwrap();
    let output: String =
        blocks(&page, "python").iter().map(|code| shop.ran(python.command().args(["-c", code]))).collect();
    assert!(output.contains("balanced: True") && output.contains("refused: not_found (404)"), "{output}");
    assert_eq!(output.matches("dev_").count(), 3, "{output}");
}

#[test]
fn the_python_client_and_what_uses_it_are_typed() {
    let Some(python) = Python::installed() else { return };
    let directory = TempDir::new().unwrap();
    let page = std::fs::read_to_string(client("python").join("README.md")).unwrap();
    let mut mypy = python.command();
    mypy.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(directory.path().join("cache"));
    mypy.arg(client("python").join("src/stentor")).arg(client("python").join("tests/story.py"));
    mypy.arg(client("python").join("tests/sealed.py"));
    for (number, code) in blocks(&page, "python").iter().enumerate() {
        let file = directory.path().join(format!("example_{number}.py"));
        std::fs::write(&file, code).unwrap();
        mypy.arg(file);
    }
    ran(mypy.env("MYPYPATH", client("python").join("src")));
}

#[test]
fn the_python_client_repeats_under_one_key_and_one_campaign_is_made() {
    let Some(python) = Python::installed() else { return };
    for manner in ["sync", "async"] {
        let shop = Shop::open();
        shop.repeats(python.command().arg(client("python").join("tests/story.py")).arg(manner));
    }
}

#[test]
fn the_example_of_the_typescript_client_runs() {
    let Some(package) = built_package() else { return };
    let shop = Shop::open();
    let page = std::fs::read_to_string(client("typescript").join("README.md")).unwrap();
    let file = package.path().join("example.mjs");
    std::fs::write(&file, &blocks(&page, "js")[0]).unwrap();
    let output = shop.ran(Command::new("node").arg(file));
    assert!(output.contains("balanced: true") && output.contains("refused: not_found (404)"), "{output}");
    assert_eq!(output.matches("dev_").count(), 1, "{output}");
}

#[test]
fn the_typescript_client_repeats_under_one_key_and_one_campaign_is_made() {
    let Some(package) = built_package() else { return };
    let file = package.path().join("story.mjs");
    std::fs::copy(client("typescript").join("tests/story.mjs"), &file).unwrap();
    Shop::open().repeats(Command::new("node").arg(file));
}

/// A server with an app, and the app's key.
struct Shop {
    directory: TempDir,
    server: Server,
    key: String,
}

impl Shop {
    fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start(directory.path());
        let made = server.ok(&["app", "create", "shop"]);
        server.ok(&["app", "credential", "set", "--provider", "null"]);
        let key = made["key"]["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        Self { directory, server, key }
    }

    fn ran(&self, command: &mut Command) -> String {
        let url = self.server.process.url();
        ran(command.current_dir(self.directory.path()).env("STENTOR_URL", url).env("STENTOR_KEY", &self.key))
    }

    /// Sends one message with a client, through a server that is first busy and then breaks the connection after the request.
    fn repeats(&self, client: &mut Command) {
        let stub = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", stub.local_addr().unwrap());
        let behind = self.server.process.url().trim_start_matches("http://").to_owned();
        let seen = std::thread::spawn(move || stand_between(&stub, &behind));
        let output = self.ran(client.env("STENTOR_BUSY_URL", url));
        let keys = finished(seen);
        assert!(output.contains("is content"), "{output}");
        assert_eq!(keys.len(), REFUSALS + 2, "{keys:?}");
        assert!(keys[0].len() > 8 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        let campaigns = self.server.ok(&["campaign", "list"]);
        assert_eq!(campaigns["campaigns"].as_array().map(Vec::len), Some(1), "{campaigns}");
    }
}

/// Refuses some requests, passes one to the server and breaks the connection without its response, and passes on the next one; returns the
/// idempotency keys in order.
fn stand_between(stub: &TcpListener, server: &str) -> Vec<String> {
    let (mut keys, mut refused) = (Vec::new(), None);
    for number in 0..REFUSALS + 2 {
        let (mut caller, _) = stub.accept().unwrap();
        let waited = refused.take().map(|at: Instant| at.elapsed());
        // A timer of Node may fire a millisecond early.
        let enough = RETRY_AFTER.saturating_sub(Duration::from_millis(20));
        assert!(waited.is_none_or(|waited| waited >= enough), "again after {waited:?}");
        let (request, key) = read_request(&caller);
        keys.push(key);
        if number == 0 {
            refused = Some(Instant::now());
        }
        let answer = if number < REFUSALS { busy(number == 0) } else { asked(server, &request) };
        if number != REFUSALS {
            caller.write_all(&answer).unwrap();
        }
    }
    keys
}

/// Writes the response of a busy server.
fn busy(says_when: bool) -> Vec<u8> {
    let seconds = RETRY_AFTER.as_secs();
    let when = if says_when { format!("retry-after: {seconds}\r\n") } else { String::new() };
    format!("HTTP/1.1 503 Busy\r\n{when}content-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
}

/// Reads a request with its body, and its idempotency key.
fn read_request(caller: &TcpStream) -> (Vec<u8>, String) {
    let mut reader = BufReader::new(caller);
    let (mut head, mut key, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let (name, value) = line.trim().split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => value.clone_into(&mut key),
            "content-length" => length = value.parse().unwrap(),
            "connection" => continue,
            _ => {}
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut request = format!("{head}connection: close\r\n\r\n").into_bytes();
    let start = request.len();
    request.resize(start + length, 0);
    reader.read_exact(&mut request[start..]).unwrap();
    (request, key)
}

fn asked(server: &str, request: &[u8]) -> Vec<u8> {
    let mut server = TcpStream::connect(server).unwrap();
    server.write_all(request).unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    answer
}

fn finished<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Lists the code blocks of a language in a page.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let pieces = page.split(&start).skip(1);
    pieces.map(|piece| piece.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The generated half of each client, which is not in git: generated once for all tests.
static GENERATED: LazyLock<()> = LazyLock::new(|| {
    let root = client("..");
    ran(Command::new(env!("CARGO")).args(["xtask", "codegen", "--clients"]).current_dir(root));
});

/// A Python with the dependencies of our client.
pub(crate) struct Python(PathBuf);

impl Python {
    pub(crate) fn installed() -> Option<Self> {
        let pins = client("python").join("requirements.txt");
        let home = home("client-python", &pins)?;
        LazyLock::force(&GENERATED);
        Some(Self(home))
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.0.join("bin/python")
    }

    /// Returns the path of the client.
    pub(crate) fn path() -> PathBuf {
        client("python").join("src")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.program());
        command.env("PYTHONPATH", Self::path());
        command
    }
}

/// Builds the TypeScript client with its compiler and installs it where Node finds it by its name.
pub(crate) fn built_package() -> Option<TempDir> {
    let source = client("typescript");
    let home = home("client-typescript", &source.join("package-lock.json"))?;
    LazyLock::force(&GENERATED);
    let package = TempDir::new().unwrap();
    let inside = package.path().join("node_modules/stentor-client");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::copy(source.join("package.json"), inside.join("package.json")).unwrap();
    let tsc = home.join("node_modules/.bin/tsc");
    ran(Command::new(tsc).arg("--project").arg(&source).arg("--outDir").arg(inside.join("dist")));
    Some(package)
}

pub(crate) fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{errors}");
    printed.into_owned()
}

pub(crate) fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(name)
}

/// Finds the test dependencies of a client, as installed by `tests/judges/install`; without them the test is skipped, unless it is
/// required.
pub(crate) fn home(name: &str, pins: &Path) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join(name);
    if std::fs::read(home.join("pins")).ok() == std::fs::read(pins).ok() {
        return Some(home);
    }
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let why = format!("{name} is not installed: run tests/judges/install --full");
    let is_required = required.split(',').any(|word| word.trim() == "judges");
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE wants it)");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    None
}
