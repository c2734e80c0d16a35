//! A well-behaved app that sends messages and records their results.

use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};

use crate::harness::Server;

/// Pause between two of its messages.
const PAUSE: Duration = Duration::from_millis(20);

/// Connections on which one message is tried: with a deadline of a second for a head, a busy machine may close one before the server has
/// read from it.
const ATTEMPTS: usize = 3;

pub(super) struct Victim {
    client: Client,
    url: String,
    key: String,
    message: Value,
}

impl Victim {
    pub(super) async fn new(server: &Server) -> Self {
        let tenant = server.sender().await;
        let target = json!({"token": {"platform": "android", "provider": "null", "token": "t"}});
        let message = json!({"target": target, "data": {"k": "v".repeat(500)}});
        // The server closes a connection after a second of idleness, possibly at the moment of its next use.
        let client = Client::builder().no_proxy().pool_idle_timeout(Duration::from_millis(500));
        let client = client.build().expect("a client");
        Self { client, url: format!("{}/v1/messages", server.url), key: tenant.key, message }
    }

    /// Sends one message; returns the status and the duration.
    pub(super) async fn send(&self) -> (u16, Duration) {
        let started_at = Instant::now();
        for _ in 0..ATTEMPTS {
            let request = self.client.post(&self.url).bearer_auth(&self.key).json(&self.message);
            if let Ok(answer) = request.send().await {
                return (answer.status().as_u16(), started_at.elapsed());
            }
        }
        (0, started_at.elapsed())
    }

    /// Sends messages for a time.
    pub(super) async fn measure(&self, span: Duration) -> Vec<(u16, Duration)> {
        self.beside(tokio::time::sleep(span)).await.1
    }

    /// Sends messages while other work runs.
    pub(super) async fn beside<T>(&self, other: impl Future<Output = T>) -> (T, Vec<(u16, Duration)>) {
        tokio::pin!(other);
        let mut times = Vec::new();
        loop {
            let one = async {
                let sent = self.send().await;
                tokio::time::sleep(PAUSE).await;
                sent
            };
            tokio::pin!(one);
            tokio::select! {
                done = &mut other => return (done, times),
                sent = &mut one => times.push(sent),
            }
        }
    }
}
