//! Turns a policy into decisions, one per request.

use super::load::WaitingAnswers;
use super::quota::QuotaWindow;
use super::script::{MILLION, ScriptPlaces};
use super::{
    AfterGoAway, AnswerLatency, LoadGrowth, Mix, NamedMix, Policy, Script, ScriptedAnswer, ServiceError,
    Stall, WeightedMix,
};
use crate::dice::RequestRng;
use crate::error::EmulatorError;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LATENCY_SALT: u64 = 0x6c61_7465_6e63_7921;

const LIFE_SALT: u64 = 0x6c69_6665_2121_2121;
/// The longest life of a connection, a day.
const LIFE_MAX_MS: u64 = 86_400_000;

/// The characteristics of one push service.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    /// Returns true if the service has such an error.
    pub(crate) knows: fn(&str) -> bool,
    /// The service's own error above the quota.
    pub(crate) quota_code: &'static str,
    /// The realistic mix.
    pub(crate) realistic: fn() -> WeightedMix,
}

/// The time at which the response is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// At once.
    #[default]
    None,
    /// After a time.
    For(Duration),
    /// When stalls are released.
    Released,
}

impl Wait {
    /// Returns the later of two times, for a response to several messages.
    pub(crate) fn later(self, other: Self) -> Self {
        match (self, other) {
            (Self::Released, _) | (_, Self::Released) => Self::Released,
            (Self::For(one), Self::For(other)) => Self::For(one.max(other)),
            (Self::None, wait) | (wait, Self::None) => wait,
        }
    }
}

/// The decision about one request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PolicyDecision {
    pub(crate) verdict: ScriptedAnswer,
    pub(crate) wait: Wait,
}

/// A policy at work, with its counters.
pub(crate) struct Judge {
    pub(crate) policy: Policy,
    trivial: bool,
    seed: u64,
    quota_code: &'static str,
    mix: Option<WeightedMix>,
    requests: AtomicU64,
    bucket: QuotaWindow,
    places: ScriptPlaces,
    waiting: WaitingAnswers,
}

impl Judge {
    pub(crate) fn new(policy: Policy, seed: u64, dialect: Dialect) -> Result<Self, EmulatorError> {
        check(&policy, dialect).map_err(EmulatorError::Policy)?;
        let mix = policy.mix.as_ref().map(|mix| match mix {
            Mix::Named(NamedMix::Realistic) => (dialect.realistic)(),
            Mix::Weighted(mix) => mix.clone(),
        });
        // Parts that only concern connections decide about no message.
        let connection_only = Policy {
            goaway: policy.goaway.clone(),
            life: policy.life.clone(),
            streams: policy.streams.clone(),
            ..Policy::default()
        };
        Ok(Self {
            trivial: policy == connection_only,
            policy,
            seed,
            quota_code: dialect.quota_code,
            mix,
            requests: AtomicU64::new(0),
            bucket: QuotaWindow::new(),
            places: ScriptPlaces::default(),
            waiting: WaitingAnswers::default(),
        })
    }

    /// Returns true if every message is accepted at once.
    pub(crate) fn is_trivial(&self) -> bool {
        self.trivial
    }

    /// Returns how long the connection with this number lives, and its end; `None` without such a part.
    pub(crate) fn life(&self, connection: u64) -> Option<(Duration, AfterGoAway)> {
        let life = self.policy.life.as_ref()?;
        let more = RequestRng::new(self.seed ^ LIFE_SALT, connection, 0).below(life.max_ms - life.min_ms + 1);
        Some((Duration::from_millis(life.min_ms + more), life.then))
    }

    /// Returns true if stalled messages are counted and delivered on arrival.
    pub(crate) fn takes_over_stalled(&self) -> bool {
        self.policy.stall.as_ref().is_some_and(|stall| stall.taken_over)
    }

    /// Decides about the n-th attempt at a token, the `request_number`-th request of its connection.
    pub(crate) fn decide(
        &self,
        token: &str,
        token_hash: u64,
        attempt: u32,
        request_number: u64,
    ) -> PolicyDecision {
        // Load is sent without a policy: then not even a counter is shared.
        if self.trivial {
            return PolicyDecision { verdict: ScriptedAnswer::Accept, wait: Wait::None };
        }
        let verdict = self.verdict(token, token_hash, attempt);
        if verdict == ScriptedAnswer::Stall {
            return PolicyDecision { verdict: ScriptedAnswer::Accept, wait: Wait::Released };
        }
        // A stalled request has its verdict already; only its response waits.
        if self.policy.stall.as_ref().is_some_and(|stall| stalls(stall, token, request_number)) {
            return PolicyDecision { verdict, wait: Wait::Released };
        }
        let wait = match &self.policy.latency {
            Some(latency) => self.delay(latency, token_hash, attempt),
            None => Wait::None,
        };
        PolicyDecision { verdict, wait }
    }

    fn verdict(&self, token: &str, token_hash: u64, attempt: u32) -> ScriptedAnswer {
        // A number for each request: nothing is published by it.
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        self.reset(number)
            .or_else(|| self.scripted(token, token_hash))
            .or_else(|| self.burst(number))
            .or_else(|| self.over_quota())
            .or_else(|| self.mixed(token_hash, attempt))
            .unwrap_or(ScriptedAnswer::Accept)
    }

    fn reset(&self, number: u64) -> Option<ScriptedAnswer> {
        let resets = self.policy.resets.as_ref()?;
        number.is_multiple_of(resets.every).then_some(ScriptedAnswer::Reset(resets.code))
    }

    fn scripted(&self, token: &str, token_hash: u64) -> Option<ScriptedAnswer> {
        let script = self.policy.scripts.iter().find(|script| script.is_about(token))?;
        Some(script.at(self.places.advance(token_hash)).clone())
    }

    fn burst(&self, number: u64) -> Option<ScriptedAnswer> {
        let bursts = self.policy.bursts.as_ref()?;
        let inside = (number - 1) % bursts.every >= bursts.every.saturating_sub(bursts.length);
        inside.then(|| ScriptedAnswer::Error(bursts.error.clone()))
    }

    fn over_quota(&self) -> Option<ScriptedAnswer> {
        let quota = self.policy.quota.as_ref()?;
        let rest_s = self.bucket.take(quota).err()?;
        Some(ScriptedAnswer::Error(match &quota.error {
            Some(error) => error.clone(),
            None => ServiceError::new(self.quota_code).retry_after_s(rest_s),
        }))
    }

    fn mixed(&self, token_hash: u64, attempt: u32) -> Option<ScriptedAnswer> {
        let mix = self.mix.as_ref()?;
        // Attempt 0 is the token's own draw: its result is the same at every attempt.
        let lasting = pick(mix, true, &mut RequestRng::new(self.seed, token_hash, 0));
        lasting.or_else(|| pick(mix, false, &mut RequestRng::new(self.seed, token_hash, attempt)))
    }

    fn delay(&self, latency: &AnswerLatency, token_hash: u64, attempt: u32) -> Wait {
        // Salted, because otherwise slowness and failure would be drawn together.
        let delay = latency.draw(&mut RequestRng::new(self.seed ^ LATENCY_SALT, token_hash, attempt));
        let delay = match &self.policy.load {
            Some(growth) => self.waiting.delay(growth, delay, Instant::now()),
            None => delay,
        };
        if delay.is_zero() { Wait::None } else { Wait::For(delay) }
    }
}

/// Draws among the errors that belong to tokens, or among the passing ones; `None` accepts.
fn pick(mix: &WeightedMix, per_token: bool, dice: &mut RequestRng) -> Option<ScriptedAnswer> {
    // Both draws are among the weights of all: each share is one of all messages.
    let errors = mix.errors.iter().map(|error| u64::from(error.weight)).sum::<u64>();
    let mut point = dice.below(errors + u64::from(mix.accept));
    for error in mix.errors.iter().filter(|error| error.per_token == per_token) {
        match point.checked_sub(u64::from(error.weight)) {
            Some(rest) => point = rest,
            None => return Some(ScriptedAnswer::Error(error.error.clone())),
        }
    }
    None
}

fn stalls(stall: &Stall, token: &str, request_number: u64) -> bool {
    stall.all
        || (stall.every > 0 && request_number.is_multiple_of(stall.every))
        || stall.tokens.iter().any(|stalled| stalled == token)
        || stall.prefixes.iter().any(|prefix| token.starts_with(prefix.as_str()))
}

fn check(policy: &Policy, dialect: Dialect) -> Result<(), String> {
    policy.latency.as_ref().map_or(Ok(()), AnswerLatency::check)?;
    policy.load.as_ref().map_or(Ok(()), LoadGrowth::check)?;
    if policy.load.is_some() && policy.latency.is_none() {
        return Err("load needs a latency, which it multiplies".to_owned());
    }
    for refusal in refusals(policy) {
        if !(dialect.knows)(&refusal.code) {
            return Err(format!("this push service has no error {:?}", refusal.code));
        }
    }
    let zero = |name: &str| Err(format!("{name} must be at least 1"));
    match policy {
        Policy { resets: Some(resets), .. } if resets.every == 0 => zero("resets.every"),
        Policy { bursts: Some(bursts), .. } if bursts.every == 0 => zero("bursts.every"),
        Policy { quota: Some(quota), .. } if quota.window_ms == 0 => zero("quota.window_ms"),
        Policy { goaway: Some(goaway), .. } if goaway.after_requests == 0 => zero("goaway.after_requests"),
        Policy { life: Some(life), .. } if life.min_ms > life.max_ms || life.max_ms > LIFE_MAX_MS => {
            Err(format!("life: min_ms is at most max_ms, and that at most {LIFE_MAX_MS}"))
        }
        Policy { scripts, .. } if scripts.iter().any(|s| s.token.is_none() && s.prefix.is_none()) => {
            Err("a script needs a token or a prefix".to_owned())
        }
        Policy { scripts, .. } if scripts.iter().any(Script::is_about_too_many) => {
            Err(format!("tokens_per_million is at most {MILLION}"))
        }
        _ => Ok(()),
    }
}

fn refusals(policy: &Policy) -> Vec<&ServiceError> {
    let mut found = Vec::new();
    found.extend(policy.bursts.iter().map(|bursts| &bursts.error));
    found.extend(policy.quota.iter().filter_map(|quota| quota.error.as_ref()));
    if let Some(Mix::Weighted(mix)) = &policy.mix {
        found.extend(mix.errors.iter().map(|error| &error.error));
    }
    found.extend(policy.scripts.iter().flat_map(Script::verdicts).filter_map(|verdict| match verdict {
        ScriptedAnswer::Error(refusal) => Some(refusal),
        _ => None,
    }));
    found
}

/// The policy in force; connections look at the version and fetch the judge only when it has changed.
pub(crate) struct LivePolicy {
    version: AtomicU64,
    judge: RwLock<Arc<Judge>>,
    seed: u64,
    dialect: Dialect,
}

impl LivePolicy {
    pub(crate) fn new(policy: Policy, seed: u64, dialect: Dialect) -> Result<Self, EmulatorError> {
        let judge = RwLock::new(Arc::new(Judge::new(policy, seed, dialect)?));
        Ok(Self { version: AtomicU64::new(1), judge, seed, dialect })
    }

    pub(crate) fn set(&self, policy: Policy) -> Result<(), EmulatorError> {
        // Checked before it is in force: a policy that is wrong changes nothing.
        let judge = Arc::new(Judge::new(policy, self.seed, self.dialect)?);
        *self.judge.write() = judge;
        // Raised after the judge is replaced: a reader of the new version finds the new judge.
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn judge(&self) -> Arc<Judge> {
        Arc::clone(&self.judge.read())
    }
}
