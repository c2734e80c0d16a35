//! The tenth app: its requests and its waiting times.

use crate::bench::steady;
use reqwest::StatusCode;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::emulator::Emulator;

/// The pause of a caller between two single messages.
const SINGLE_PAUSE: Duration = Duration::from_millis(20);
/// The pause between two campaigns.
const CAMPAIGN_PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for a first push; a missing push counts with this time.
const PUSH_LIMIT: Duration = Duration::from_secs(30);
/// Interval between reads of the push service's counts.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waiting times of the tenth app.
#[derive(Default)]
pub(crate) struct TenthAppTimes {
    /// From the request to the 202, in milliseconds.
    pub(crate) accept_ms: Samples,
    /// From the request for a campaign to its first push at the push service, in milliseconds.
    pub(crate) first_push_ms: Samples,
    /// Requests with another answer than 202, or with none.
    pub(crate) refused: u64,
}

/// The app that only sends.
pub(super) struct TenthApp {
    client: ApiClient,
    next: Arc<AtomicU64>,
}

impl TenthApp {
    /// Creates an app that has sent nothing yet.
    pub(super) fn new(client: ApiClient) -> Self {
        Self { client, next: Arc::default() }
    }

    /// Sends for the time `span` and returns the waiting times.
    pub(super) async fn send(
        &self,
        fcm: &Emulator,
        tokens: &[String],
        span: Duration,
    ) -> anyhow::Result<TenthAppTimes> {
        let until = Instant::now() + span;
        let next = self.next.clone();
        let message = move || {
            json!({
                "target": {"token": {"platform": "android", "token": token("single", next.fetch_add(1, Ordering::Relaxed))}},
                "notification": {"title": "Your code"},
                "ttl_seconds": 300,
            })
            .to_string()
        };
        let singles = steady::send(self.client.clone(), SINGLE_PAUSE, span, Arc::new(message));
        let (singles, first_push_ms) = tokio::join!(singles, self.campaigns(fcm, tokens, until));
        let ((accept_ms, refused), first_push_ms) = (singles?, first_push_ms?);
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
            let started_at = Instant::now();
            match self.client.offer("/v1/messages", &body).await {
                Ok((StatusCode::ACCEPTED, _)) => {}
                _ => refused += 1,
            }
            while pushes(fcm, tokens)? == before && started_at.elapsed() < PUSH_LIMIT {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            times.push(started_at.elapsed().as_secs_f64() * 1e3);
            // In the pause the rest of the campaign ends, before the next one is measured.
            tokio::time::sleep(CAMPAIGN_PAUSE).await;
        }
        Ok((times, refused))
    }
}

/// Returns an imported token.
pub(super) fn token(name: &str, number: u64) -> String {
    format!("{name}-{number:0140}")
}

/// Counts the pushes that the push service got for these tokens.
fn pushes(fcm: &Emulator, tokens: &[String]) -> anyhow::Result<u64> {
    let counted = fcm.counted()?;
    Ok(tokens.iter().map(|token| u64::from(counted.lookup(token).accepted)).sum())
}
