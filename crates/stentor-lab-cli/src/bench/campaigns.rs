//! Times of the beginning and end of campaigns, from the ledger.

use serde_json::Value;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::failure::CommandFailure;
use stentor_stage::ledger::CampaignLedger;

const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// Interval between reads. The measured times come from the ledger, so that this pause is in none of them, but each read costs time of the
/// measured server.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for a campaign's end and returns its instant.
pub(super) async fn ended(client: &ApiClient, campaign: &str) -> anyhow::Result<Value> {
    let started = Instant::now();
    loop {
        let (value, ledger) = CampaignLedger::fetch(client, campaign).await?;
        if ledger.is_ended() {
            return Ok(value["ended_at"].clone());
        }
        if started.elapsed() > SETTLE_LIMIT {
            return Err(CommandFailure::not_done(format!("{campaign} does not end")).into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Reads the time of day of an instant such as 2026-11-21T20:11:15.123Z, in milliseconds since midnight.
pub(super) fn millis(instant: &Value) -> Option<i64> {
    let time = instant.as_str()?.split('T').nth(1)?.trim_end_matches('Z');
    let mut parts = time.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let seconds: f64 = seconds.parse().ok()?;
    let whole = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    Some(whole * 60_000 + (seconds * 1e3).round() as i64)
}
