//! Probes of features: small trials of faces that tell what tables 9 and 10 of cai-2009 say by hand: of our own, or of any
//! subject's, where a probe can tell.
//!
//! A probe gives YES, NO, a number, or says that it cannot tell, each time with what it saw. What nobody can try is marked:
//! `documented` stands in a specification, `interviews` counts the statements of the paper, `proxy` counts something nearby.

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
    /// How an answer came about.
    pub enum ProbeKind {
        /// It was tried.
        Measured = "measured",
        /// It stands in a specification that is named.
        Documented = "documented",
        /// Statements of the paper's interviews were counted, as we coded them.
        Interviews = "interviews",
        /// Something nearby was counted.
        Proxy = "proxy",
    }
}

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProbeAnswer {
    /// A number.
    Number(f64),
    /// A word.
    Word(ProbeWord),
}

words! {
    /// What a probe says when it is no number.
    pub enum ProbeWord {
        /// It is so.
        Yes = "YES",
        /// It is not so.
        No = "NO",
        /// No trial can tell.
        Untestable = "not told by a probe",
        /// What would be counted is not here.
        NotCounted = "not counted",
        /// It is no question to this face.
        NotProbed = "not probed",
        /// The trial broke off.
        NotRun = "not run",
    }
}

/// What a probe says of one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// The probe.
    pub id: String,
    /// The row of the paper's tables.
    pub feature: String,
    /// The protocol, as the paper calls it.
    pub subject: String,
    /// What the probe does, in a sentence.
    pub does: String,
    /// How the answer came about.
    pub kind: ProbeKind,
    /// The answer.
    pub answer: ProbeAnswer,
    /// The unit of a number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What was seen, in a sentence.
    pub evidence: String,
}

/// What probes need besides a face.
#[derive(Debug, Clone, Default)]
pub struct ProbeContext {
    /// The paper's figures, with its interviews.
    pub figures: Figures,
    /// Folder of the subjects' sources, where there is one.
    pub sources: Option<PathBuf>,
    /// Where files of a trial may be kept.
    pub directory: PathBuf,
}

/// An answer and what was seen, before it is put under the probe's name.
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

    /// Returns the protocol that a dialect stands for; `None` for what the tables do not have.
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
    /// Writes the answer with its unit.
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

    /// Returns whether the trial came to its end.
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
