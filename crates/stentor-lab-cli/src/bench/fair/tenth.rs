//! The tenth app: what it asks for and how long it waits.

use reqwest::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::emulator::Emulator;
use tokio::task::JoinSet;

/// Callers of single messages, and the pause of each between two of them.
const CALLERS: u64 = 4;
const SINGLE_PAUSE: Duration = Duration::from_millis(20);
/// The pause between two campaigns.
const CAMPAIGN_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for a first push; one that does not come counts as that.
const PUSH_LIMIT: Duration = Duration::from_secs(30);
/// How often the push service's counts are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How long the tenth app waited.
#[derive(Default)]
pub(crate) struct TenthAppTimes {
    /// From asking to the 202, in milliseconds.
    pub(crate) accept_ms: Samples,
    /// From asking for a campaign to its first push at the push service, in milliseconds.
    pub(crate) first_push_ms: Samples,
    /// Requests that got another answer than 202, or none.
    pub(crate) refused: u64,
}

/// The app that only wants to send.
pub(super) struct TenthApp {
    client: ApiClient,
    next: Arc<AtomicU64>,
}

impl TenthApp {
    /// An app that has sent nothing yet.
    pub(super) fn new(client: ApiClient) -> Self {
        Self { client, next: Arc::default() }
    }

    /// Sends for so long and returns how long it waited.
    pub(super) async fn send(
        &self,
        fcm: &Emulator,
        tokens: &[String],
        span: Duration,
    ) -> anyhow::Result<TenthAppTimes> {
        let until = Instant::now() + span;
        let (client, next) = (self.client.clone(), self.next.clone());
        // A thread of its own: what is measured is the server, not how busy the other callers are.
        let singles = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(singles(client, next, until))
        });
        let first_push_ms = self.campaigns(fcm, tokens, until).await?;
        let (accept_ms, refused) = singles.await??;
        Ok(TenthAppTimes { accept_ms, first_push_ms: first_push_ms.0, refused: refused + first_push_ms.1 })
    }

    async fn campaigns(
        &self,
        fcm: &Emulator,
        tokens: &[String],
        until: Instant,
    ) -> anyhow::Result<(Samples, u64)> {
        let (mut times, mut refused) = (Samples::default(), 0);
        let body = json!({"target": {"topic": "tenth"}, "notification": {"title": "to a topic"}});
        while Instant::now() < until {
            let before = pushes(fcm, tokens)?;
            let asked = Instant::now();
            match self.client.offer("/v1/messages", &body).await {
                Ok((StatusCode::ACCEPTED, _)) => {}
                _ => refused += 1,
            }
            while pushes(fcm, tokens)? == before && asked.elapsed() < PUSH_LIMIT {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            times.push(asked.elapsed().as_secs_f64() * 1e3);
            // The rest of a campaign is over before the next one counts.
            tokio::time::sleep(CAMPAIGN_PAUSE).await;
        }
        Ok((times, refused))
    }
}

/// A token as it was imported.
pub(super) fn token(name: &str, number: u64) -> String {
    format!("{name}-{number:0140}")
}

/// Counts the pushes that the push service got for these tokens.
fn pushes(fcm: &Emulator, tokens: &[String]) -> anyhow::Result<u64> {
    let counted = fcm.counted()?;
    Ok(tokens.iter().map(|token| u64::from(counted.lookup(token).accepted)).sum())
}

async fn singles(client: ApiClient, next: Arc<AtomicU64>, until: Instant) -> anyhow::Result<(Samples, u64)> {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call(client.clone(), next.clone(), until));
    }
    let (mut times, mut refused) = (Samples::default(), 0);
    while let Some(done) = callers.join_next().await {
        let (took, not_taken) = done??;
        took.into_iter().for_each(|took| times.push(took));
        refused += not_taken;
    }
    Ok((times, refused))
}

/// Sends single messages one after the other; each call that fails costs its connection.
async fn call(client: ApiClient, next: Arc<AtomicU64>, until: Instant) -> anyhow::Result<(Vec<f64>, u64)> {
    let (mut times, mut refused) = (Vec::new(), 0);
    let mut caller = crate::caller::open(&client).await?;
    while Instant::now() < until {
        let message = json!({
            "target": {"token": {"platform": "android", "token": token("single", next.fetch_add(1, Ordering::Relaxed))}},
            "notification": {"title": "Your code"},
            "ttl_seconds": 300,
        });
        let asked = Instant::now();
        match caller.call(Method::POST, "/v1/messages", message.to_string().into()).await {
            Ok((StatusCode::ACCEPTED, _)) => {}
            Ok(_) => refused += 1,
            Err(_) => {
                refused += 1;
                caller = crate::caller::open(&client).await?;
            }
        }
        times.push(asked.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(SINGLE_PAUSE).await;
    }
    Ok((times, refused))
}
