//! Messages that are sent to a server in trouble: its responses must be true.

use crate::client::{ApiClient, segment};
use crate::failure::CommandFailure;
use crate::ledger::CampaignLedger;
use crate::text::cell;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);
const SECONDS_PER_DAY: i64 = 86_400;
/// The tolerance within which a clock counts as shifted, in seconds.
const NEAR_SECONDS: i64 = 60;

/// The messages sent, with the server's responses.
#[derive(Debug, Default)]
pub struct AcceptanceCheck {
    /// Campaigns that were answered with 202.
    kept: Vec<String>,
    /// Answers with 503, by their code.
    refused: BTreeMap<String, u64>,
    /// Answers that are neither.
    strange: Vec<String>,
    /// Answers with 202 at a time when nothing can have been kept.
    lies: u64,
    /// Campaigns that were answered with 202 and are not there, or do not end.
    missing: u64,
}

impl AcceptanceCheck {
    /// The number of messages that were accepted, as the server reports.
    pub fn kept(&self) -> u64 {
        self.kept.len() as u64
    }

    /// The number of messages that were refused with 503.
    pub fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Adds messages that the server reported as accepted when nothing could be stored.
    pub const fn note_lies(&mut self, count: u64) {
        self.lies += count;
    }

    /// Sends one message. A 202, or a 503 with a code, is expected; every other response is strange. Returns true for a 202.
    pub async fn ask(&mut self, client: &ApiClient) -> anyhow::Result<bool> {
        // No device has this topic, so the proof of the campaign beside it stays as it is.
        let body = json!({"target": {"condition": "'nobody' in topics"}, "data": {"kind": "inquiry"}});
        let (status, said) = client.offer("/v1/messages", &body).await?;
        let is_kept = status == StatusCode::ACCEPTED;
        match (status, said["code"].as_str()) {
            (StatusCode::ACCEPTED, _) => self.kept.push(cell(&said["campaign"])),
            (StatusCode::SERVICE_UNAVAILABLE, Some(code)) => {
                *self.refused.entry(code.to_owned()).or_default() += 1;
            }
            _ => self.strange.push(format!("{status}: {said}")),
        }
        tokio::time::sleep(PAUSE).await;
        Ok(is_kept)
    }

    /// Sends messages until one is accepted.
    pub async fn until_kept(&mut self, client: &ApiClient, limit: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.ask(client).await? {
            if began.elapsed() > limit {
                return Err(self.timed_out(&format!("nothing is kept {limit:?} after the trouble is over")));
            }
        }
        Ok(())
    }

    /// Sends messages until one was created at this offset from the true time.
    pub async fn until_it_is(
        &mut self,
        offset_seconds: i64,
        client: &ApiClient,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let asked_at = std::time::UNIX_EPOCH.elapsed()?.as_secs().cast_signed();
            if self.ask(client).await? {
                let path = format!("/v1/campaigns/{}", segment(self.kept.last().map_or("", String::as_str)));
                let made_at = second_of_day(&client.get(&path).await?["created_at"]);
                let away = made_at.map(|made_at| off_by(made_at - asked_at - offset_seconds));
                if away.is_some_and(|away| away <= NEAR_SECONDS) {
                    return Ok(());
                }
            }
            if began.elapsed() > limit {
                return Err(self.timed_out("the server's clock does not show the time that it was set to"));
            }
        }
    }

    fn timed_out(&self, why: &str) -> anyhow::Error {
        let (accepted, refused, strange) = (self.kept(), &self.refused, self.strange.last());
        CommandFailure::not_done(format!(
            "{why}; {accepted} kept, refused {refused:?}, last strange answer {strange:?}"
        ))
        .into()
    }

    /// Checks every message that was answered with 202: it must be there, balance, and end.
    pub async fn check_kept(&mut self, client: &ApiClient, limit: Duration) {
        let began = Instant::now();
        for campaign in &self.kept {
            let mut has_ended = false;
            while !has_ended && began.elapsed() < limit {
                match CampaignLedger::fetch(client, campaign).await {
                    Ok((_, ledger)) if ledger.is_ended() => has_ended = ledger.balanced && ledger.sums_up(),
                    Ok(_) => tokio::time::sleep(PAUSE).await,
                    Err(_) => break,
                }
            }
            self.missing += u64::from(!has_ended);
        }
    }

    /// Returns the violations. `refuses` is true if the server could do nothing but refuse in its trouble.
    pub fn broken(&self, refuses: bool) -> Vec<String> {
        let mut broken = Vec::new();
        if let Some(first) = self.strange.first() {
            broken.push(format!(
                "{} answers are neither 202 nor 503, the first is {first}",
                self.strange.len()
            ));
        }
        if self.lies > 0 {
            broken.push(format!("{} messages were answered with 202 while nothing could be kept", self.lies));
        }
        if self.missing > 0 {
            broken.push(format!("{} messages were answered with 202 and are lost or stuck", self.missing));
        }
        if refuses && self.refused() == 0 {
            broken.push("nothing was refused, so the trouble was not noticed".to_owned());
        }
        broken
    }

    /// The check as an object of the report.
    pub fn object(&self) -> Value {
        json!({"kept": self.kept(), "refused": self.refused, "strange": self.strange.len(), "lies": self.lies,
            "missing": self.missing})
    }
}

/// Reads the time of day from `2026-01-31T12:34:56.789Z`.
fn second_of_day(instant: &Value) -> Option<i64> {
    let time = instant.as_str()?.split_once('T')?.1;
    let mut parts = time.get(..8)?.split(':').map(|part| part.parse::<i64>().ok());
    let mut next = || parts.next().flatten();
    Some(next()? * 3_600 + next()? * 60 + next()?)
}

/// Returns the distance between two times of day, regardless of the day.
fn off_by(seconds: i64) -> i64 {
    let seconds = seconds.rem_euclid(SECONDS_PER_DAY);
    seconds.min(SECONDS_PER_DAY - seconds)
}

#[cfg(test)]
mod tests;
