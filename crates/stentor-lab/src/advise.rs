//! Advice on transport and format, and on push: a ranking of choices, each with the claims and measurements for and against it.
//!
//! Body sizes are counted by encoding content of the requested size in each format. Times are those of the link alone. Rules (`rules.toml`)
//! add the findings of studies. A rule has the weight of its claim: none if figures contradict the claim, half if the claim could not be
//! tested. Measurements come from the given records; studies without records use those of `docs/studies`.

mod evidence;
mod link;
mod push;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::claims::ClaimVerdict;
use crate::claims::{ClaimsError, Dossier};
use crate::subject::dialect::SubjectDialect;
use crate::subject::reference::Op;

use evidence::EvidenceVerdict;
use rules::{Rule, rules};

pub use evidence::{EvidenceSource, FOLDER, StudyEvidence, Timed, write};
pub use link::{LINKS, LinkPreset};

/// The choices.
const CHOICES: [&str; 10] = [
    "rest+json",
    "rest+protobuf",
    "rest+xml",
    "soap",
    "xmlrpc",
    "socket+protobuf",
    "socket+xml-sax",
    "gcm",
    "fcm",
    push::GATEWAY,
];
/// Letters and digits per object in structured data.
const OBJECT_BYTES: u64 = 20;
/// The largest payload that is advised on, in bytes. Larger payloads need another design.
pub const PAYLOAD_MAX_BYTES: u64 = 2_000_000;
/// Link utilization from which a choice loses points.
const FULL_SHARE: f64 = 0.7;
/// Points for the shortest time on the link; each doubling of the time takes one.
const TIME_POINTS: f64 = 3.0;
/// Points that a choice loses if its load exceeds the link.
const FULL_POINTS: f64 = 10.0;

/// Levels without a hindrance to exchanges. The computed time is that of an open connection.
const PLAIN: [(&str, &str); 4] = [("connection", "kept"), ("tls", "off"), ("heap", "free"), ("cpu", "whole")];
/// Distance for each factor at another level, and for a foreign subject, in natural logarithms of the size ratio.
const HINDRANCE: f64 = 0.1;
/// Distance of a cell on another link.
const OTHER_LINK: f64 = 1.0;
/// The largest size ratio at which a measurement is still informative.
const FAR_TIMES: f64 = 8.0;

/// The weight of a criterion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// Not at all.
    None,
    /// As usual.
    #[default]
    Some,
    /// More than most else.
    High,
}

impl Importance {
    const fn points(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Some => 0.5,
            Self::High => 1.5,
        }
    }
}

/// The requirements to advise on.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AdviceRequest {
    /// Letters and digits of one message, in bytes.
    pub payload_bytes: u64,
    /// Messages each second.
    pub per_second: f64,
    /// The link.
    pub link: &'static LinkPreset,
    /// Importance of type checks and reported faults.
    pub correctness: Importance,
    /// Importance of access for any client with the software it has.
    pub openness: Importance,
    /// Importance of battery life.
    pub energy: Importance,
}

/// One choice.
#[derive(Debug, Clone, Serialize)]
pub struct Recommendation {
    /// Transport and format.
    pub choice: &'static str,
    /// The sum of the points of its reasons.
    pub points: f64,
    /// Bytes of the body, counted by writing one.
    pub body_bytes: u64,
    /// Time of a message and an empty response on the link alone, over an open connection, in milliseconds; computed.
    pub link_ms: f64,
    /// Time in a vendor's push service on the way to a device, in milliseconds, as a paper measured it; 0 without one.
    pub service_ms: f64,
    /// Share of the link taken by all messages, from 0; may exceed 1.
    pub link_share: f64,
    /// Reasons for its rank.
    pub reasons: Vec<Reason>,
    /// Measurements of it from the records.
    pub measured: Vec<Measured>,
}

impl Recommendation {
    /// Returns true if a server sends by this choice when it has something.
    #[must_use]
    pub fn is_push(&self) -> bool {
        push::is_push(self.choice)
    }
}

/// A reason for or against a choice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// Points; negative if the reason speaks against the choice.
    pub points: f64,
    /// The reason.
    pub text: String,
    /// Study and claim behind it, if any.
    pub claim: Option<String>,
    /// The statement of the paper.
    pub says: Option<String>,
    /// The verdict of the paper's own data.
    pub published: Option<ClaimVerdict>,
    /// The verdict of the records on the claim; absent if they do not bear on it.
    pub ours: Option<ClaimVerdict>,
    /// The compared part of the claim, if the records bear on a part only.
    pub part: Option<String>,
}

/// A measurement that bears on a choice.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The runs that it comes from.
    #[serde(flatten)]
    pub source: EvidenceSource,
    /// The cell and its time.
    #[serde(flatten)]
    pub timed: Timed,
}

/// A claim with its verdicts.
struct Claimed {
    says: String,
    published: ClaimVerdict,
    ours: Option<EvidenceVerdict>,
}

/// Claims by study and id, separated by a space.
type ClaimedFigures = BTreeMap<String, Claimed>;

/// Ranks the choices, the best first.
pub fn advise(wish: &AdviceRequest, evidence: &[StudyEvidence]) -> Result<Vec<Recommendation>, ClaimsError> {
    let rules = rules()?;
    let known = known(&rules, evidence)?;
    let size = |choice| Ok((choice, body_bytes(choice, wish.payload_bytes)?));
    let sizes = CHOICES.into_iter().map(size).collect::<Result<Vec<_>, ClaimsError>>()?;
    let times = sizes.iter().map(|(choice, bytes)| wish.link.message_ms(*bytes) + push::service_ms(choice));
    let least = times.fold(f64::INFINITY, f64::min);
    let mut all: Vec<Recommendation> = sizes
        .into_iter()
        .map(|(choice, bytes)| {
            let service_ms = push::service_ms(choice);
            let mut reasons = vec![by_time(wish, bytes, service_ms, least)];
            reasons.extend(by_load(wish, bytes));
            reasons.extend(by_messages(wish, choice));
            reasons.extend(rules.iter().filter_map(|rule| rule.reason(wish, choice, &known)));
            let points = reasons.iter().map(|reason| reason.points).sum();
            Recommendation {
                choice,
                points,
                body_bytes: bytes,
                link_ms: wish.link.message_ms(bytes),
                service_ms,
                link_share: wish.link.share(bytes, wish.per_second),
                reasons,
                measured: measured(choice, bytes - framing_bytes(choice), wish.link, evidence),
            }
        })
        .collect();
    all.sort_by(|one, other| {
        other.points.total_cmp(&one.points).then_with(|| one.body_bytes.cmp(&other.body_bytes))
    });
    Ok(all)
}

/// Counts the bytes of a body with objects of `payload_bytes` letters and digits in total; of push, of messages with as many letters.
fn body_bytes(choice: &str, payload_bytes: u64) -> Result<u64, ClaimsError> {
    if push::is_push(choice) {
        return Ok(push::body_bytes(choice, payload_bytes.min(PAYLOAD_MAX_BYTES)));
    }
    let count = (payload_bytes.min(PAYLOAD_MAX_BYTES) / OBJECT_BYTES).max(1);
    let factors =
        BTreeMap::from([("type".to_owned(), "Object".to_owned()), ("items".to_owned(), count.to_string())]);
    let content = Op::Array.answer(Op::Array.request(&factors, 1));
    let body = SubjectDialect::named(choice)
        .zip(content)
        .map(|(dialect, content)| dialect.write_answer(Op::Array, &content))
        .transpose()
        .map_err(|source| ClaimsError::Body { choice: choice.to_owned(), source })?;
    Ok(body.map_or(0, |body| body.len() as u64) + framing_bytes(choice))
}

/// Returns the framing overhead of a body: the length field of 4 bytes on a socket, the headers over HTTP, nothing more for push.
fn framing_bytes(choice: &str) -> u64 {
    match choice {
        _ if push::is_push(choice) => 0,
        _ if choice.starts_with("socket") => 4,
        _ => link::HTTP_BYTES,
    }
}

fn plain(points: f64, text: String) -> Reason {
    Reason { points, text, claim: None, says: None, published: None, ours: None, part: None }
}

fn by_time(wish: &AdviceRequest, bytes: u64, service_ms: f64, least: f64) -> Reason {
    let time = wish.link.message_ms(bytes);
    let points = TIME_POINTS - ((time + service_ms) / least).log2();
    let service = match service_ms {
        0.0 => String::new(),
        ms => format!(", and {ms:.0} ms in the push service, as albertengo-2020 found"),
    };
    plain(
        points.max(0.0),
        format!(
            "takes {time:.1} ms of {} for {bytes} bytes (worked out from {}){service}",
            wish.link.name, wish.link.source
        ),
    )
}

/// Returns the reason against a push service whose messages are too small for the content.
fn by_messages(wish: &AdviceRequest, choice: &str) -> Option<Reason> {
    let messages = if push::is_push(choice) { push::messages(choice, wish.payload_bytes) } else { 1 };
    let text =
        format!("takes {messages} messages, because one has at most {} bytes of data", push::DATA_MAX_BYTES);
    (messages > 1).then(|| plain(-1.0 - (messages as f64).log2(), text))
}

fn by_load(wish: &AdviceRequest, bytes: u64) -> Option<Reason> {
    let share = wish.link.share(bytes, wish.per_second);
    let explanation = format!("{:.0} % of the link would be taken", 100.0 * share);
    if share >= 1.0 {
        Some(plain(-FULL_POINTS, format!("does not fit: {explanation}")))
    } else if share >= FULL_SHARE {
        Some(plain(-1.0, format!("queues will grow: {explanation}")))
    } else {
        None
    }
}

/// Judges every claim that a rule cites, by the paper's tables, and adds the verdict of the measurements.
fn known(rules: &[Rule], evidence: &[StudyEvidence]) -> Result<ClaimedFigures, ClaimsError> {
    let cited: BTreeSet<&str> = rules.iter().filter_map(|rule| rule.claim.as_deref()).collect();
    let studies: BTreeSet<&str> = cited.iter().filter_map(|claim| Some(claim.split_once(' ')?.0)).collect();
    let mut known = ClaimedFigures::new();
    for study in studies {
        let Some(dossier) = Dossier::open(study)? else { continue };
        let ours = evidence.iter().find(|one| one.source.study == study);
        for one in dossier.judge(None)? {
            let id = format!("{study} {}", one.statement.id);
            if cited.contains(id.as_str()) {
                let ours = ours.and_then(|ours| ours.verdicts.get(&one.statement.id).cloned());
                let (says, published) = (one.statement.text, one.published.verdict);
                known.insert(id, Claimed { says, published, ours });
            }
        }
    }
    Ok(known)
}

/// Returns the nearest cell of each study for a choice, nearest first. Cells with a size ratio above [`FAR_TIMES`] are dropped, except the
/// very nearest cell.
fn measured(choice: &str, bytes: u64, link: &LinkPreset, evidence: &[StudyEvidence]) -> Vec<Measured> {
    let of_study = |one: &StudyEvidence| {
        let fits = one.timed.iter().filter(|timed| timed.choice == choice);
        let distances = fits.map(|timed| (distance(timed, bytes, link), timed));
        let (distance, timed) = distances.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        Some((distance, Measured { source: one.source.clone(), timed: timed.clone() }))
    };
    let mut found: Vec<(f64, Measured)> = evidence.iter().filter_map(of_study).collect();
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut place = 0;
    found.retain(|(_, measured)| {
        place += 1;
        place == 1 || times_off(&measured.timed, bytes) <= FAR_TIMES
    });
    found.into_iter().map(|(_, measured)| measured).collect()
}

/// Returns the distance between a cell and the request: mostly by size, then by link, then by hindering levels.
fn distance(timed: &Timed, bytes: u64, link: &LinkPreset) -> f64 {
    let is_hindered = |(factor, free): &&(&str, &str)| timed.levels.get(*factor).is_some_and(|it| it != free);
    let hindrances = PLAIN.iter().filter(is_hindered).count() + usize::from(!timed.is_ours);
    let other_link = if timed.link == link.name { 0.0 } else { OTHER_LINK };
    times_off(timed, bytes).ln() + other_link + HINDRANCE * hindrances as f64
}

/// Returns the size ratio of a cell's body to `bytes`, at least 1.
fn times_off(timed: &Timed, bytes: u64) -> f64 {
    let ratio = timed.body_bytes.max(1) as f64 / bytes.max(1) as f64;
    ratio.max(1.0 / ratio)
}
