//! A published study as data: its scenarios, its claims, and its figures with their source.

mod cell;
mod claim;
mod published;

use serde::{Deserialize, Serialize};

pub use cell::{Cell, Group};
pub use claim::{Claim, Evidence, Found, Kind, Verdict, interval};
pub use published::Published;

/// Why the data of a study cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The definition is no such TOML.
    #[error("the definition of the study cannot be read: {0}")]
    Definition(#[from] toml::de::Error),
    /// A line of the published figures is not as it should be.
    #[error("line {line} of the published figures: {problem}")]
    Figures {
        /// Line of the file, from 1.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A study: what was done, what was claimed, and what differs here.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name and year.
    pub id: String,
    /// Who wrote it.
    pub authors: String,
    /// Its title.
    pub title: String,
    /// When it was published.
    pub year: u16,
    /// Devices of the apps.
    pub registry: Registry,
    /// How the push services behave.
    pub provider: ProviderModel,
    /// What goes on beside.
    pub background: Background,
    /// What was run.
    pub scenarios: Vec<Scenario>,
    /// Questions that the paper leaves open.
    pub groups: Vec<Group>,
    /// What is run to answer them.
    pub beyond: Vec<Cell>,
    /// What was concluded.
    pub claims: Vec<Claim>,
    /// What is not as it was.
    pub differences: Vec<Remark>,
    /// What may mislead.
    pub threats: Vec<Remark>,
}

/// A sentence.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// What is to be said.
    pub text: String,
}

/// Devices of the two apps at scale 1.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Of the app that tests of one platform go to.
    pub one_platform: Devices,
    /// Of the app that tests of both go to.
    pub both_platforms: Devices,
}

/// Devices by platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devices {
    /// Android.
    pub gcm: u64,
    /// Apple.
    pub apns: u64,
}

/// How long push services take: lognormal.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderModel {
    /// Half of the answers come sooner, in milliseconds.
    pub latency_median_ms: f64,
    /// Standard deviation of the logarithm.
    pub latency_sigma: f64,
}

/// Requests beside the campaign, at scale 1 and at any other.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Registrations of devices.
    pub device_saves_per_second: u32,
    /// Users made known.
    pub user_saves_per_second: u32,
}

/// Whom a scenario's pushes go to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mix {
    /// Android alone.
    #[serde(rename = "gcm")]
    Gcm,
    /// Apple alone.
    #[serde(rename = "apns")]
    Apns,
    /// Half of each, of the other app.
    #[default]
    #[serde(rename = "gcm+apns")]
    Both,
}

/// One test.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The paper's name.
    pub id: String,
    /// The paper's version of its software.
    pub version: String,
    /// Whom the pushes go to.
    pub mix: Mix,
    /// Consumers of each platform, with one request in flight each.
    pub consumers: u32,
    /// Whether connections are kept.
    pub pooled: bool,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Study {
    /// Reads the study of a prototype framework from 2017, 13 tests of a million pushes each.
    pub fn isikligil_2017() -> Result<Self, StudyError> {
        Ok(toml::from_str(include_str!("../studies/isikligil-2017/study.toml"))?)
    }

    /// Returns the devices of an app at a scale, never fewer than two of a platform.
    #[must_use]
    pub fn devices(&self, mix: Mix, scale: f64) -> Devices {
        let full = if mix == Mix::Both { self.registry.both_platforms } else { self.registry.one_platform };
        let scaled = |count: u64| ((count as f64 * scale).round() as u64).max(2);
        Devices { gcm: scaled(full.gcm), apns: scaled(full.apns) }
    }

    /// Returns how many pushes a test with this mix is made of at a scale.
    #[must_use]
    pub fn pushes(&self, mix: Mix, scale: f64) -> u64 {
        let Devices { gcm, apns } = self.devices(mix, scale);
        match mix {
            Mix::Gcm => gcm,
            Mix::Apns => apns,
            Mix::Both => gcm + apns,
        }
    }
}

impl ProviderModel {
    /// Returns one that always takes as long, in milliseconds.
    #[must_use]
    pub const fn fixed(latency_ms: f64) -> Self {
        Self { latency_median_ms: latency_ms, latency_sigma: 0.0 }
    }

    /// Returns the mean, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.latency_median_ms * (self.latency_sigma * self.latency_sigma / 2.0).exp()
    }
}

impl Mix {
    /// Returns the name that stands in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gcm => "gcm",
            Self::Apns => "apns",
            Self::Both => "gcm+apns",
        }
    }

    /// Counts the providers that work side by side.
    #[must_use]
    pub const fn providers(self) -> u32 {
        match self {
            Self::Gcm | Self::Apns => 1,
            Self::Both => 2,
        }
    }
}

impl Scenario {
    /// Returns what is to be run for it.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell {
            id: self.id.clone(),
            mix: self.mix,
            consumers: Some(self.consumers),
            pooled: self.pooled,
            note: self.note.clone(),
            ..Cell::default()
        }
    }
}

#[cfg(test)]
mod tests;
