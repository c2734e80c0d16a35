//! The list of probes and their execution: descriptions are in `list.toml`, trials are found by id.

use super::face::TrialFace;
use super::interviews;
use super::{PaperProtocol, ProbeContext, ProbeKind, ProbeReply, ProbeResult, ProbeWord};
use super::{contract, multicall, security, shapes, size, sources, transport, types};
use crate::subject::{Definition, SubjectError};
use serde::Deserialize;
use std::pin::Pin;

type ProbeTrial<'a> = Pin<Box<dyn Future<Output = Result<ProbeReply, SubjectError>> + Send + 'a>>;

const TEXT: &str = include_str!("list.toml");
/// The reason for not probing a subject.
const OF_THE_FORMAT: &str = "decided by the bytes of the format, without a subject";

/// A probe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureProbe {
    /// Its id.
    pub id: String,
    /// The row of the paper's tables that it concerns.
    pub feature: String,
    /// The method behind its answers.
    pub kind: ProbeKind,
    /// Its procedure, in a sentence.
    pub does: String,
    /// Interview topics of the counted statements.
    #[serde(default)]
    topics: Vec<String>,
    /// The polarity of the counted statements: `for` a protocol or `against` it.
    #[serde(default)]
    polarity: String,
}

#[derive(Deserialize)]
struct ProbesFile {
    probes: Vec<FeatureProbe>,
}

/// The implementation of a probe.
enum How {
    /// By bytes and values for our own face, by an exchange for any other.
    Either(
        fn(PaperProtocol) -> Result<ProbeReply, SubjectError>,
        for<'a> fn(&'a mut TrialFace) -> ProbeTrial<'a>,
    ),
    /// By an exchange with a face.
    Live(for<'a> fn(&'a mut TrialFace, &'a ProbeContext) -> ProbeTrial<'a>),
    /// By bytes and values alone.
    Bytes(fn(PaperProtocol) -> Result<ProbeReply, SubjectError>),
    /// By documents or sources.
    Read(fn(PaperProtocol, &ProbeContext) -> ProbeReply),
    /// By statements of interviews.
    Counted,
}

/// Lists every probe, in the order of the paper's rows.
#[must_use]
pub fn list() -> Vec<FeatureProbe> {
    toml::from_str::<ProbesFile>(TEXT).map(|file| file.probes).unwrap_or_default()
}

/// Runs every probe on each face. A probe that is aborted reports the reason, and the others continue.
pub async fn run(faces: &mut [TrialFace], context: &ProbeContext) -> Vec<ProbeResult> {
    let mut all = Vec::new();
    for probe in list() {
        for face in faces.iter_mut() {
            all.push(probe.ask(face, context).await);
        }
    }
    all
}

/// Runs every trial on a foreign subject, each on a fresh process, so that a trial which ends its process does not affect the others.
/// Probes that count or cite documents do not concern a subject and are left out.
pub async fn run_on(
    definition: &Definition,
    context: &ProbeContext,
) -> Result<Vec<ProbeResult>, SubjectError> {
    let mut all = Vec::new();
    for probe in list().into_iter().filter(|probe| probe.kind == ProbeKind::Measured) {
        let mut face = TrialFace::foreign(definition).await?;
        all.push(probe.ask(&mut face, context).await);
        face.end().await;
    }
    Ok(all)
}

impl FeatureProbe {
    /// Finds the implementation; `None` for an id without a trial.
    fn how(&self) -> Option<How> {
        use How::{Bytes, Counted, Either, Live, Read};
        Some(match self.id.as_str() {
            "structs" => Live(|face, _| Box::pin(shapes::structs(face))),
            "named" => Either(shapes::named, |face| Box::pin(shapes::named_by(face))),
            "customized" => Bytes(shapes::customized),
            "strict" => Live(|face, _| Box::pin(shapes::strict(face))),
            "types" => Bytes(types::survive),
            "multicall" => Live(|face, _| Box::pin(multicall::several(face))),
            "transport" => Bytes(transport::independent),
            "contract" => Live(|face, _| Box::pin(contract::specification(face))),
            "tools" => Live(|face, _| Box::pin(contract::tools(face))),
            "overhead" => Either(size::overhead, |face| Box::pin(size::overhead_of(face))),
            "laughs" => Live(|face, _| Box::pin(security::laughs(face))),
            "external" => Live(|face, _| Box::pin(security::external(face))),
            "depth" => Live(|face, _| Box::pin(security::depth(face))),
            "size" => Bytes(security::size),
            "tls" => Live(|face, context| Box::pin(security::tls(face, context))),
            "message-served" => Live(|face, _| Box::pin(security::message_served(face))),
            "message-specified" => Read(|protocol, _| security::message_specified(protocol)),
            "lines" => Read(|protocol, context| sources::lines(protocol, context.sources.as_deref())),
            "files" => Read(|protocol, context| sources::touched(protocol, context.sources.as_deref())),
            "names" => Bytes(size::names_known),
            _ if self.kind == ProbeKind::Interviews => Counted,
            _ => return None,
        })
    }

    #[cfg(test)]
    pub(super) fn has_trial(&self) -> bool {
        self.how().is_some()
    }

    async fn reply(&self, face: &mut TrialFace, context: &ProbeContext) -> Result<ProbeReply, SubjectError> {
        let protocol = face.protocol;
        match self.how() {
            Some(How::Live(trial)) => trial(face, context).await,
            Some(How::Either(_, trial)) if !face.is_ours => trial(face).await,
            Some(How::Bytes(_)) if !face.is_ours => Ok(ProbeReply::not_probed(OF_THE_FORMAT)),
            Some(How::Either(trial, _) | How::Bytes(trial)) => trial(protocol),
            Some(How::Read(read)) => Ok(read(protocol, context)),
            Some(How::Counted) => {
                Ok(interviews::count(protocol, &context.figures, &self.topics, &self.polarity))
            }
            None => Ok(ProbeReply::word(ProbeWord::NotRun, format!("there is no trial {}", self.id))),
        }
    }

    /// Runs the probe on one face.
    pub(super) async fn ask(&self, face: &mut TrialFace, context: &ProbeContext) -> ProbeResult {
        let reply = self.reply(face, context).await.unwrap_or_else(|error| match error {
            // A foreign subject may close the connection because of the request, and then does not have the feature.
            SubjectError::Unanswered if !face.is_ours => ProbeReply::no(error.to_string()),
            _ => ProbeReply::word(ProbeWord::NotRun, error.to_string()),
        });
        ProbeResult {
            id: self.id.clone(),
            feature: self.feature.clone(),
            subject: face.protocol.label().to_owned(),
            does: self.does.clone(),
            kind: self.kind,
            answer: reply.answer,
            unit: reply.unit.into(),
            evidence: reply.evidence,
        }
    }
}
