//! A device of the gateway that is connected over Server-Sent Events; a message counts as confirmed once it is written.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A device that is registered.
pub(super) struct FeatureDevice {
    http: Client,
    url: String,
    pub(super) token: String,
    secret: String,
}

/// A registered device that is connected.
pub(super) struct EventDevice {
    response: Response,
    text: String,
}

impl FeatureDevice {
    /// Registers one.
    pub(super) async fn register(http: &Client, url: &str, key: &str) -> anyhow::Result<Self> {
        let request = http.post(format!("{url}/gateway/v1/devices")).bearer_auth(key).json(&json!({}));
        let joined: Value = request.send().await?.error_for_status()?.json().await?;
        let text = |name: &str| joined[name].as_str().map(str::to_owned).context("a device without a token");
        Ok(Self { http: http.clone(), url: url.to_owned(), token: text("token")?, secret: text("secret")? })
    }

    /// Connects it.
    pub(super) async fn connect(&self) -> anyhow::Result<EventDevice> {
        let request = self.http.get(format!("{}/gateway/v1/events?confirm=written", self.url));
        let response =
            request.basic_auth(&self.token, Some(&self.secret)).send().await?.error_for_status()?;
        Ok(EventDevice { response, text: String::new() })
    }

    /// Sends a message to its app.
    pub(super) async fn says(&self, id: &str, data: Value) -> anyhow::Result<()> {
        let request = self.http.post(format!("{}/gateway/v1/upstream", self.url));
        let body = json!({"message_id": id, "data": data});
        let sent = request.basic_auth(&self.token, Some(&self.secret)).json(&body).send().await?;
        ensure!(sent.status().as_u16() == 202, "the device's message was answered with {}", sent.status());
        Ok(())
    }
}

impl EventDevice {
    /// Waits for the next message.
    pub(super) async fn next(&mut self) -> anyhow::Result<Value> {
        timeout(PATIENCE, self.read()).await.context("no message came to the device in 20 seconds")?
    }

    /// Reads messages until the data of one has `mark`, and returns those before it.
    pub(super) async fn until(&mut self, mark: &str) -> anyhow::Result<Vec<Value>> {
        let mut before = Vec::new();
        loop {
            let message = self.next().await?;
            if message["data"]["mark"] == mark {
                return Ok(before);
            }
            before.push(message);
        }
    }

    async fn read(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                if let Some(data) = data {
                    return Ok(serde_json::from_str(&data)?);
                }
                continue;
            }
            let piece = self.response.chunk().await?.context("the stream of the device ended")?;
            self.text.push_str(std::str::from_utf8(&piece)?);
        }
    }
}
