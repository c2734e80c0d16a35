//! One device: it polls a node, confirms its messages, sends to its app, and switches to any other node after a failure.

use super::super::faults_state::FaultsState;
use super::super::writing::ANSWER_LIMIT;
use super::records::GatewayRecords;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::mqtt_devices::RegisteredDevice;
use tokio::time::Instant;

/// Time for which a poll waits for messages.
const WAIT_SECONDS: u64 = 5;
/// Wait before a device tries another node, in milliseconds.
const RETRY_MS: std::ops::Range<u64> = 50..500;
/// Time between two messages of a device to its app, in milliseconds.
const SAYS_EVERY_MS: std::ops::Range<u64> = 5_000..15_000;
/// One turn in this number moves a device to another node without a failure.
const MOVES_ONE_IN: u32 = 8;
/// Status codes after which the same request is repeated.
const LATER: [StatusCode; 4] = [
    StatusCode::CONFLICT,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Common parts of all devices.
pub(super) struct DeviceParts {
    http: Client,
    urls: Vec<String>,
    seed: u64,
    records: Arc<GatewayRecords>,
    state: Arc<FaultsState>,
}

/// One device.
pub(super) struct GatewayDevice {
    parts: Arc<DeviceParts>,
    number: usize,
    registered: RegisteredDevice,
    chance: StdRng,
    /// Index of its current node.
    node: usize,
    /// Received messages without an answered receipt.
    unconfirmed: Vec<String>,
    /// Number of the next message to its app, and the time to send it.
    next_said: (u64, Instant),
}

/// A request failed; the whole request is repeated.
struct Unanswered;

impl DeviceParts {
    pub(super) fn new(
        urls: Vec<String>,
        seed: u64,
        records: Arc<GatewayRecords>,
        state: Arc<FaultsState>,
    ) -> anyhow::Result<Self> {
        let http = Client::builder().connect_timeout(ANSWER_LIMIT).no_proxy().build()?;
        Ok(Self { http, urls, seed, records, state })
    }
}

impl GatewayDevice {
    pub(super) fn new(parts: Arc<DeviceParts>, number: usize, registered: RegisteredDevice) -> Self {
        let mut chance = StdRng::seed_from_u64(parts.seed.wrapping_add(number as u64));
        let node = chance.random_range(0..parts.urls.len());
        let first = Duration::from_millis(chance.random_range(0..SAYS_EVERY_MS.start));
        let next_said = (0, Instant::now() + first);
        Self { parts, number, registered, chance, node, unconfirmed: Vec::new(), next_said }
    }

    /// Runs until the task is aborted.
    pub(super) async fn run(mut self) {
        loop {
            let has_failed = self.turn().await.is_err();
            if has_failed || self.chance.random_ratio(1, MOVES_ONE_IN) {
                self.node = self.chance.random_range(0..self.parts.urls.len());
            }
            if has_failed {
                let wait = self.chance.random_range(RETRY_MS);
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
        }
    }

    async fn turn(&mut self) -> Result<(), Unanswered> {
        self.confirm().await?;
        self.say().await?;
        self.poll().await?;
        self.confirm().await
    }

    async fn poll(&mut self) -> Result<(), Unanswered> {
        let limit = Duration::from_secs(WAIT_SECONDS) + ANSWER_LIMIT;
        let wait = [("wait_seconds", WAIT_SECONDS)];
        let request = self.request(Method::GET, "messages").query(&wait);
        let said = self.ask(request, limit).await?;
        if let Some(count) = said["deleted"].as_u64() {
            let id = &self.registered.id;
            self.parts.records.note_strange(format!("{count} messages of {id} were deleted"));
        }
        for message in said["messages"].as_array().into_iter().flatten() {
            let Some(id) = message["id"].as_str() else {
                self.parts.records.note_strange(format!("a message has no id: {message}"));
                continue;
            };
            self.parts.records.note_got(self.number, id);
            self.unconfirmed.push(id.to_owned());
        }
        Ok(())
    }

    /// Sends receipts for its messages; an answered receipt is on disk.
    async fn confirm(&mut self) -> Result<(), Unanswered> {
        if self.unconfirmed.is_empty() {
            return Ok(());
        }
        let request = self.request(Method::POST, "receipts").json(&json!({"messages": self.unconfirmed}));
        let said = self.ask(request, ANSWER_LIMIT).await?;
        let messages = std::mem::take(&mut self.unconfirmed);
        // A smaller number: some were confirmed before, or are not in the ledger yet and come again.
        if said["confirmed"].as_u64() == Some(messages.len() as u64) {
            self.parts.records.note_confirmed(self.number, messages);
        }
        Ok(())
    }

    /// Sends a message to its app when it is due, with the same key until it is answered.
    async fn say(&mut self) -> Result<(), Unanswered> {
        let (number, at) = self.next_said;
        if self.parts.state.is_over() || Instant::now() < at {
            return Ok(());
        }
        let name = format!("m-{number}");
        let body = json!({"message_id": name, "data": {"name": name}});
        let request = self.request(Method::POST, "upstream").json(&body);
        self.ask(request, ANSWER_LIMIT).await?;
        self.parts.records.note_sent(self.number, name);
        let wait = Duration::from_millis(self.chance.random_range(SAYS_EVERY_MS));
        self.next_said = (number + 1, Instant::now() + wait);
        Ok(())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let RegisteredDevice { token, secret, .. } = &self.registered;
        let url = format!("{}/gateway/v1/{path}", self.parts.urls[self.node]);
        self.parts.http.request(method, url).basic_auth(token, Some(secret))
    }

    async fn ask(&self, request: RequestBuilder, limit: Duration) -> Result<Value, Unanswered> {
        let records = &self.parts.records;
        let Ok(answer) = request.timeout(limit).send().await else {
            records.note_refused("unreachable");
            return Err(Unanswered);
        };
        let status = answer.status();
        let said = answer.json::<Value>().await;
        match said {
            Ok(said) if status.is_success() => Ok(said),
            said if status.is_success() || LATER.contains(&status) => {
                let code = said.ok().and_then(|said| said["code"].as_str().map(str::to_owned));
                records.note_refused(code.as_deref().unwrap_or("unreachable"));
                Err(Unanswered)
            }
            said => {
                records.note_strange(format!("a device was answered with {status}: {said:?}"));
                Err(Unanswered)
            }
        }
    }
}
