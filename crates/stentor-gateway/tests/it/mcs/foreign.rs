//! Unmodified clients of GCM and FCM, which receive messages sent to their token.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use stentor_core::id::{DeviceId, MessageId};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::namespace::{ForeignClient, judged};
use super::program::KEY;
use super::push_service::PushService;
use crate::room::{Room, to};

struct Listening {
    room: Room,
    service: PushService,
    device: DeviceId,
    lines: Lines<BufReader<ChildStdout>>,
    _client: Child,
}

impl Listening {
    /// Lets a client register and connect.
    async fn start(client: ForeignClient) -> Self {
        let room = Room::new().await;
        let service = PushService::start(&room.gateway).await;
        let mut command = client.command(&service.authority, &room.app.raw().to_string(), KEY);
        let mut client =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("a client");
        let mut lines = BufReader::new(client.stdout.take().expect("its words")).lines();
        let token = step(&mut lines, "token").await;
        let device = room.gateway.holder(token.as_str().expect("a token")).await.expect("a device").device;
        while !room.gateway.is_connected(device) {
            tokio::task::yield_now().await;
        }
        Self { room, service, device, lines, _client: client }
    }

    async fn send(&self) -> MessageId {
        self.room.send(to(&[self.device])).await
    }

    /// Checks that a message arrives as it was sent.
    async fn gets(&mut self, sent: MessageId) {
        let got = step(&mut self.lines, "message").await;
        let id = sent.to_string();
        assert_eq!(
            (&got[0]["notification"], &got[0]["fcmMessageId"]),
            (&json!({"title": "Hello"}), &json!(id))
        );
        assert_eq!(got[1], id);
    }

    /// Waits until the ledger has a message as delivered.
    async fn is_delivered(&self, sent: MessageId) {
        let delivered = async {
            while self.room.delivered(sent).await < 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), delivered).await.expect("it is confirmed");
    }
}

async fn step(lines: &mut Lines<BufReader<ChildStdout>>, step: &str) -> Value {
    loop {
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
        let line = line.expect("a word of the client in time").expect("read").expect("more than this");
        match serde_json::from_str::<Value>(&line) {
            Ok(said) if said["step"] == step => return said["value"].clone(),
            _ => {}
        }
    }
}

#[test]
fn firebase_messaging_for_python_gets_and_acknowledges_what_is_sent_to_its_token() {
    let name = "mcs::foreign::firebase_messaging_for_python_gets_and_acknowledges_what_is_sent_to_its_token";
    judged(name, ForeignClient::FirebaseMessaging, async || {
        let mut listening = Listening::start(ForeignClient::FirebaseMessaging).await;
        for _ in 0..2 {
            let sent = listening.send().await;
            listening.gets(sent).await;
            listening.is_delivered(sent).await;
        }
    });
}

/// This client acknowledges only at its next connection.
#[test]
fn push_receiver_for_node_gets_what_is_sent_and_confirms_it_at_its_return() {
    let name = "mcs::foreign::push_receiver_for_node_gets_what_is_sent_and_confirms_it_at_its_return";
    judged(name, ForeignClient::PushReceiver, async || {
        let mut listening = Listening::start(ForeignClient::PushReceiver).await;
        let sent = listening.send().await;
        listening.gets(sent).await;
        assert_eq!(listening.room.delivered(sent).await, 0);
        listening.service.end_first();
        listening.is_delivered(sent).await;
        let again = listening.send().await;
        listening.gets(again).await;
    });
}
