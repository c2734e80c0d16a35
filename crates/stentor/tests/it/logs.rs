//! A server with an unwritable log responds, stores, sends and ends as usual.

use crate::process::{run_json, stentor};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a standard error of its own; killed when dropped.
struct Server {
    child: Child,
    url: String,
    data: PathBuf,
}

impl Server {
    fn start(directory: &Path, level: &str, errors: Stdio) -> Self {
        let (data, config) = (directory.join("data"), directory.join("stentor.toml"));
        std::fs::write(&config, format!("[log]\nlevel = \"{level}\"\n")).unwrap();
        let (folder, config) = (data.to_str().unwrap(), config.to_str().unwrap());
        let arguments =
            ["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir", folder, "--config", config];
        let mut child = stentor(&arguments).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Self { child, url: ready["url"].as_str().unwrap().to_owned(), data }
    }

    /// Sends one request, on a separate connection.
    fn ask(&self, request: &str, key: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("Host: x\r\nConnection: close\r\nAuthorization: Bearer {key}");
        let content = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
        write!(stream, "{request} HTTP/1.1\r\n{head}\r\n{content}\r\n\r\n{body}").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("{request} was not answered: {text}"));
        let (_, said) = text.split_once("\r\n\r\n").unwrap();
        (status.parse().unwrap(), serde_json::from_str(said).unwrap_or_default())
    }

    fn is_ready(&self) -> bool {
        self.ask("GET /readyz", "", &Value::Null).0 == 200
    }

    /// Creates an app that may send through `null` only; returns its key.
    fn app(&self, name: &str) -> String {
        let data = self.data.to_str().unwrap();
        let (_, made) = run_json(&["app", "create", name, "--server", &self.url, "--data-dir", data]);
        let path = format!("PUT /v1/apps/{}/credentials/null", made["id"].as_str().unwrap());
        let root = std::fs::read_to_string(self.data.join("root.key")).unwrap();
        let (status, said) = self.ask(&path, root.trim(), &json!({}));
        assert!(status < 300, "{status} {said}");
        made["key"]["secret"].as_str().unwrap().to_owned()
    }

    fn send(&self, key: &str, target: &Value) -> (u16, Value) {
        self.ask("POST /v1/messages", key, &json!({"target": target, "data": {"k": "v"}}))
    }

    fn is_accepted(&self, key: &str, message: &Value) -> bool {
        let path = format!("GET /v1/campaigns/{}", message["campaign"].as_str().unwrap());
        self.ask(&path, key, &Value::Null).1["totals"]["accepted"] == json!(1)
    }

    /// Sends SIGTERM and waits for the end of the server.
    fn end(&mut self) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
        let status = until("its end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn to_a_token() -> Value {
    json!({"token": {"platform": "android", "provider": "null", "token": "a-token"}})
}

fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Triggers a refusal, a warning about a parked lane, a delivery, and the end; each is logged.
fn works_as_ever(level: &str, errors: Stdio) {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path(), level, errors);
    for _ in 0..200 {
        let (status, said) = server.ask("GET /nowhere", "", &Value::Null);
        assert_eq!((status, &said["code"]), (404, &json!("not_found")));
    }
    let key = server.app("shop");
    // Its lane is parked for lack of a credential, with a warning.
    let device = json!({"platform": "android", "token": "waits"});
    let device = server.ask("POST /v1/devices", &key, &device).1["id"].clone();
    let waits = server.send(&key, &json!({"device": device})).1;
    for _ in 0..3 {
        let (status, message) = server.send(&key, &to_a_token());
        assert_eq!(status, 202, "{message}");
        until("a delivery", || server.is_accepted(&key, &message).then_some(()));
    }
    assert!(!server.is_accepted(&key, &waits) && server.is_ready());
    server.end();
}

#[test]
fn a_server_whose_standard_error_is_full_works_as_ever() {
    works_as_ever("info", File::options().write(true).open("/dev/full").unwrap().into());
}

#[test]
fn a_server_whose_reader_died_works_as_ever() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    works_as_ever("info", writer.into());
}

#[test]
fn a_server_whose_reader_reads_nothing_works_as_ever() {
    let (_reader, mut writer) = std::io::pipe().unwrap();
    // Almost the capacity of a pipe.
    writer.write_all(&[b'x'; 60 * 1_024]).unwrap();
    works_as_ever("trace", writer.into());
}

/// A small disk; `None`, with a note, if none can be mounted.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        let sentence = "skipped: a small tmpfs cannot be mounted here";
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "faults"), "{sentence}");
        let _nobody_reads_it = std::io::stderr().write_all(format!("{sentence}\n").as_bytes());
        None
    }

    fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.0.join("ballast")).unwrap();
        let filled = loop {
            if let Err(error) = ballast.write_all(&[0; 512]) {
                break error;
            }
        };
        assert_eq!(filled.kind(), ErrorKind::StorageFull);
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn a_server_with_data_and_log_on_a_full_disk_says_so_and_goes_on_by_itself_when_there_is_room() {
    let directory = TempDir::new().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else { return };
    let log = directory.path().join("server.log");
    let errors = File::options().create(true).append(true).open(&log).unwrap();
    let mut server = Server::start(directory.path(), "info", errors.into());
    let key = server.app("shop");
    assert_eq!((server.send(&key, &to_a_token()).0, server.is_ready()), (202, true));
    disk.fill();
    until("a refusal", || (server.send(&key, &to_a_token()).0 == 503).then_some(()));
    // The result of the health check is cached for a moment.
    until("a server that is not ready", || (!server.is_ready()).then_some(()));
    let said = server.ask("GET /readyz", "", &Value::Null).1;
    assert_eq!((&said["store"], &said["pipeline"]), (&json!("unavailable"), &json!("ok")));
    for _ in 0..60 {
        server.send(&key, &to_a_token());
    }
    assert!(!server.is_ready(), "it is still so");
    disk.empty();
    until("a server that is ready", || server.is_ready().then_some(()));
    let message = server.send(&key, &to_a_token()).1;
    until("a delivery", || server.is_accepted(&key, &message).then_some(()));
    until("the lost lines", || {
        std::fs::read_to_string(&log).unwrap().contains("lines of the log were lost").then_some(())
    });
    server.end();
}

#[test]
fn a_standard_output_that_is_full_keeps_no_server_from_serving() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let child = stentor(&arguments).stdout(full()).stderr(full()).spawn().unwrap();
    let mut server = Server { child, url: String::new(), data };
    let address = server.data.join("listen.addr");
    let address = until("its address", || std::fs::read_to_string(&address).ok());
    server.url = format!("http://{}", address.trim());
    until("a server that is ready", || server.is_ready().then_some(()));
    server.end();
}
