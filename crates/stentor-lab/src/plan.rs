//! The plan of a study: experiments, factors, levels, subjects and amounts, as data in `studies/STUDY/plan.toml`.
//!
//! A **cell** is one combination of levels for one subject. The profile sets the forks of each cell and the exchanges that each fork
//! measures (samples): `quick` takes minutes, `standard` runs every level with fewer repetitions, `full` the paper's repetitions.

mod campaigns;
mod expand;
mod named;
mod own;
mod unserved;

pub use campaigns::{
    Background, CampaignCell, Campaigns, GROWTH_FROM, OpenQuestion, PlatformDevices, PlatformMix,
    ProviderModel, Registry,
};
pub use expand::{Cell, ExpandedPlan, NotRun, PlanChoice, SampleChoice};
pub use own::PLAN_MAX_BYTES;
pub use unserved::UnservedPart;

use crate::subject::reference::Op;
use crate::word::words;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Studies of exchanges between pairs of subjects, oldest first.
pub const PLANNED: [&str; 4] = ["cai-2009", "anacleto-2012", "nunes-2014", "albertengo-2020"];

words! {
    /// The extent of a run.
    #[derive(Default)]
    pub enum RunProfile {
        /// A run of minutes.
        #[default]
        Quick = "quick",
        /// Every level, fewer repetitions.
        Standard = "standard",
        /// The paper's repetitions.
        Full = "full",
    }
}

words! {
    /// The halves to which a CPU limit applies.
    #[derive(Default)]
    pub enum CpuOf {
        /// Both.
        #[default]
        Both = "both",
        /// The client, which stands for a device; its server has whole processors.
        Client = "client",
    }
}

/// Errors of reading and selecting a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Invalid TOML.
    #[error("the plan cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// The plan of a user's own study cannot be run.
    #[error("the plan cannot be run: {0}")]
    Own(String),
    /// The selection names something that the study does not have.
    #[error("{study} has no {what} {name:?}: {known}")]
    Unknown {
        /// The study.
        study: String,
        /// The kind of name, such as `factor`, `level` or `variant`.
        what: &'static str,
        /// The selected name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The server itself cannot be measured in the selected part.
    #[error("{study} is not run with {part}: {reason}")]
    Unserved {
        /// The study.
        study: String,
        /// The server itself, and the levels concerned.
        part: String,
        /// The reason, in a sentence.
        reason: String,
    },
}

/// The plan of a study.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyPlan {
    /// The study's id.
    pub id: String,
    /// Default profile of the link.
    pub link: String,
    /// Default profile of the link between a gateway and its server.
    #[serde(default = "open")]
    pub gateway_link: String,
    /// The processor of the energy model; see [`crate::energy::processor`].
    #[serde(default)]
    pub processor: String,
    /// The radio of the energy model, used if packets were kept; see [`crate::energy::coefficients`].
    #[serde(default)]
    pub radio: String,
    /// If set, one-way delay is also measured by clocks that were set by time queries.
    #[serde(default)]
    pub queries_clocks: bool,
    /// Interval between the exchanges of the paper's client while its battery empties, in milliseconds, if the paper measures that; see
    /// [`crate::energy::battery`].
    #[serde(default)]
    pub battery_period_ms: Option<u32>,
    /// The paper's levels of factors that its figures do not name: its own level first, then substitutes for subjects that have no such
    /// level. Claims are judged at these levels, and the paper's times are shown beside those cells only.
    #[serde(default)]
    pub setting: BTreeMap<String, Vec<String>>,
    /// Other levels of that setting at which claims are judged too, because the paper does not state its own.
    #[serde(default)]
    pub alternatives: Vec<BTreeMap<String, Vec<String>>>,
    /// Variants of the quick profile, if none is named; all if empty.
    #[serde(default)]
    pub quick_variants: Vec<String>,
    /// Differences from the paper, for readers of the results.
    #[serde(default)]
    pub differences: Vec<String>,
    /// Threats to validity.
    #[serde(default)]
    pub threats: Vec<String>,
    /// Measurements of the paper that cannot be made here, with the reason.
    #[serde(default)]
    pub not_here: Vec<NotRun>,
    /// Parts that the server itself cannot run as a subject.
    #[serde(default)]
    pub unserved: Vec<UnservedPart>,
    /// Its experiments: exchanges between pairs of subjects.
    #[serde(default)]
    pub experiments: Vec<Experiment>,
    /// Its campaigns through our server and emulated push services, if it is such a study.
    #[serde(default)]
    pub campaigns: Option<Campaigns>,
}

/// An experiment: one operation over factors and subjects.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// A short name.
    pub id: String,
    /// The name in `published.csv`.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Readings of the study in which it is run.
    #[serde(default = "paper")]
    pub variants: Vec<String>,
    /// Settings of both halves in addition to the levels.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The factors.
    #[serde(default)]
    pub factors: Vec<Factor>,
    /// The compared subjects.
    pub subjects: Vec<PlanSlot>,
    /// If set, a subject that a user names takes part although no slot lists it.
    #[serde(default)]
    pub takes_named: bool,
    /// Interval between intended starts, in milliseconds; stretched if exchanges take longer.
    pub interval_ms: f64,
    /// Maximum of concurrent exchanges.
    #[serde(default = "one")]
    pub in_flight: u32,
    /// Approximate duration of an exchange, in milliseconds; used to estimate the duration of the run.
    pub exchange_ms: f64,
    /// Amounts of the quick profile.
    pub quick: Amount,
    /// Amounts of the standard profile.
    pub standard: Amount,
    /// Amounts of the full profile.
    pub full: Amount,
}

/// A factor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name in `published.csv`.
    pub name: String,
    /// Its levels.
    #[serde(deserialize_with = "levels")]
    pub levels: Vec<FactorLevel>,
}

/// One level of a factor. A plain text in the file is a level that sets the factor itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FactorLevel {
    /// Its name in `published.csv`.
    pub level: String,
    /// Settings for both halves.
    pub set: BTreeMap<String, String>,
    /// Profiles that include it; all if empty.
    pub profiles: Vec<RunProfile>,
    /// Variants that include it; all if empty.
    pub variants: Vec<String>,
    /// Levels of other factors with which it is combined, by factor; with all levels of a factor that is not listed.
    pub with: BTreeMap<String, Vec<String>>,
    /// CPU limit of each half, in percent of one core.
    pub cpu_percent: Option<u32>,
    /// The halves to which the CPU limit applies.
    pub cpu_of: CpuOf,
    /// Memory limit of each half, in MiB.
    pub memory_mib: Option<u32>,
    /// Profile of the link between a gateway and its server, instead of the study's.
    pub gateway_link: Option<String>,
    /// Estimate for an exchange, instead of the experiment's.
    pub exchange_ms: Option<f64>,
    /// Warm-up exchanges, instead of the profile's.
    pub warmup: Option<u32>,
    /// Measured exchanges of a fork, instead of the profile's.
    pub samples: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LevelForm {
    Name(String),
    Whole(FactorLevel),
}

fn levels<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FactorLevel>, D::Error> {
    let level = |form| match form {
        LevelForm::Name(level) => FactorLevel { level, ..FactorLevel::default() },
        LevelForm::Whole(level) => level,
    };
    Ok(Vec::deserialize(from)?.into_iter().map(level).collect())
}

/// A slot of a comparison, which one or more pieces of software can fill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSlot {
    /// The paper's name for it.
    pub label: String,
    /// Accepted dialects.
    pub dialects: Vec<String>,
    /// Parts of the ids of the paper's own software, or software of its kind.
    #[serde(default)]
    pub period: Vec<String>,
    /// Parts of the id of the server for all of the paper's own clients, including those with a server half of their own. If empty, a
    /// client uses its own server or ours.
    #[serde(default)]
    pub server: Vec<String>,
    /// Parts of the ids of other accepted software; `*` accepts all software of these dialects.
    #[serde(default)]
    pub also: Vec<String>,
    /// Parts of the ids of the other software that the standard profile already includes.
    #[serde(default)]
    pub standard: Vec<String>,
    /// If set, the built-in subject is included.
    #[serde(default = "yes")]
    pub rust: bool,
    /// Variants that include it; all if empty.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Settings of its halves in addition to the experiment's.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// The amounts per cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Fresh pairs of processes.
    pub forks: u32,
    /// Minimum of valid forks.
    pub forks_min: u32,
    /// Measured exchanges per fork.
    pub samples: u32,
    /// Warm-up exchanges before them, after the first exchange.
    pub warmup: u32,
    /// Interval between intended starts, in milliseconds; overrides the experiment's.
    #[serde(default)]
    pub interval_ms: Option<f64>,
}

impl Amount {
    /// Counts the exchanges of a fork with a share of a processor after its warm-up and before the measured ones; processes without a
    /// warm-up have none. The first of them has a whole processor still.
    #[must_use]
    pub const fn paced(self) -> u32 {
        if self.warmup > 0 { 1 + self.at_share() } else { 0 }
    }

    /// Counts those at the share, from which the interval of the measured exchanges follows; one exchange has no interval.
    #[must_use]
    pub const fn at_share(self) -> u32 {
        if self.samples > 1 { 2 } else { 0 }
    }
}

impl StudyPlan {
    /// Reads the plan of a study shipped with the laboratory; `None` if there is none.
    pub fn shipped(id: &str) -> Result<Option<Self>, PlanError> {
        let text = match id {
            "cai-2009" => include_str!("../studies/cai-2009/plan.toml"),
            "anacleto-2012" => include_str!("../studies/anacleto-2012/plan.toml"),
            "nunes-2014" => include_str!("../studies/nunes-2014/plan.toml"),
            "isikligil-2017" => include_str!("../studies/isikligil-2017/plan.toml"),
            "albertengo-2020" => include_str!("../studies/albertengo-2020/plan.toml"),
            _ => return Ok(None),
        };
        Self::parse(text).map(Some)
    }

    /// Parses a plan.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        Ok(toml::from_str(text)?)
    }
}

impl Experiment {
    /// Returns the amounts of a profile.
    #[must_use]
    pub const fn amount(&self, profile: RunProfile) -> Amount {
        match profile {
            RunProfile::Quick => self.quick,
            RunProfile::Standard => self.standard,
            RunProfile::Full => self.full,
        }
    }
}

fn paper() -> Vec<String> {
    vec!["paper".into()]
}

fn open() -> String {
    "open".into()
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests;
