//! Which transport and format: ranked choices, each with the claims and the measurements that speak for it or against it.
//!
//! Bytes are counted by writing content of the asked size in each format; time is what the link alone takes for them. Rules
//! (`rules.toml`) add what studies say, and a rule counts only as much as its claim: nothing where figures speak against the
//! claim, half where nobody could test it. Measurements are those of the records given, and for studies without any those of
//! `docs/studies`.

mod evidence;
mod link;
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

pub use evidence::{EvidenceSource, StudyEvidence, Timed, write};
pub use link::{LINKS, LinkPreset};

/// What is chosen from.
const CHOICES: [&str; 7] =
    ["rest+json", "rest+protobuf", "rest+xml", "soap", "xmlrpc", "socket+protobuf", "socket+xml-sax"];
/// Letters and digits of one object that stands for structured data.
const OBJECT_BYTES: u64 = 20;
/// The largest payload that is advised on, in bytes: what a million letters and more need is another design.
pub const PAYLOAD_MAX_BYTES: u64 = 2_000_000;
/// Points of a choice whose link is at least so full are taken away.
const FULL_SHARE: f64 = 0.7;
/// Points for the least time on the link; each doubling of the time takes one.
const TIME_POINTS: f64 = 3.0;
/// Points that a choice loses when the link cannot carry it.
const FULL_POINTS: f64 = 10.0;

/// Levels at which nothing stands in an exchange's way; it is time on an open connection that is worked out.
const PLAIN: [(&str, &str); 4] = [("connection", "kept"), ("tls", "off"), ("heap", "free"), ("cpu", "whole")];
/// Distance of a cell whose level is another one, or whose software is not ours, in powers of e of its size.
const HINDRANCE: f64 = 0.1;
/// Distance of a cell on another link.
const OTHER_LINK: f64 = 1.0;
/// What was measured with bodies so many times larger or smaller says little.
const FAR_TIMES: f64 = 8.0;

/// How much something matters.
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

/// What is asked for.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AdviceRequest {
    /// Letters and digits of one message, in bytes.
    pub payload_bytes: u64,
    /// Messages each second.
    pub per_second: f64,
    /// The link.
    pub link: &'static LinkPreset,
    /// How much it matters that types are checked and faults are told.
    pub correctness: Importance,
    /// How much it matters that anybody can join in with what they have.
    pub openness: Importance,
    /// How much it matters that a battery lasts.
    pub energy: Importance,
}

/// One choice.
#[derive(Debug, Clone, Serialize)]
pub struct Recommendation {
    /// Transport and format.
    pub choice: &'static str,
    /// What speaks for it less what speaks against it.
    pub points: f64,
    /// Bytes of the body, counted by writing one.
    pub body_bytes: u64,
    /// Time that the link alone takes for a message and an empty answer on an open connection, in milliseconds; worked out.
    pub link_ms: f64,
    /// Share of the link that all messages take, 0 and more.
    pub link_share: f64,
    /// Why it stands where it stands.
    pub reasons: Vec<Reason>,
    /// What records say of it.
    pub measured: Vec<Measured>,
}

/// What speaks for a choice or against it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// Points, below zero where it speaks against.
    pub points: f64,
    /// The reason.
    pub text: String,
    /// Study and claim behind it, where there is one.
    pub claim: Option<String>,
    /// What the paper says.
    pub says: Option<String>,
    /// What the paper's own data say.
    pub published: Option<ClaimVerdict>,
    /// What records say of the claim; absent where they do not bear on it.
    pub ours: Option<ClaimVerdict>,
    /// What was compared, where records bear on a part of the claim only.
    pub part: Option<String>,
}

/// A measurement that bears on a choice.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Which runs it is of.
    #[serde(flatten)]
    pub source: EvidenceSource,
    /// The cell and its time.
    #[serde(flatten)]
    pub timed: Timed,
}

/// What is known of a claim.
struct Claimed {
    says: String,
    published: ClaimVerdict,
    ours: Option<EvidenceVerdict>,
}

/// Claims, by study and id with a space between.
type ClaimedFigures = BTreeMap<String, Claimed>;

/// Ranks the choices, the best first.
pub fn advise(wish: &AdviceRequest, evidence: &[StudyEvidence]) -> Result<Vec<Recommendation>, ClaimsError> {
    let rules = rules()?;
    let known = known(&rules, evidence)?;
    let size = |choice| Ok((choice, body_bytes(choice, wish.payload_bytes)?));
    let sizes = CHOICES.into_iter().map(size).collect::<Result<Vec<_>, ClaimsError>>()?;
    let least = sizes.iter().map(|(_, bytes)| wish.link.message_ms(*bytes)).fold(f64::INFINITY, f64::min);
    let mut all: Vec<Recommendation> = sizes
        .into_iter()
        .map(|(choice, bytes)| {
            let mut reasons = vec![by_time(wish, bytes, least)];
            reasons.extend(by_load(wish, bytes));
            reasons.extend(rules.iter().filter_map(|rule| rule.reason(wish, choice, &known)));
            let points = reasons.iter().map(|reason| reason.points).sum();
            Recommendation {
                choice,
                points,
                body_bytes: bytes,
                link_ms: wish.link.message_ms(bytes),
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

/// Counts the bytes of a body that carries objects of so many letters and digits in all.
fn body_bytes(choice: &str, payload_bytes: u64) -> Result<u64, ClaimsError> {
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

/// Counts the bytes that stand around a body: on a socket four of its length.
fn framing_bytes(choice: &str) -> u64 {
    if choice.starts_with("socket") { 4 } else { link::HTTP_BYTES }
}

fn plain(points: f64, text: String) -> Reason {
    Reason { points, text, claim: None, says: None, published: None, ours: None, part: None }
}

fn by_time(wish: &AdviceRequest, bytes: u64, least: f64) -> Reason {
    let time = wish.link.message_ms(bytes);
    let points = TIME_POINTS - (time / least).log2();
    plain(
        points.max(0.0),
        format!(
            "takes {time:.1} ms of {} for {bytes} bytes (worked out from {})",
            wish.link.name, wish.link.source
        ),
    )
}

fn by_load(wish: &AdviceRequest, bytes: u64) -> Option<Reason> {
    let share = wish.link.share(bytes, wish.per_second);
    let told = format!("{:.0} % of the link would be taken", 100.0 * share);
    if share >= 1.0 {
        Some(plain(-FULL_POINTS, format!("does not fit: {told}")))
    } else if share >= FULL_SHARE {
        Some(plain(-1.0, format!("queues will grow: {told}")))
    } else {
        None
    }
}

/// Judges every claim that a rule rests on: by the papers' own tables, and by what was measured.
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

/// Finds what was measured of a choice: of each study the cell that is nearest, the nearest of all first. Studies that have
/// nothing of such a size are left out unless they are all there is.
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

/// Returns how far a cell is from what is asked for: by size first of all, then by link, then by what else stood in its way.
fn distance(timed: &Timed, bytes: u64, link: &LinkPreset) -> f64 {
    let is_hindered = |(factor, free): &&(&str, &str)| timed.levels.get(*factor).is_some_and(|it| it != free);
    let hindrances = PLAIN.iter().filter(is_hindered).count() + usize::from(!timed.is_ours);
    let other_link = if timed.link == link.name { 0.0 } else { OTHER_LINK };
    times_off(timed, bytes).ln() + other_link + HINDRANCE * hindrances as f64
}

/// How many times larger or smaller the body of a cell is.
fn times_off(timed: &Timed, bytes: u64) -> f64 {
    let ratio = timed.body_bytes.max(1) as f64 / bytes.max(1) as f64;
    ratio.max(1.0 / ratio)
}
