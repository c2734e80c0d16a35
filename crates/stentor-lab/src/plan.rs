//! What of a study is run: experiments, factors, levels, subjects and amounts, as data in `studies/STUDY/plan.toml`.
//!
//! A **cell** is one combination of levels for one subject. How often a cell is run (forks) and how many exchanges each fork
//! measures (samples) follows from the profile: `quick` takes minutes, `standard` every level with fewer repetitions, `full`
//! the paper's repetitions.

mod campaigns;
mod expand;
mod unserved;

pub use campaigns::{
    Background, CampaignCell, Campaigns, OpenQuestion, PlatformDevices, PlatformMix, ProviderModel, Registry,
};
pub use expand::{Cell, ExpandedPlan, NotRun, PlanChoice, SampleChoice};
pub use unserved::UnservedPart;

use crate::subject::reference::Op;
use crate::word::words;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Studies of exchanges between pairs of subjects, oldest first.
pub const PLANNED: [&str; 4] = ["cai-2009", "anacleto-2012", "nunes-2014", "albertengo-2020"];

words! {
    /// How much is run.
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

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// It is no such TOML.
    #[error("the plan cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A wish names what the study does not have.
    #[error("{study} has no {what} {name:?}: {known}")]
    Unknown {
        /// The study.
        study: String,
        /// What kind of thing.
        what: &'static str,
        /// What was wished for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The server itself cannot be measured in what was wished for.
    #[error("{study} is not run with {part}: {reason}")]
    Unserved {
        /// The study.
        study: String,
        /// The server itself, and at which levels.
        part: String,
        /// Why it cannot, in a sentence.
        reason: String,
    },
}

/// What of a study is run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyPlan {
    /// The study's id.
    pub id: String,
    /// Profile of the link, unless another is asked for.
    pub link: String,
    /// Profile of the link between a gateway and its server, unless another is asked for.
    #[serde(default = "open")]
    pub gateway_link: String,
    /// The processor by whose watts energy is modelled; see [`crate::energy::processor`].
    #[serde(default)]
    pub processor: String,
    /// The radio by which energy is modelled where packets were kept; see [`crate::energy::coefficients`].
    #[serde(default)]
    pub radio: String,
    /// Whether one-way delay is told by clocks that were set by queries too.
    #[serde(default)]
    pub queries_clocks: bool,
    /// How often the paper's client makes an exchange while its battery empties, in milliseconds, where it measures that; see
    /// [`crate::energy::battery`].
    #[serde(default)]
    pub battery_period_ms: Option<u32>,
    /// Where the paper stood in factors that its figures do not name: its level first, then what is taken in its place from
    /// subjects that have no such level. Claims are judged there, and the paper's times stand beside those cells alone.
    #[serde(default)]
    pub setting: BTreeMap<String, Vec<String>>,
    /// What differs from the paper, for readers of the results.
    #[serde(default)]
    pub differences: Vec<String>,
    /// What may mislead.
    #[serde(default)]
    pub threats: Vec<String>,
    /// What the paper measured and nothing here can, with the reason.
    #[serde(default)]
    pub not_here: Vec<NotRun>,
    /// What of it the server itself cannot be asked, as a subject.
    #[serde(default)]
    pub unserved: Vec<UnservedPart>,
    /// Its experiments: exchanges between pairs of subjects.
    #[serde(default)]
    pub experiments: Vec<Experiment>,
    /// Its campaigns, through our server and emulated push services, where it is a study of such.
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
    /// What is asked.
    pub op: Op,
    /// Readings of the study in which it is run.
    #[serde(default = "paper")]
    pub variants: Vec<String>,
    /// What both halves are told beside the levels.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What is varied.
    #[serde(default)]
    pub factors: Vec<Factor>,
    /// What is compared.
    pub subjects: Vec<PlanSlot>,
    /// Between intended starts, in milliseconds; stretched where exchanges take longer.
    pub interval_ms: f64,
    /// Exchanges at once, at most.
    #[serde(default = "one")]
    pub in_flight: u32,
    /// About how long an exchange takes, in milliseconds, to tell beforehand how long all will take.
    pub exchange_ms: f64,
    /// Amounts of the quick profile.
    pub quick: Amount,
    /// Amounts of the standard profile.
    pub standard: Amount,
    /// Amounts of the full profile.
    pub full: Amount,
}

/// What is varied.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name in `published.csv`.
    pub name: String,
    /// Its levels.
    #[serde(deserialize_with = "levels")]
    pub levels: Vec<FactorLevel>,
}

/// One level of a factor. A plain text in the file stands for a level that sets the factor itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FactorLevel {
    /// Its name in `published.csv`.
    pub level: String,
    /// What both halves are told.
    pub set: BTreeMap<String, String>,
    /// Profiles in which it is run; all when empty.
    pub profiles: Vec<RunProfile>,
    /// Variants in which it is run; all when empty.
    pub variants: Vec<String>,
    /// Processor time of each half, in percent of one core.
    pub cpu_percent: Option<u32>,
    /// Memory of each half, in MiB.
    pub memory_mib: Option<u32>,
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

/// A place in a comparison, which one or several pieces of software can fill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSlot {
    /// The paper's name for it.
    pub label: String,
    /// Dialects that count.
    pub dialects: Vec<String>,
    /// Parts of the ids of the paper's own software or its kind.
    #[serde(default)]
    pub period: Vec<String>,
    /// Parts of the id of the server that answers the paper's own clients, whatever halves these bring; its own or ours when
    /// empty.
    #[serde(default)]
    pub server: Vec<String>,
    /// Parts of the ids of other software that counts; `*` for all of these dialects.
    #[serde(default)]
    pub also: Vec<String>,
    /// Parts of the ids of that other software which the standard profile runs already.
    #[serde(default)]
    pub standard: Vec<String>,
    /// Whether the subject that the binary plays itself counts.
    #[serde(default = "yes")]
    pub rust: bool,
    /// Variants in which it is run; all when empty.
    #[serde(default)]
    pub variants: Vec<String>,
    /// What its halves are told beside the experiment's settings.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// How much of each cell is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Fresh pairs of processes.
    pub forks: u32,
    /// So many of them must count.
    pub forks_min: u32,
    /// Exchanges that are measured in each fork.
    pub samples: u32,
    /// Exchanges before them, after the first.
    pub warmup: u32,
    /// Between intended starts, in milliseconds, instead of the experiment's.
    #[serde(default)]
    pub interval_ms: Option<f64>,
}

impl StudyPlan {
    /// Reads the plan of a study that comes with the laboratory; `None` where there is none.
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

    /// Reads a plan.
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
