//! Probes of features: small trials of faces that reproduce tables 9 and 10 of cai-2009. They probe our own face or, where possible, any
//! subject's.
//!
//! A probe answers YES, NO, a number, or that it cannot decide, each time with its evidence. Features that cannot be tried are marked:
//! `documented` cites a specification, `interviews` counts the statements of the paper, `proxy` counts something nearby.

mod contract;
mod face;
mod file;
mod interviews;
mod list;
mod multicall;
mod security;
mod shapes;
mod size;
mod sources;
mod tables;
mod transport;
pub mod tried;
mod types;

use crate::claims::figures::Figures;
use crate::subject::SubjectError;
use crate::subject::dialect::{SubjectDialect, SubjectTransport, ValueFormat};
use crate::word::words;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use stentor_wire::soap::Version;

pub use face::TrialFace;
pub use file::{PROBES, Probed, ProbedError};
pub use list::{FeatureProbe, list, run, run_on};
pub use tables::{PaperCell, rows};

/// The study whose tables are probed.
pub const STUDY: &str = "cai-2009";

/// A protocol of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperProtocol {
    /// SOAP 1.1.
    Soap,
    /// XML-RPC.
    XmlRpc,
    /// REST with XML, as the paper has it.
    Rest,
}

words! {
    /// The method behind an answer.
    pub enum ProbeKind {
        /// It was measured by a trial.
        Measured = "measured",
        /// It is documented in a cited specification.
        Documented = "documented",
        /// Statements of the paper's interviews were counted, as coded by us.
        Interviews = "interviews",
        /// A proxy was counted.
        Proxy = "proxy",
    }
}

/// The answer of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProbeAnswer {
    /// A number.
    Number(f64),
    /// A word.
    Word(ProbeWord),
}

words! {
    /// A probe's answer that is no number.
    pub enum ProbeWord {
        /// The feature is present.
        Yes = "YES",
        /// The feature is absent.
        No = "NO",
        /// No trial can decide it.
        Untestable = "not told by a probe",
        /// The things to count are absent here.
        NotCounted = "not counted",
        /// The probe does not apply to this face.
        NotProbed = "not probed",
        /// The trial was aborted.
        NotRun = "not run",
    }
}

/// The result of a probe for one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The probe.
    pub id: String,
    /// The row of the paper's tables.
    pub feature: String,
    /// The protocol, as the paper calls it.
    pub subject: String,
    /// The probe's procedure, in a sentence.
    pub does: String,
    /// The method behind the answer.
    pub kind: ProbeKind,
    /// The answer.
    pub answer: ProbeAnswer,
    /// The unit of a number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The observation, in a sentence.
    pub evidence: String,
}

/// Inputs of probes besides a face.
#[derive(Debug, Clone, Default)]
pub struct ProbeContext {
    /// The paper's figures, with its interviews.
    pub figures: Figures,
    /// Folder of the subjects' sources, if present.
    pub sources: Option<PathBuf>,
    /// Folder for the files of a trial.
    pub directory: PathBuf,
}

/// An answer with its evidence, before the probe's name is added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProbeReply {
    answer: ProbeAnswer,
    unit: &'static str,
    evidence: String,
}

impl PaperProtocol {
    /// Every protocol, in the paper's order.
    pub const ALL: [Self; 3] = [Self::Soap, Self::XmlRpc, Self::Rest];

    /// Returns its name in the paper.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Soap => "SOAP",
            Self::XmlRpc => "XML-RPC",
            Self::Rest => "REST",
        }
    }

    /// Returns the protocol of a dialect; `None` if the tables do not have it.
    #[must_use]
    pub fn of(dialect: SubjectDialect) -> Option<Self> {
        match (dialect.transport, dialect.format) {
            (SubjectTransport::Http, ValueFormat::Soap(Version::V11)) => Some(Self::Soap),
            (SubjectTransport::Http, ValueFormat::XmlRpc) => Some(Self::XmlRpc),
            (
                SubjectTransport::Http,
                ValueFormat::XmlSax | ValueFormat::XmlDom | ValueFormat::XmlPull | ValueFormat::Json,
            ) => Some(Self::Rest),
            _ => None,
        }
    }

    /// Returns the dialect that our face speaks.
    pub fn dialect(self) -> Result<SubjectDialect, SubjectError> {
        let name = match self {
            Self::Soap => "soap",
            Self::XmlRpc => "xmlrpc",
            Self::Rest => "rest+xml",
        };
        SubjectDialect::named(name).ok_or_else(|| SubjectError::Dialect(name.to_owned()))
    }
}

impl ProbeResult {
    /// Formats the answer with its unit.
    #[must_use]
    pub fn answer_text(&self) -> String {
        match self.answer {
            ProbeAnswer::Word(word) => word.word().to_owned(),
            ProbeAnswer::Number(number) => {
                let (noun, rest) = self.unit.split_once(' ').unwrap_or((&self.unit, ""));
                let noun = if number.to_string() == "1" { noun.trim_end_matches('s') } else { noun };
                [&number.to_string(), noun, rest].join(" ").trim_end().to_owned()
            }
        }
    }

    /// Returns true if the trial ran to its end.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.answer != ProbeAnswer::Word(ProbeWord::NotRun)
    }
}

impl ProbeReply {
    fn word(word: ProbeWord, evidence: impl Into<String>) -> Self {
        Self { answer: ProbeAnswer::Word(word), unit: "", evidence: evidence.into() }
    }

    fn is(so: bool, evidence: impl Into<String>) -> Self {
        Self::word(if so { ProbeWord::Yes } else { ProbeWord::No }, evidence)
    }

    fn yes(evidence: impl Into<String>) -> Self {
        Self::word(ProbeWord::Yes, evidence)
    }

    fn no(evidence: impl Into<String>) -> Self {
        Self::word(ProbeWord::No, evidence)
    }

    fn not_probed(evidence: impl Into<String>) -> Self {
        Self::word(ProbeWord::NotProbed, evidence)
    }

    fn count(count: usize, unit: &'static str, evidence: impl Into<String>) -> Self {
        Self { answer: ProbeAnswer::Number(count as f64), unit, evidence: evidence.into() }
    }
}

#[cfg(test)]
mod tests;
