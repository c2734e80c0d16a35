//! Requests to a dying or a locked server: repeating them is harmless.

use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;

const BODY: &str = r#"{"target": "everyone", "data": {"k": "v"}}"#;

/// A response as received over the wire.
struct Answer {
    status: u16,
    headers: String,
    body: Value,
}

/// Opens a connection and writes a request with an idempotency key; nothing is read yet.
fn begin(server: &Server, secret: &str, key: &str) -> TcpStream {
    let address = server.process.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = BODY.len();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\nIdempotency-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{BODY}"
    )
    .unwrap();
    stream
}

fn finish(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: headers.to_ascii_lowercase(), body: serde_json::from_str(body).unwrap() }
}

fn send(server: &Server, secret: &str, key: &str) -> Answer {
    finish(begin(server, secret, key))
}

fn campaigns(server: &Server) -> usize {
    server.ok(&["campaign", "list"])["campaigns"].as_array().unwrap().len()
}

/// Starts a server with an app that may send; returns the app's key as well.
fn shop(directory: &TempDir) -> (Server, String) {
    let server = Server::start(directory.path());
    let created = server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    (server, created["key"]["secret"].as_str().unwrap().to_owned())
}

#[test]
fn a_request_repeated_after_a_kill_gets_the_first_answer_again() {
    let directory = TempDir::new().unwrap();
    let (mut server, secret) = shop(&directory);
    let first = send(&server, &secret, "order-4711");
    server.process.kill();
    assert_eq!(first.status, 202, "{}", first.body);
    let server = Server::start(directory.path());
    let again = send(&server, &secret, "order-4711");
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert!(again.headers.contains("idempotent-replayed: true"), "{}", again.headers);
    assert_eq!(campaigns(&server), 1);
}

/// If the server is killed before the response is read, the message may be stored or not; the client cannot know, and need not.
#[test]
fn a_request_whose_answer_a_kill_swallowed_makes_one_campaign_when_repeated() {
    let directory = TempDir::new().unwrap();
    let (mut server, secret) = shop(&directory);
    for round in 0..5 {
        let key = format!("order-{round}");
        let unanswered = begin(&server, &secret, &key);
        // In each round the server makes some more progress, by the number of requests answered in between.
        for _ in 0..round {
            assert_eq!(server.run(&["app", "list"]).0, 0);
        }
        server.process.kill();
        drop(unanswered);
        server = Server::start(directory.path());
        let answer = send(&server, &secret, &key);
        assert_eq!(answer.status, 202, "{}", answer.body);
        let again = send(&server, &secret, &key);
        assert_eq!(again.body, answer.body, "one message, whoever asks again");
        assert_eq!(campaigns(&server), round + 1);
    }
}

#[test]
fn a_store_that_cannot_write_is_told_with_503_and_when_to_come_again() {
    let directory = TempDir::new().unwrap();
    let (server, secret) = shop(&directory);
    let file = rusqlite::Connection::open(directory.path().join("data/stentor.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = send(&server, &secret, "order-1");
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")), "{}", refused.body);
    assert!(refused.headers.contains("content-type: application/problem+json"), "{}", refused.headers);
    assert!(refused.headers.contains("\r\nretry-after: "), "{}", refused.headers);
    file.execute_batch("ROLLBACK").unwrap();
    drop(file);
    let accepted = send(&server, &secret, "order-1");
    assert_eq!((accepted.status, campaigns(&server)), (202, 1), "{}", accepted.body);
}
