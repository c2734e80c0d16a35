//! A kill between the storing of a receipt for a sender over CCS and the update of the ledger.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use stentor_stage::ccs_client::CcsAppServer;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);
const SETTINGS: &str = "[gateway]\nccs_listen = \"127.0.0.1:0\"\n";
/// Makes the server hang in the transaction that records a delivery: the sender's receipt is committed by then.
const HOLD: &str = "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;
     CREATE TRIGGER hold BEFORE UPDATE ON chunks BEGIN SELECT count(*) FROM endless; END;";

/// A server with an app, an app server that speaks XMPP, and a device of the gateway.
struct Scene {
    directory: TempDir,
    server: Server,
    client: Client,
    app: String,
    key: String,
    device: Value,
}

impl Scene {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start_with(directory.path(), SETTINGS);
        let made = server.ok(&["app", "create", "shop"]);
        let scopes = ["app", "key", "create", "--name", "all", "--scope", "send", "--scope", "join"];
        let key = server.ok(&scopes)["secret"].as_str().unwrap().to_owned();
        let app = made["app"]["id"].as_str().or(made["id"].as_str()).unwrap().to_owned();
        let client = Client::new();
        let device = client.post(format!("{}/gateway/v1/devices", server.process.url())).bearer_auth(&key);
        let device = device.json(&json!({})).send().await.unwrap().json().await.unwrap();
        Self { directory, server, client, app, key, device }
    }

    async fn app_server(&self) -> CcsAppServer<TcpStream> {
        let address = std::fs::read_to_string(self.directory.path().join("data/ccs.addr")).unwrap();
        let stream = TcpStream::connect(address.trim()).await.unwrap();
        CcsAppServer::log_in(stream, "fcm.googleapis.com", &self.app, &self.key).await.unwrap()
    }

    /// Prepares a request of the device.
    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let text = |name: &str| self.device[name].as_str().unwrap();
        let request = self.client.request(method, format!("{}/gateway/v1/{path}", self.server.process.url()));
        request.basic_auth(text("token"), Some(text("secret")))
    }

    /// Returns the ids of the messages that wait for the device.
    async fn waiting(&self) -> Vec<String> {
        let polled = self.ask(Method::GET, "messages?wait_seconds=20").send().await.unwrap();
        let polled: Value = polled.json().await.unwrap();
        let messages = polled["messages"].as_array().unwrap_or_else(|| panic!("{polled}"));
        messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    }

    fn confirm(&self, message: &str) -> RequestBuilder {
        self.ask(Method::POST, "receipts").json(&json!({"messages": [message]}))
    }
}

#[tokio::test]
async fn a_receipt_for_a_sender_survives_a_kill_before_the_ledger_has_the_delivery() {
    let mut scene = Scene::open().await;
    let mut sender = scene.app_server().await;
    let payload = json!({"to": scene.device["token"], "message_id": "m-1", "data": {"k": "v"},
        "delivery_receipt_requested": true});
    sender.say(&payload).await.unwrap();
    assert_eq!(sender.hear().await.unwrap()["message_type"], "ack");
    let message = scene.waiting().await.remove(0);
    // Without a connected sender the receipt is not taken over before the kill.
    drop(sender);

    let file = rusqlite::Connection::open(scene.directory.path().join("data/stentor.db")).unwrap();
    file.execute_batch(HOLD).unwrap();
    let count = |sql: &str| file.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    let unanswered = tokio::spawn(scene.confirm(&message).send());
    let patience = Instant::now() + PATIENCE;
    while count("SELECT count(*) FROM upstream WHERE kind = 1") == 0 {
        assert!(Instant::now() < patience, "{}", scene.server.process.log());
        tokio::task::yield_now().await;
    }
    scene.server.process.kill();
    assert!(unanswered.await.unwrap().is_err(), "the device was not told that its receipt is on disk");
    file.execute_batch("DROP TRIGGER hold; DROP VIEW endless").unwrap();
    drop(file);

    scene.server = Server::start_with(scene.directory.path(), SETTINGS);
    assert_eq!(scene.waiting().await, std::slice::from_ref(&message), "the ledger knows of no delivery yet");
    assert!(scene.confirm(&message).send().await.unwrap().status().is_success());
    let mut sender = scene.app_server().await;
    let receipt = sender.hear().await.unwrap();
    assert_eq!(receipt["data"]["original_message_id"], "m-1", "{receipt}");
    let file = rusqlite::Connection::open(scene.directory.path().join("data/stentor.db")).unwrap();
    let receipts: u32 =
        file.query_row("SELECT count(*) FROM upstream WHERE kind = 1", [], |row| row.get(0)).unwrap();
    assert_eq!(receipts, 1, "a delivery that is confirmed twice is one receipt");
    let ledger = scene.client.get(format!("{}/v1/messages/{message}/ledger", scene.server.process.url()));
    let ledger: Value = ledger.bearer_auth(&scene.key).send().await.unwrap().json().await.unwrap();
    assert_eq!((&ledger["totals"]["delivered"], &ledger["balanced"]), (&json!(1), &json!(true)), "{ledger}");
}
