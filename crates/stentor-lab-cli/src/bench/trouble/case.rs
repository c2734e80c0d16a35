//! One cell of the matrix: what the push service does, what is asked of the server then, and whether it held that.

use serde_json::{Value, json};
use std::time::Duration;
use stentor_emulators::Policy;

/// Shares in percent below which a few bad answers must cost no more than themselves.
const FEW_PERCENT: f64 = 20.0;
/// Shares in percent from which on the push service is in trouble and must be spared.
const MANY_PERCENT: f64 = 50.0;
/// The part of the clean rate, of the good deliveries, that is asked for.
const RATE_PART: f64 = 0.8;
/// How much longer than idle a single message may take.
const SINGLE_MARGIN_MS: f64 = 100.0;
/// What may be on its way before the first bad answer is known.
const WINDOW_REQUESTS: u64 = 4_096;
/// The wait that FCM's documents ask for after a 429 without `Retry-After`.
const THROTTLED: Duration = Duration::from_secs(60);
/// How long a request is waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// What a busy machine may add to a bound.
const SLACK: Duration = Duration::from_secs(3);

/// How single messages' tokens begin; they meet no trouble.
pub(super) const SINGLES: &str = "single-";

/// What the push service does to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadAnswer {
    /// 429 `QUOTA_EXCEEDED` with `Retry-After: 1`.
    AskedToWait,
    /// 429 `QUOTA_EXCEEDED` without `Retry-After`.
    Throttled,
    /// 500 `INTERNAL`.
    Internal,
    /// 503 `UNAVAILABLE`.
    Unavailable,
    /// `RST_STREAM` with `INTERNAL_ERROR`.
    Reset,
    /// No answer comes.
    NoAnswer,
}

impl BadAnswer {
    /// All kinds, in the order of the cells.
    pub(crate) const ALL: [Self; 6] =
        [Self::AskedToWait, Self::Throttled, Self::Internal, Self::Unavailable, Self::Reset, Self::NoAnswer];

    /// Its name on the command line and in the report.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::AskedToWait => "429-retry-after",
            Self::Throttled => "429",
            Self::Internal => "500",
            Self::Unavailable => "503",
            Self::Reset => "reset",
            Self::NoAnswer => "no-answer",
        }
    }

    /// Returns what it means, for the help of the command line.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::AskedToWait => "429 QUOTA_EXCEEDED with Retry-After: 1",
            Self::Throttled => "429 QUOTA_EXCEEDED without Retry-After",
            Self::Internal => "500 INTERNAL",
            Self::Unavailable => "503 UNAVAILABLE",
            Self::Reset => "RST_STREAM with INTERNAL_ERROR",
            Self::NoAnswer => "No answer comes",
        }
    }

    fn answer(self) -> Value {
        match self {
            Self::AskedToWait => json!({"error": {"code": "QUOTA_EXCEEDED", "retry_after_s": 1}}),
            Self::Throttled => json!({"error": {"code": "QUOTA_EXCEEDED"}}),
            Self::Internal => json!({"error": {"code": "INTERNAL"}}),
            Self::Unavailable => json!({"error": {"code": "UNAVAILABLE"}}),
            Self::Reset => json!({"reset": "internal_error"}),
            Self::NoAnswer => json!("stall"),
        }
    }

    /// How long after an attempt began the next one has begun at the latest; `attempt` is 1 for the first.
    fn back_off_max(self, attempt: u32) -> Duration {
        let own = Duration::from_secs(2) * (1 << attempt.saturating_sub(1));
        let wait = match self {
            Self::Throttled => THROTTLED + Duration::from_secs(6),
            Self::NoAnswer => ANSWER_LIMIT + own,
            _ => own,
        };
        // Waits are rounded up to an eighth.
        wait.mul_f64(1.125)
    }
}

/// How many attempts at a delivery meet the trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// The first.
    Once,
    /// The first two.
    Twice,
    /// Every attempt.
    Always,
}

impl Persistence {
    /// All of them, in the order of the cells.
    pub(crate) const ALL: [Self; 3] = [Self::Once, Self::Twice, Self::Always];

    /// Its name on the command line and in the report.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Twice => "twice",
            Self::Always => "always",
        }
    }

    /// Returns what it means, for the help of the command line.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Once => "The first",
            Self::Twice => "The first two",
            Self::Always => "Every attempt",
        }
    }

    /// How many attempts fail before one succeeds; `None` when none ever does.
    pub(super) const fn failures(self) -> Option<u32> {
        match self {
            Self::Once => Some(1),
            Self::Twice => Some(2),
            Self::Always => None,
        }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TroubleCase {
    /// Of the tokens, so many percent.
    pub(crate) share: f64,
    /// What they meet.
    pub(crate) kind: BadAnswer,
    /// How many attempts meet it.
    pub(crate) persistence: Persistence,
}

impl TroubleCase {
    /// What the push service is told to do.
    pub(super) fn policy(self) -> Value {
        let answer = self.kind.answer();
        let share = (self.share * 10_000.0).round() as u32;
        let mut script = json!({"prefix": "", "tokens_per_million": share});
        match self.persistence.failures() {
            Some(times) => script["answers"] = json!([{"answer": answer, "times": times}]),
            None => script["then"] = answer,
        }
        json!({"scripts": [{"prefix": SINGLES}, script]})
    }

    /// Returns what tells whether a token meets the trouble.
    pub(super) fn meets(self) -> anyhow::Result<impl Fn(&str) -> bool> {
        let policy: Policy = serde_json::from_value(self.policy())?;
        Ok(move |token: &str| policy.scripts.iter().find(|one| one.is_about(token)) == policy.scripts.get(1))
    }

    /// How long after the good deliveries have left the last repeated one is accepted, at the latest.
    pub(super) fn repeats_max(self) -> Duration {
        let failures = self.persistence.failures().unwrap_or(0);
        (1..=failures).map(|attempt| self.kind.back_off_max(attempt)).sum::<Duration>() + SLACK
    }

    /// Returns whether so few deliveries meet the trouble that the others must go on.
    pub(super) fn is_of_few(self) -> bool {
        self.share < FEW_PERCENT
    }

    /// The most requests that a push service in such trouble gets: one for each device, the repeats that bring a delivery
    /// through, and what was on its way before the trouble was known.
    pub(super) fn requests_max(self, devices: u64, troubled: u64) -> u64 {
        devices + troubled * u64::from(self.persistence.failures().unwrap_or(0)) + WINDOW_REQUESTS
    }

    /// The words for a table and a line of progress.
    pub(crate) fn words(self) -> [String; 3] {
        [self.share.to_string(), self.kind.word().to_owned(), self.persistence.word().to_owned()]
    }
}

/// What was measured of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TroubleCell {
    /// The cell.
    pub(crate) case: TroubleCase,
    /// Devices of its campaign.
    pub(crate) devices: u64,
    /// Devices that meet the trouble.
    pub(crate) troubled: u64,
    /// Good deliveries that were not accepted when the cell ended.
    pub(crate) left: u64,
    /// Repeated deliveries that were not accepted yet when the last good one was.
    pub(crate) pending: u64,
    /// Whether the credential was parked at that moment.
    pub(crate) parked: bool,
    /// Accepted deliveries per second, until the last good one.
    pub(crate) rate: f64,
    /// The same of a campaign without trouble.
    pub(crate) clean_rate: f64,
    /// Deliveries that succeed when repeated and were not accepted within their bound.
    pub(crate) unsent: u64,
    /// The 99th percentile of single messages while nothing runs, in milliseconds.
    pub(crate) single_idle_p99_ms: f64,
    /// The same beside the campaign.
    pub(crate) single_p99_ms: f64,
    /// Requests that reached the push service, single messages left out.
    pub(crate) requests: u64,
}

impl TroubleCell {
    /// Returns whether the cell holds: the others went on where few met the trouble, got through where some did, and the service was spared where many did.
    pub(crate) fn holds(&self) -> bool {
        if self.case.share >= MANY_PERCENT {
            return self.requests <= self.case.requests_max(self.devices, self.troubled);
        }
        if !self.case.is_of_few() {
            return self.left == 0;
        }
        let asked = (1.0 - self.case.share / 100.0) * RATE_PART * self.clean_rate;
        let single_max_ms = self.single_idle_p99_ms + SINGLE_MARGIN_MS;
        self.left == 0 && self.rate >= asked && self.unsent == 0 && self.single_p99_ms <= single_max_ms
    }

    /// Returns the cell as an object.
    pub(crate) fn object(&self) -> Value {
        let [_, kind, persistence] = self.case.words();
        json!({
            "share": self.case.share,
            "kind": kind,
            "persistence": persistence,
            "rate": self.rate.round(),
            "clean_rate": self.clean_rate.round(),
            "unsent": self.unsent,
            "single_p99_ms": self.single_p99_ms,
            "single_idle_p99_ms": self.single_idle_p99_ms,
            "troubled": self.troubled,
            "left": self.left,
            "pending": self.pending,
            "parked": self.parked,
            "requests": self.requests,
            "requests_max": self.case.requests_max(self.devices, self.troubled),
            "ok": self.holds(),
        })
    }
}

#[cfg(test)]
mod tests;
