//! Upstream messages of devices reach the webhook of their app, even if the server is killed in between.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Process;
use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(120);
/// Number of messages of the device.
const MESSAGES: usize = 10;

/// The received requests, and whether they are answered.
#[derive(Default)]
struct Inbox {
    /// The bodies of the requests, by the header `webhook-id`.
    came: BTreeMap<String, Vec<Value>>,
    is_open: bool,
}

/// A receiver that answers no request until it is opened, and then accepts all.
#[derive(Clone)]
struct Receiver {
    url: String,
    inbox: Arc<(Mutex<Inbox>, Condvar)>,
}

impl Receiver {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, inbox: Arc::default() };
        let own = receiver.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                std::thread::spawn(move || own.serve(connection));
            }
        });
        receiver
    }

    fn serve(&self, connection: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(connection.try_clone().ok()?);
        loop {
            let (mut id, mut length) = (None, 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
                let Some((name, value)) = line.trim().split_once(": ") else {
                    if line.trim().is_empty() {
                        break;
                    }
                    continue;
                };
                match name.to_ascii_lowercase().as_str() {
                    "webhook-id" => id = Some(value.to_owned()),
                    "content-length" => length = value.parse().ok()?,
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            self.note(id?, serde_json::from_slice(&body).ok()?);
            (&connection).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()?;
        }
    }

    /// Records a request and waits until it may be answered.
    fn note(&self, id: String, said: Value) {
        let (inbox, news) = &*self.inbox;
        let mut inbox = inbox.lock().unwrap();
        inbox.came.entry(id).or_default().push(said);
        news.notify_all();
        while !inbox.is_open {
            inbox = news.wait(inbox).unwrap();
        }
    }

    fn answer_from_now_on(&self) {
        self.inbox.0.lock().unwrap().is_open = true;
        self.inbox.1.notify_all();
    }

    /// Waits until this number of different messages has arrived, each of those before once more; returns the bodies of each.
    fn different(&self, count: usize, before: &BTreeMap<String, Vec<Value>>) -> BTreeMap<String, Vec<Value>> {
        let is_missing = |inbox: &mut Inbox| {
            let has_come_again = |(id, said): (&String, &Vec<Value>)| inbox.came[id].len() > said.len();
            inbox.came.len() < count || !before.iter().all(has_come_again)
        };
        let (inbox, news) = &*self.inbox;
        let inbox = inbox.lock().unwrap();
        let (inbox, late) = news.wait_timeout_while(inbox, PATIENCE, is_missing).unwrap();
        assert!(!late.timed_out(), "{} of {count} have come: {:?}", inbox.came.len(), inbox.came);
        inbox.came.clone()
    }
}

/// Sends messages of a device; each is on disk when it is answered.
fn say(server: &Server, join_key: &str) -> Vec<String> {
    let keys: Vec<_> = (0..MESSAGES).map(|number| format!("m-{number}")).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (http, url) = (reqwest::Client::new(), server.process.url());
        let made = http.post(format!("{url}/gateway/v1/devices")).bearer_auth(join_key).json(&json!({}));
        let made: Value = made.send().await.unwrap().json().await.unwrap();
        let (token, secret) = (made["token"].as_str().unwrap(), made["secret"].as_str().unwrap());
        for key in &keys {
            let body = json!({"message_id": key, "data": {"n": key}});
            let sent = http.post(format!("{url}/gateway/v1/upstream")).basic_auth(token, Some(secret));
            assert_eq!(sent.json(&body).send().await.unwrap().status(), 202, "{key}");
        }
    });
    keys
}

#[test]
fn a_server_that_is_killed_between_keeping_and_delivering_loses_no_message_of_a_device() {
    let directory = TempDir::new().unwrap();
    let receiver = Receiver::open();
    let mut server = Server::start(directory.path());
    server.ok(&["app", "create", "kiosk"]);
    let join = server.ok(&["app", "key", "create", "--name", "devices", "--scope", "join"]);
    let put = server.ok(&["app", "webhook", "set", &receiver.url]);
    assert!(put["secret"].as_str().unwrap().starts_with("whsec_"), "{put}");
    let shown = server.ok(&["app", "webhook", "show"]);
    assert_eq!((&shown["url"], &shown["secret"]), (&json!(receiver.url), &Value::Null));
    let sent = say(&server, join["secret"].as_str().unwrap());
    let before = receiver.different(1, &BTreeMap::new());
    server.process.kill();
    let data = directory.path().join("data");
    let again = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    server = Server::of(Process::start(&again, &directory.path().join("again.log")), directory.path());
    receiver.answer_from_now_on();
    let came = receiver.different(MESSAGES, &before);
    let mut keys: Vec<_> = came.values().map(|said| said[0]["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    assert_eq!(keys, sent, "each under an id of its own");
    for id in before.keys() {
        let last = came[id].last().unwrap();
        assert_eq!(last["again"], true, "it had come before the kill: {last}");
    }
    let deleted = server.ok(&["app", "webhook", "delete"]);
    assert!(deleted["deleted"].is_string(), "{deleted}");
}
