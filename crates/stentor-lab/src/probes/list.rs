//! Every probe, and running them.

use super::face::Face;
use super::interviews::{self, LEARNING, MAINTAINABILITY};
use super::{Ground, Kind, Protocol, Reply, Told, Word};
use super::{contract, multicall, security, shapes, size, sources, transport, types};
use crate::subject::{Definition, SubjectError};
use std::pin::Pin;

type Trial<'a> = Pin<Box<dyn Future<Output = Result<Reply, SubjectError>> + Send + 'a>>;

/// A probe.
pub struct Probe {
    /// Its id.
    pub id: &'static str,
    /// The row of the paper's tables on which it bears.
    pub feature: &'static str,
    /// How its answers come about.
    pub kind: Kind,
    /// What it does, in a sentence.
    pub does: &'static str,
    how: How,
}

/// How a probe comes to its answer.
enum How {
    /// Of our own face by bytes and values, of any other by an exchange.
    Either(fn(Protocol) -> Result<Reply, SubjectError>, for<'a> fn(&'a mut Face) -> Trial<'a>),
    /// By an exchange with a face.
    Live(for<'a> fn(&'a mut Face, &'a Ground) -> Trial<'a>),
    /// By bytes and values alone.
    Bytes(fn(Protocol) -> Result<Reply, SubjectError>),
    /// By what is written somewhere.
    Read(fn(Protocol, &Ground) -> Reply),
}

const STRUCTS: &str = "Structs and arrays";
const STRICT: &str = "Strict typing";
const TABLE_10_EASE: &str = "Short learning curve";
const UPKEEP: &str = "Extensibility/Maintainability";
const SECURITY: &str = "Security";

/// Why a subject is not asked.
const OF_THE_FORMAT: &str = "told by bytes of the format in our own hands; a subject has no part in it";

/// Lists every probe, in the order of the paper's rows.
#[must_use]
pub fn list() -> Vec<Probe> {
    [of_table_9(), of_table_10(), of_security(), of_people()].into_iter().flatten().collect()
}

const fn measured(id: &'static str, feature: &'static str, does: &'static str, how: How) -> Probe {
    Probe { id, feature, kind: Kind::Measured, does, how }
}

fn of_table_9() -> Vec<Probe> {
    let live = How::Live;
    vec![
        measured(
            "structs",
            STRUCTS,
            "Asks for an array of numbers and one of structs, and compares every entry.",
            live(|face, _| Box::pin(shapes::structs(face))),
        ),
        measured(
            "named",
            "Named structs and arrays",
            "Writes an array of structs and looks whether the array and the struct are elements of their names.",
            How::Either(shapes::named, |face| Box::pin(shapes::named_by(face))),
        ),
        measured(
            "customized",
            "Customized data set",
            "Carries an element of a vocabulary of one's own through the format.",
            How::Bytes(shapes::customized),
        ),
        measured(
            "strict",
            STRICT,
            "Sends text where a number belongs: the face must refuse it, and the format or a contract must say so.",
            live(|face, _| Box::pin(shapes::strict(face))),
        ),
        measured(
            "types",
            STRICT,
            "Writes and reads a value of each of nine types and counts those that come back as they were, by the document alone.",
            How::Bytes(types::survive),
        ),
        measured(
            "multicall",
            "Multiple request handling",
            "Sends two requests in one and looks for two answers.",
            live(|face, _| Box::pin(multicall::several(face))),
        ),
        measured(
            "transport",
            "Transport protocol independent",
            "Carries an exchange in frames without HTTP, where the document must say which operation is meant.",
            How::Bytes(transport::independent),
        ),
    ]
}

fn of_table_10() -> Vec<Probe> {
    vec![
        measured(
            "contract",
            "Specification",
            "Asks the face for a description that a machine can read: WSDL, system.listMethods, or any document at usual places.",
            How::Live(|face, _| Box::pin(contract::specification(face))),
        ),
        measured(
            "tools",
            "Tools framework",
            "Makes a client from that description alone and lets it call.",
            How::Live(|face, _| Box::pin(contract::tools(face))),
        ),
        measured(
            "overhead",
            "Overhead",
            "Counts the bytes that one fixed request takes besides its payload of 64 letters.",
            How::Either(size::overhead, |face| Box::pin(size::overhead_of(face))),
        ),
    ]
}

fn of_security() -> Vec<Probe> {
    let live = How::Live;
    vec![
        measured(
            "laughs",
            SECURITY,
            "Sends entities that grow to a thousand times their size (billion laughs); they must be refused.",
            live(|face, _| Box::pin(security::laughs(face))),
        ),
        measured(
            "external",
            SECURITY,
            "Sends an entity that stands for a file of the server; it must be refused.",
            live(|face, _| Box::pin(security::external(face))),
        ),
        measured(
            "depth",
            SECURITY,
            "Sends 10,000 elements within each other; they must be refused.",
            live(|face, _| Box::pin(security::depth(face))),
        ),
        measured(
            "size",
            SECURITY,
            "Reads a document that is one byte too large; it must be refused.",
            How::Bytes(security::size),
        ),
        measured(
            "tls",
            SECURITY,
            "Makes an exchange over TLS.",
            live(|face, ground| Box::pin(security::tls(face, ground))),
        ),
        measured(
            "message-served",
            SECURITY,
            "Sends a header of WS-Security that must be understood.",
            live(|face, _| Box::pin(security::message_served(face))),
        ),
        Probe {
            id: "message-specified",
            feature: SECURITY,
            kind: Kind::Documented,
            does: "Says which standard secures a message apart from its transport.",
            how: How::Read(|protocol, _| security::message_specified(protocol)),
        },
    ]
}

fn of_people() -> Vec<Probe> {
    let interviews = |id, feature, does, how| Probe { id, feature, kind: Kind::Interviews, does, how };
    let proxy = |id, feature, does, how| Probe { id, feature, kind: Kind::Proxy, does, how };
    let (for_it, against) = (
        "Counts the statements of the interviews that speak for it, as we coded them.",
        "Counts the statements of the interviews that speak against it, as we coded them.",
    );
    vec![
        interviews(
            "upkeep-for",
            UPKEEP,
            for_it,
            How::Read(|protocol, ground| {
                interviews::count(protocol, &ground.figures, MAINTAINABILITY, "for")
            }),
        ),
        interviews(
            "upkeep-against",
            UPKEEP,
            against,
            How::Read(|protocol, ground| {
                interviews::count(protocol, &ground.figures, MAINTAINABILITY, "against")
            }),
        ),
        proxy(
            "lines",
            UPKEEP,
            "Counts the lines that one operation takes in our subject: CXF for SOAP and REST, Apache XML-RPC.",
            How::Read(|protocol, ground| sources::lines(protocol, ground.sources.as_deref())),
        ),
        proxy(
            "files",
            UPKEEP,
            "Counts the files that one operation touches there.",
            How::Read(|protocol, ground| sources::touched(protocol, ground.sources.as_deref())),
        ),
        interviews(
            "learning-for",
            TABLE_10_EASE,
            for_it,
            How::Read(|protocol, ground| interviews::count(protocol, &ground.figures, LEARNING, "for")),
        ),
        interviews(
            "learning-against",
            TABLE_10_EASE,
            against,
            How::Read(|protocol, ground| interviews::count(protocol, &ground.figures, LEARNING, "against")),
        ),
        proxy(
            "names",
            TABLE_10_EASE,
            "Counts the different names that the caller of one operation has to write.",
            How::Bytes(size::names_known),
        ),
    ]
}

/// Runs every probe on each face; one that breaks off says why, and the others go on.
pub async fn run(faces: &mut [Face], ground: &Ground) -> Vec<Told> {
    let mut all = Vec::new();
    for probe in list() {
        for face in faces.iter_mut() {
            all.push(probe.ask(face, ground).await);
        }
    }
    all
}

/// Runs every trial on somebody else's subject, each on a process of its own: what one of them ends is no end of the others.
/// What the tables tell by counting and by documents is about no subject and is left out.
pub async fn run_on(definition: &Definition, ground: &Ground) -> Result<Vec<Told>, SubjectError> {
    let mut all = Vec::new();
    for probe in list().into_iter().filter(|probe| probe.kind == Kind::Measured) {
        let mut face = Face::foreign(definition).await?;
        all.push(probe.ask(&mut face, ground).await);
        face.end().await;
    }
    Ok(all)
}

impl Probe {
    /// Runs it on one face.
    pub(super) async fn ask(&self, face: &mut Face, ground: &Ground) -> Told {
        let subject = face.protocol.label().to_owned();
        let reply = match self.how {
            How::Live(trial) => trial(face, ground).await,
            How::Either(_, trial) if !face.is_ours => trial(face).await,
            How::Bytes(_) if !face.is_ours => Ok(Reply::word(Word::NotProbed, OF_THE_FORMAT)),
            How::Either(trial, _) | How::Bytes(trial) => trial(face.protocol),
            How::Read(read) => Ok(read(face.protocol, ground)),
        };
        let reply = reply.unwrap_or_else(|error| match error {
            // Somebody else's subject may end itself over what is asked of it, and then does not do it.
            SubjectError::Unanswered if !face.is_ours => Reply::word(Word::No, error.to_string()),
            _ => Reply::word(Word::NotRun, error.to_string()),
        });
        Told {
            id: self.id.into(),
            feature: self.feature.into(),
            subject,
            does: self.does.into(),
            kind: self.kind,
            answer: reply.answer,
            unit: reply.unit.into(),
            evidence: reply.evidence,
        }
    }
}
