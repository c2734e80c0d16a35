//! The policy of responses: the vocabulary shared by all emulators, readable and writable as JSON.
//!
//! Every part may be combined with every other. The first part with a response decides, in the order `resets`, `scripts`, `bursts`,
//! `quota`, `mix`; without any of them the request is accepted. `latency` and `stall` only delay; `goaway` and `streams` concern the
//! connection.

mod judge;
mod latency;
mod load;
mod quota;
mod script;
#[cfg(test)]
mod tests;

pub(crate) use judge::{Dialect, Judge, LivePolicy, Wait};
pub use latency::AnswerLatency;
pub use load::LoadGrowth;
pub use quota::{Bursts, QuotaPolicy};
pub use script::{Script, ScriptStep};
use serde::{Deserialize, Serialize};
use stentor_http2_codec::frame::ErrorCode;

/// The policy of an emulator. The default accepts everything at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Delays every response. Messages are counted and delivered on arrival.
    pub latency: Option<AnswerLatency>,
    /// Lets the latency grow with the number of waiting answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadGrowth>,
    /// Answers a weighted mix of errors.
    pub mix: Option<Mix>,
    /// Answers chosen tokens from a list.
    pub scripts: Vec<Script>,
    /// Limits the messages per window.
    pub quota: Option<QuotaPolicy>,
    /// Fails in regular bursts.
    pub bursts: Option<Bursts>,
    /// Accepts requests and does not answer them until released.
    pub stall: Option<Stall>,
    /// Resets some streams instead of answering.
    pub resets: Option<Resets>,
    /// Sends GOAWAY after a number of requests.
    pub goaway: Option<GoAway>,
    /// Ends connections over XMPP after a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<ConnectionLife>,
    /// Changes the stream limit of a connection while it is used.
    pub streams: Option<StreamLimitPolicy>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedAnswer {
    /// Accepts the message.
    #[default]
    Accept,
    /// Refuses it with an error of the push service.
    Error(ServiceError),
    /// Resets the stream.
    Reset(ResetCode),
    /// Accepts it, but answers only when stalls are released; see [`Stall::taken_over`].
    Stall,
}

/// An error in the terms of the push service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceError {
    /// The FCM `errorCode`, the APNs `reason`, GCM's error or Push Kit's code; for the latter two over HTTP also the status of a whole
    /// request, as "503".
    pub code: String,
    /// `Retry-After` in seconds; no header if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u32>,
    /// The time since which the token is dead, in milliseconds since 1970 (APNs 410; default: now).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_ms: Option<u64>,
    /// The field that an FCM `INVALID_ARGUMENT` blames, as `message.token`; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl ServiceError {
    /// Returns a refusal without `Retry-After`, timestamp and field.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), ..Self::default() }
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }
}

/// A code for RST_STREAM (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetCode {
    /// The request was not processed and may be sent again.
    RefusedStream,
    /// The server failed; it is unknown whether the request was processed.
    InternalError,
    /// The stream is no longer needed.
    Cancel,
}

impl ResetCode {
    pub(crate) fn error_code(self) -> ErrorCode {
        match self {
            Self::RefusedStream => ErrorCode::REFUSED_STREAM,
            Self::InternalError => ErrorCode::INTERNAL_ERROR,
            Self::Cancel => ErrorCode::CANCEL,
        }
    }
}

/// A weighted mix of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Mix {
    /// A mix that ships with the emulator.
    Named(NamedMix),
    /// Weights chosen by the user.
    Weighted(WeightedMix),
}

/// The mixes that ship with the emulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedMix {
    /// About 3 % dead or foreign tokens and 0.5 % passing trouble.
    Realistic,
}

/// Errors and their frequencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedMix {
    /// The weight of acceptance.
    pub accept: u32,
    /// The errors and their weights.
    pub errors: Vec<WeightedRefusal>,
}

/// One error of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedRefusal {
    /// The error.
    pub error: ServiceError,
    /// Its weight.
    pub weight: u32,
    /// True if the error belongs to the token: every attempt at that token then gets the same response.
    #[serde(default)]
    pub per_token: bool,
}

/// Requests that are taken and left unanswered until the policy or a fault releases them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stall {
    /// Stalls every request.
    pub all: bool,
    /// Stalls every n-th request of a connection; 0 means none.
    pub every: u64,
    /// Stalls these tokens.
    pub tokens: Vec<String>,
    /// Stalls tokens that begin with one of these.
    pub prefixes: Vec<String>,
    /// Counts and delivers stalled messages on arrival, whether stalled by this part, a script or a fault, so that only the response is
    /// missing. If false, they are counted and delivered at the release.
    pub taken_over: bool,
}

/// Shows the kind of stall, never a token.
impl std::fmt::Debug for Stall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Stall");
        shown.field("all", &self.all).field("every", &self.every).field("taken_over", &self.taken_over);
        shown.finish_non_exhaustive()
    }
}

/// Streams that are reset instead of answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resets {
    /// Resets every n-th request of the emulator.
    pub every: u64,
    /// The code.
    pub code: ResetCode,
}

/// A GOAWAY in the middle of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoAway {
    /// The request of a connection after which the frame is sent.
    pub after_requests: u64,
    /// The number of those requests, counted from the latest, that are above the last stream id and stay unprocessed.
    #[serde(default)]
    pub unprocessed: u64,
    /// The behaviour of the connection afterwards.
    #[serde(default)]
    pub then: AfterGoAway,
    /// The error code; 0 is NO_ERROR.
    #[serde(default)]
    pub code: u32,
    /// Debug data, for example the JSON reason that APNs sends.
    #[serde(default)]
    pub debug: String,
    /// Only the first n connections get it; all of them without this.
    #[serde(default)]
    pub connections: Option<u64>,
}

impl Default for GoAway {
    fn default() -> Self {
        Self {
            after_requests: 1000,
            unprocessed: 0,
            then: AfterGoAway::Drain,
            code: 0,
            debug: String::new(),
            connections: None,
        }
    }
}

/// A life of connections that is drawn evenly between two bounds for each: CCS ended those of its app servers after some hours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionLife {
    /// The lower bound in milliseconds.
    pub min_ms: u64,
    /// The upper bound in milliseconds.
    pub max_ms: u64,
    /// The end of the connection.
    #[serde(default)]
    pub then: AfterGoAway,
}

/// The behaviour after a GOAWAY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterGoAway {
    /// Processed requests are answered, then the connection is closed.
    #[default]
    Drain,
    /// The connection is closed at once; answers not yet written are lost.
    Close,
    /// Processed requests are answered and the connection stays open.
    Linger,
}

/// A stream limit that changes while the connection is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamLimitPolicy {
    /// The limit until the first accepted message (APNs with token authentication: 1).
    pub initial: Option<u32>,
    /// The limit after a rejected message, until the next accepted one.
    pub after_reject: Option<u32>,
    /// Changes by the number of requests seen on the connection.
    pub steps: Vec<StreamStep>,
    /// The reaction to a stream above an acknowledged limit.
    pub on_excess: OnExcess,
}

/// One change of the stream limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamStep {
    /// The request of the connection that triggers it.
    pub after_requests: u64,
    /// The new limit.
    pub limit: u32,
}

/// The reaction to a stream above the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExcess {
    /// RST_STREAM with REFUSED_STREAM.
    #[default]
    Refuse,
    /// GOAWAY with code 7 and "Maximum active streams violated for this endpoint.", as seen from APNs.
    GoAway,
}
