//! Comparisons of commands and services of users: forks in rounds of random order, their times and bytes, and ratios with intervals.
//!
//! The unit of replication is the fork, a run in fresh processes. Each round has one fork of each candidate, so that whatever slows a
//! round down is in all of them; a ratio is therefore estimated from the differences within rounds.

mod drawing;
mod page;

use crate::record::Environment;
use crate::results::CONFIDENCE;
use crate::statistics::{Difference, Estimate, Ratio, RoundPair, Samples, student_t};
use serde::Serialize;
use std::collections::BTreeMap;
use stentor_rig::anatomy::PurposeBytes;

pub use page::{describe, markdown, page};

/// The kind of time that a comparison measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredTime {
    /// A command from its start to its end.
    Run,
    /// The median request of a fork.
    Request,
}

/// A candidate of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedCandidate {
    /// The command or the URL.
    pub name: String,
    /// The meaning of its times.
    pub time: MeasuredTime,
}

/// One run of a candidate in fresh processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFork {
    /// The place of its candidate, from 0.
    pub candidate: usize,
    /// The round, from 1.
    pub round: u32,
    /// The seed of the chance on its link.
    pub seed: u64,
    /// The reason why it does not count.
    pub invalid_reason: Option<String>,
    /// Its time, in seconds.
    pub seconds: f64,
    /// The time of its first request, in seconds.
    pub first_seconds: Option<f64>,
    /// Requests that its bytes belong to; 1 for a command.
    pub exchanges: u64,
    /// Bytes to the server and back, if the link counted them.
    pub bytes: Option<[PurposeBytes; 2]>,
}

/// A comparison of one or more candidates.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The candidates; ratios are to the first.
    pub candidates: Vec<ComparedCandidate>,
    /// The profile of the link; `none` without one.
    pub link: String,
    /// The seed of the order and of the forks' seeds.
    pub seed: u64,
    /// The machine, before the first fork.
    pub environment: Environment,
    /// All attempts, in their order.
    pub forks: Vec<ComparedFork>,
    /// The command that repeats the comparison.
    pub command: String,
}

/// The summary of a candidate.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateSummary {
    /// The candidate.
    #[serde(flatten)]
    pub candidate: ComparedCandidate,
    /// Its forks that count.
    pub forks: usize,
    /// Its time, in seconds, over forks.
    pub seconds: Option<Estimate>,
    /// The time of the first request of a fork, in seconds.
    pub first_seconds: Option<Estimate>,
    /// Mean bytes of an exchange by purpose: to the server, and back.
    pub bytes: Option<[BTreeMap<&'static str, f64>; 2]>,
    /// The ratio of its time to the first candidate's; absent for the first, and with fewer than two common rounds.
    pub ratio: Option<Ratio>,
}

/// Names the purposes of bytes, with their counts.
#[must_use]
pub const fn by_purpose(bytes: &PurposeBytes) -> [(&'static str, u64); 8] {
    [
        ("handshake", bytes.handshake_bytes),
        ("headers of IP and TCP", bytes.header_bytes),
        ("TLS", bytes.tls_bytes),
        ("framing", bytes.framing_bytes),
        ("payload", bytes.payload_bytes),
        ("acknowledgements", bytes.bare_ack_bytes),
        ("repetitions", bytes.repeated_bytes),
        ("closing and other", bytes.close_bytes + bytes.other_bytes),
    ]
}

impl Comparison {
    /// Summarizes each candidate.
    #[must_use]
    pub fn summaries(&self) -> Vec<CandidateSummary> {
        (0..self.candidates.len()).map(|place| self.summary(place)).collect()
    }

    /// Returns true if each candidate has at least two forks that count.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        (0..self.candidates.len()).all(|place| self.valid(place).count() > 1)
    }

    /// Lists the attempts that do not count.
    pub fn uncounted(&self) -> impl Iterator<Item = &ComparedFork> {
        self.forks.iter().filter(|fork| fork.invalid_reason.is_some())
    }

    fn valid(&self, place: usize) -> impl Iterator<Item = &ComparedFork> {
        self.forks.iter().filter(move |fork| fork.candidate == place && fork.invalid_reason.is_none())
    }

    fn summary(&self, place: usize) -> CandidateSummary {
        let seconds: Samples = self.valid(place).map(|fork| fork.seconds).collect();
        let first: Samples = self.valid(place).filter_map(|fork| fork.first_seconds).collect();
        CandidateSummary {
            candidate: self.candidates[place].clone(),
            forks: self.valid(place).count(),
            seconds: seconds.estimate(CONFIDENCE),
            first_seconds: first.estimate(CONFIDENCE),
            bytes: self.bytes(place),
            ratio: (place > 0).then(|| self.ratio(place)).flatten(),
        }
    }

    fn bytes(&self, place: usize) -> Option<[BTreeMap<&'static str, f64>; 2]> {
        let counted: Vec<_> =
            self.valid(place).filter_map(|fork| Some((fork.bytes?, fork.exchanges))).collect();
        let exchanges: u64 = counted.iter().map(|(_, exchanges)| exchanges).sum();
        let way = |way: usize| {
            let mut means: BTreeMap<&'static str, f64> = BTreeMap::new();
            for (purpose, bytes) in counted.iter().flat_map(|(bytes, _)| by_purpose(&bytes[way])) {
                *means.entry(purpose).or_default() += bytes as f64 / exchanges as f64;
            }
            means
        };
        (exchanges > 0).then(|| [way(0), way(1)])
    }

    /// Estimates the ratio of a candidate's time to the first one's from the rounds in which both count.
    fn ratio(&self, place: usize) -> Option<Ratio> {
        let by_round: BTreeMap<u32, f64> = self.valid(0).map(|fork| (fork.round, fork.seconds)).collect();
        let pair = |fork: &ComparedFork| Some([fork.seconds, *by_round.get(&fork.round)?]);
        let rounds: Vec<RoundPair> = self.valid(place).filter_map(pair).collect();
        let difference = Difference::of_rounds(&rounds)?;
        let half = student_t(CONFIDENCE, difference.degrees) * difference.standard_error;
        Some(Ratio {
            ratio: difference.log_ratio.exp(),
            low: Some((difference.log_ratio - half).exp()),
            high: Some((difference.log_ratio + half).exp()),
        })
    }
}

/// States a ratio in a sentence: the direction if the interval excludes 1, and otherwise what the interval still allows.
#[must_use]
pub fn sentence(candidate: &str, base: &str, ratio: &Ratio) -> String {
    let Ratio { ratio, low: Some(low), high: Some(high) } = *ratio else {
        return format!("{candidate} and {base}: too few rounds");
    };
    let takes = format!("takes {ratio:.3} times as long (95 %: {low:.3} to {high:.3})");
    if low > 1.0 || high < 1.0 {
        let word = if ratio > 1.0 { "slower" } else { "faster" };
        format!("{candidate} is {word} than {base}: it {takes}")
    } else {
        format!("no difference was shown: beside {base}, {candidate} {takes}")
    }
}

#[cfg(test)]
mod tests;
