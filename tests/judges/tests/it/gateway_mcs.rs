//! Device clients of GCM and FCM against the server's own ports: they find it under their built-in host names, register, receive the
//! messages that their app sends to the issued token, and confirm them.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::authority::RoomAuthority;
use crate::client::Client;
use crate::gateway_server::{GatewayServer, app_number, text};
use crate::room::{Room, judge};

/// The ports to which these clients send requests and connect.
const HTTPS_PORT: u16 = 443;
const MCS_PORT: u16 = 5_228;
/// The time limit of one step of a client.
const STEP_MAX: Duration = Duration::from_secs(60);

/// A client that has registered and listens.
struct Listening {
    server: GatewayServer,
    token: String,
    lines: Lines<BufReader<ChildStdout>>,
    _client: Child,
}

impl Listening {
    async fn start(room: &Room, client: Client) -> anyhow::Result<Self> {
        let files = RoomAuthority::make(room)?;
        let trusted = reqwest::Certificate::from_pem(&std::fs::read(&files.authority)?)?;
        let http = reqwest::Client::builder().tls_certs_only([trusted]);
        let server = GatewayServer::start(room, http, |config| {
            config.api.listen = ([127, 0, 0, 1], HTTPS_PORT).into();
            config.api.tls_cert_file.clone_from(&files.certificate);
            config.api.tls_key_file.clone_from(&files.key);
            config.gateway.mcs_listen = Some(([127, 0, 0, 1], MCS_PORT).into());
        })
        .await?;
        // The older client has no key that it could show.
        let credential = format!("/v1/apps/{}/credentials/gateway", server.app);
        server.ask("PUT", &credential, json!({"open_registration": true})).await?;
        let number = app_number(&server.app)?.to_string();
        let mut command = match client {
            Client::PushReceiver => client.command("judge.js", &files.authority),
            _ => client.command("judge.py", &files.authority),
        };
        if client == Client::PushReceiver {
            command.arg(client.home());
        }
        command.arg(number).arg(&server.key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("the client cannot be started")?;
        let lines = BufReader::new(process.stdout.take().context("piped")?).lines();
        let mut own = Self { server, token: String::new(), lines, _client: process };
        own.token = own.step("token").await?.as_str().context("a token")?.to_owned();
        Ok(own)
    }

    async fn step(&mut self, step: &str) -> anyhow::Result<Value> {
        loop {
            let line =
                tokio::time::timeout(STEP_MAX, self.lines.next_line()).await.context(step.to_owned())?;
            let line = line?.context("the client has ended")?;
            match serde_json::from_str::<Value>(&line) {
                Ok(mut said) if said["step"] == step => return Ok(said["value"].take()),
                _ => {}
            }
        }
    }

    /// Sends to the token; the message arrives as it was sent. Returns its id.
    async fn gets(&mut self) -> anyhow::Result<String> {
        let shown = json!({"title": "Hello", "body": "from the app"});
        let target = json!({"token": {"platform": "android", "provider": "gateway", "token": self.token}});
        let message = json!({"target": target, "notification": shown});
        let sent = self.server.ask("POST", "/v1/messages", message).await?;
        let got = self.step("message").await?;
        ensure!(got[0]["notification"] == shown, "{got}");
        ensure!(got[1] == sent["id"], "{got} beside {sent}");
        text(&sent, "id")
    }
}

#[test]
fn firebase_messaging_for_python_is_a_device_of_the_server() {
    let name = "gateway_mcs::firebase_messaging_for_python_is_a_device_of_the_server";
    judge(name, Client::FirebaseMessaging, async |room| {
        let mut listening = Listening::start(&room, Client::FirebaseMessaging).await?;
        for _ in 0..2 {
            let message = listening.gets().await?;
            listening.server.is_delivered(&message).await?;
        }
        listening.server.stop();
        Ok(())
    });
}

/// This client confirms only when it comes again.
#[test]
fn push_receiver_for_node_is_a_device_of_the_server() {
    let name = "gateway_mcs::push_receiver_for_node_is_a_device_of_the_server";
    judge(name, Client::PushReceiver, async |room| {
        let mut listening = Listening::start(&room, Client::PushReceiver).await?;
        for _ in 0..2 {
            listening.gets().await?;
        }
        listening.server.stop();
        Ok(())
    });
}
