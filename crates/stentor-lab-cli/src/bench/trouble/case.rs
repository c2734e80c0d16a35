//! One cell of the matrix: the push service's bad answers, the requirements on the server, and its results.

use serde_json::{Value, json};
use std::time::Duration;
use stentor_emulators::Policy;
use stentor_stage::devices::StagedService;

/// Shares in percent below which bad answers may delay nothing but their own deliveries.
const FEW_PERCENT: f64 = 20.0;
/// Shares in percent from which on the server must limit its requests to the push service.
const MANY_PERCENT: f64 = 50.0;
/// Required rate of the good deliveries, as a share of the clean rate.
const RATE_PART: f64 = 0.8;
/// Permitted increase of a single message's time over idle.
const SINGLE_MARGIN_MS: f64 = 100.0;
/// Limit of requests in flight before the first bad answer is known.
const WINDOW_REQUESTS: u64 = 4_096;
/// The wait after a 429 without `Retry-After`, according to FCM's documents.
const THROTTLED: Duration = Duration::from_secs(60);
/// The wait after a repeated 5xx at APNs.
const FAILED_AGAIN: Duration = Duration::from_secs(15 * 60);
/// Most tokens in a request to Push Kit, as many as each request of a campaign has.
const HMS_REQUEST_TOKENS: f64 = 1_000.0;
/// Timeout of a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Tolerance of a bound for a busy machine.
const SLACK: Duration = Duration::from_secs(3);

/// Prefix of the tokens of single messages, which never get bad answers.
pub(super) const SINGLES: &str = "single-";

/// A bad answer of the push service to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadAnswer {
    /// 429 (`QUOTA_EXCEEDED` at FCM) with `Retry-After: 1`.
    AskedToWait,
    /// 429 `QUOTA_EXCEEDED` without `Retry-After`.
    Throttled,
    /// 500 `INTERNAL`.
    Internal,
    /// 503 `UNAVAILABLE`.
    Unavailable,
    /// `RST_STREAM` with `INTERNAL_ERROR`.
    Reset,
    /// The request stays unanswered.
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

    /// Returns its description for the command line's help.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::AskedToWait => "429 with Retry-After: 1",
            Self::Throttled => "429 without Retry-After",
            Self::Internal => "500",
            Self::Unavailable => "503",
            Self::Reset => "RST_STREAM with INTERNAL_ERROR",
            Self::NoAnswer => "No answer comes",
        }
    }

    fn answer(self, service: StagedService) -> Value {
        let [throttled, internal, unavailable] = codes(service);
        match self {
            Self::AskedToWait => json!({"error": {"code": throttled, "retry_after_s": 1}}),
            Self::Throttled => json!({"error": {"code": throttled}}),
            Self::Internal => json!({"error": {"code": internal}}),
            Self::Unavailable => json!({"error": {"code": unavailable}}),
            Self::Reset => json!({"reset": "internal_error"}),
            Self::NoAnswer => json!("stall"),
        }
    }

    /// Longest time from the beginning of an attempt to the beginning of the next one; `attempt` is 1 for the first.
    fn back_off_max(self, service: StagedService, attempt: u32) -> Duration {
        let own = Duration::from_secs(2) * (1 << attempt.saturating_sub(1));
        let wait = match self {
            Self::Throttled => THROTTLED + Duration::from_secs(6),
            Self::NoAnswer => ANSWER_LIMIT + own,
            // The second 5xx of a delivery in a row, by Apple's documents.
            Self::Internal | Self::Unavailable if service == StagedService::Apns && attempt > 1 => {
                FAILED_AGAIN
            }
            _ => own,
        };
        // Waits are rounded up to an eighth.
        wait.mul_f64(1.125)
    }
}

/// The words of an emulator for 429, 500 and 503.
const fn codes(service: StagedService) -> [&'static str; 3] {
    match service {
        StagedService::Fcm => ["QUOTA_EXCEEDED", "INTERNAL", "UNAVAILABLE"],
        StagedService::Apns => ["TooManyRequests", "InternalServerError", "ServiceUnavailable"],
        StagedService::Hms => ["503", "81000001", "502"],
        StagedService::Gcm => ["DeviceMessageRateExceeded", "InternalServerError", "Unavailable"],
        StagedService::WebPush => ["Throttled", "InternalError", "Unavailable"],
        StagedService::Wns => ["AppThrottled", "InternalError", "Unavailable"],
    }
}

/// Returns the number of tokens that one bad answer concerns. Push Kit refuses a request with all its tokens.
fn tokens_of_answer(service: StagedService) -> f64 {
    if service == StagedService::Hms { HMS_REQUEST_TOKENS } else { 1.0 }
}

/// The attempts at a delivery that get a bad answer.
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

    /// Returns its description for the command line's help.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Once => "The first",
            Self::Twice => "The first two",
            Self::Always => "Every attempt",
        }
    }

    /// Number of failed attempts before a success; `None` if no attempt succeeds.
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
    /// The push service.
    pub(crate) service: StagedService,
    /// Share of the answers that are bad, in percent.
    pub(crate) share: f64,
    /// Kind of the bad answers.
    pub(crate) kind: BadAnswer,
    /// The attempts that get a bad answer.
    pub(crate) persistence: Persistence,
}

impl TroubleCase {
    /// The policy of the push service.
    pub(super) fn policy(self) -> Value {
        let answer = self.kind.answer(self.service);
        let share = (self.share * 10_000.0 / tokens_of_answer(self.service)).round() as u32;
        let mut script = json!({"prefix": "", "tokens_per_million": share});
        match self.persistence.failures() {
            Some(times) => script["answers"] = json!([{"answer": answer, "times": times}]),
            None => script["then"] = answer,
        }
        json!({"scripts": [{"prefix": SINGLES}, script]})
    }

    /// Returns a predicate that is true for tokens with bad answers.
    pub(super) fn meets(self) -> anyhow::Result<impl Fn(&str) -> bool> {
        let policy: Policy = serde_json::from_value(self.policy())?;
        Ok(move |token: &str| policy.scripts.iter().find(|one| one.is_about(token)) == policy.scripts.get(1))
    }

    /// Longest time from the end of the good deliveries until the last repeated one is accepted.
    pub(super) fn repeats_max(self) -> Duration {
        let failures = self.persistence.failures().unwrap_or(0);
        (1..=failures).map(|attempt| self.kind.back_off_max(self.service, attempt)).sum::<Duration>() + SLACK
    }

    /// Returns true if the share of bad answers is small enough that the others must not be delayed.
    pub(super) fn is_of_few(self) -> bool {
        self.share < FEW_PERCENT
    }

    /// Limit of requests to the push service: one for each device, the repeats up to a success, and the requests in flight before the first
    /// bad answer was known.
    pub(super) fn requests_max(self, devices: u64, troubled: u64) -> u64 {
        devices + troubled * u64::from(self.persistence.failures().unwrap_or(0)) + WINDOW_REQUESTS
    }

    /// The words of the cell for a table and a line of progress.
    pub(crate) fn words(self) -> [String; 3] {
        [self.share.to_string(), self.kind.word().to_owned(), self.persistence.word().to_owned()]
    }
}

/// Results of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TroubleCell {
    /// The cell.
    pub(crate) case: TroubleCase,
    /// Devices of its campaign.
    pub(crate) devices: u64,
    /// Devices with bad answers.
    pub(crate) troubled: u64,
    /// Good deliveries that were not accepted when the cell ended.
    pub(crate) left: u64,
    /// Repeated deliveries that were not accepted yet when the last good one was.
    pub(crate) pending: u64,
    /// True if the credential was parked at that time.
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
    /// Returns true if the cell holds. With few bad answers, the other deliveries, the repeated ones and single messages keep their limits.
    /// With more, all good deliveries get through. With many, the push service gets no more requests than the limit.
    pub(crate) fn holds(&self) -> bool {
        if self.case.share >= MANY_PERCENT {
            return self.requests <= self.case.requests_max(self.devices, self.troubled);
        }
        if !self.case.is_of_few() {
            return self.left == 0;
        }
        let required_rate = (1.0 - self.case.share / 100.0) * RATE_PART * self.clean_rate;
        let single_max_ms = self.single_idle_p99_ms + SINGLE_MARGIN_MS;
        self.left == 0
            && self.rate >= required_rate
            && self.unsent == 0
            && self.single_p99_ms <= single_max_ms
    }

    /// Returns the cell as an object.
    pub(crate) fn object(&self) -> Value {
        let [_, kind, persistence] = self.case.words();
        json!({
            "provider": self.case.service.word(),
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
