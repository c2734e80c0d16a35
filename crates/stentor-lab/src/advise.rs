//! Which transport and format: ranked choices, each with the claims and the measurements that speak for it or against it.
//!
//! Bytes are counted by writing content of the asked size in each format; time is what the link alone takes for them. Rules
//! ([`RULES`]) add what studies say, and a rule counts only as much as its claim: nothing where figures speak against the
//! claim, half where nobody could test it. Nothing here is measured unless records are given.

mod link;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::claims::{ClaimsError, Dossier};
use crate::results::{METRICS, Results, verdicts};
use crate::study::Verdict;
use crate::subject::dialect::Dialect;
use crate::subject::reference::Op;

pub use link::{LINKS, Link};
pub use rules::{RULES, Rule};

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

/// How much something matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Not at all.
    None,
    /// As usual.
    #[default]
    Some,
    /// More than most else.
    High,
}

impl Weight {
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
pub struct Wish {
    /// Letters and digits of one message, in bytes.
    pub payload_bytes: u64,
    /// Messages each second.
    pub per_second: f64,
    /// The link.
    pub link: &'static Link,
    /// How much it matters that types are checked and faults are told.
    pub correctness: Weight,
    /// How much it matters that anybody can join in with what they have.
    pub openness: Weight,
    /// How much it matters that a battery lasts.
    pub energy: Weight,
}

/// One choice.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
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
    pub published: Option<Verdict>,
    /// What the records given say of the claim; absent where they do not bear on it.
    pub ours: Option<Verdict>,
}

/// A measurement that bears on a choice.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The study.
    pub study: String,
    /// Part of the study and levels.
    pub cell: String,
    /// The subject.
    pub subject: String,
    /// Name of the link's profile.
    pub link: String,
    /// Median of an exchange, in milliseconds.
    pub median_ms: f64,
    /// Lower end of its interval.
    pub low_ms: Option<f64>,
    /// Upper end.
    pub high_ms: Option<f64>,
    /// Forks.
    pub forks: usize,
}

/// Verdicts on claims, by study and claim.
type Known = BTreeMap<(&'static str, &'static str), (String, Verdict, Option<Verdict>)>;

/// Ranks the choices, the best first.
pub fn advise(wish: &Wish, records: &[Results]) -> Result<Vec<Advice>, ClaimsError> {
    let known = known(records)?;
    let sizes = CHOICES.map(|choice| (choice, body_bytes(choice, wish.payload_bytes)));
    let least = sizes.iter().map(|(_, bytes)| wish.link.message_ms(*bytes)).fold(f64::INFINITY, f64::min);
    let mut all: Vec<Advice> = sizes
        .into_iter()
        .map(|(choice, bytes)| {
            let mut reasons = vec![by_time(wish, bytes, least)];
            reasons.extend(by_load(wish, bytes));
            reasons.extend(RULES.iter().filter_map(|rule| rule.reason(wish, choice, &known)));
            let points = reasons.iter().map(|reason| reason.points).sum();
            Advice {
                choice,
                points,
                body_bytes: bytes,
                link_ms: wish.link.message_ms(bytes),
                link_share: wish.link.share(bytes, wish.per_second),
                reasons,
                measured: measured(choice, wish, records),
            }
        })
        .collect();
    all.sort_by(|one, other| {
        other.points.total_cmp(&one.points).then_with(|| one.body_bytes.cmp(&other.body_bytes))
    });
    Ok(all)
}

/// Counts the bytes of a body that carries objects of so many letters and digits in all.
fn body_bytes(choice: &str, payload_bytes: u64) -> u64 {
    let count = (payload_bytes.min(PAYLOAD_MAX_BYTES) / OBJECT_BYTES).max(1);
    let factors =
        BTreeMap::from([("type".to_owned(), "Object".to_owned()), ("items".to_owned(), count.to_string())]);
    let content = Op::Array.answer(Op::Array.request(&factors, 1));
    let body = Dialect::named(choice)
        .zip(content)
        .and_then(|(dialect, content)| dialect.write_answer(Op::Array, &content).ok());
    // Four bytes of length stand before a body on a socket.
    let framing = if choice.starts_with("socket") { 4 } else { link::HTTP_BYTES };
    body.map_or(0, |body| body.len() as u64) + framing
}

fn plain(points: f64, text: String) -> Reason {
    Reason { points, text, claim: None, says: None, published: None, ours: None }
}

fn by_time(wish: &Wish, bytes: u64, least: f64) -> Reason {
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

fn by_load(wish: &Wish, bytes: u64) -> Option<Reason> {
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

/// Judges every claim that a rule rests on: by the papers' own tables, and by the records given.
fn known(records: &[Results]) -> Result<Known, ClaimsError> {
    let studies: BTreeSet<&'static str> = RULES.iter().filter_map(|rule| Some(rule.claim?.0)).collect();
    let mut known = Known::new();
    for study in studies {
        let Some(dossier) = Dossier::open(study)? else { continue };
        let published = dossier.judge(None)?;
        let ours = ours(study, records)?;
        for (_, id) in RULES.iter().filter_map(|rule| rule.claim).filter(|(of, _)| *of == study) {
            if let Some(one) = published.iter().find(|one| one.statement.id == id) {
                let told = (one.statement.text.clone(), one.published.verdict, ours.get(id).copied());
                known.insert((study, id), told);
            }
        }
    }
    Ok(known)
}

/// Gives our verdicts on the claims of a study, as far as the records bear on them.
fn ours(study: &str, records: &[Results]) -> Result<BTreeMap<String, Verdict>, ClaimsError> {
    let mut ours = BTreeMap::new();
    for results in records.iter().filter(|results| results.study == study) {
        for one in verdicts(results)?.into_iter().flat_map(|all| all.claims) {
            let verdict = one.best().verdict;
            if verdict != Verdict::NotTestable {
                ours.insert(one.judged.statement.id, verdict);
            }
        }
    }
    Ok(ours)
}

/// Finds what was measured of a choice: of each study the cell whose size is nearest, over the same link where there is one.
fn measured(choice: &str, wish: &Wish, records: &[Results]) -> Vec<Measured> {
    let of_study = |results: &Results| {
        let fits = results.cells.iter().filter(|cell| dialect_of(&cell.client) == choice);
        let distance = |cell: &&crate::results::Cell| {
            let other_link = if cell.link == wish.link.name { 0.0 } else { 1.0 };
            let bytes = cell.payload_bytes().unwrap_or(1.0).max(1.0);
            (bytes / wish.payload_bytes.max(1) as f64).ln().abs() + other_link
        };
        let cell = fits.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
        let estimate = cell.estimate(&METRICS[0])?;
        Some(Measured {
            study: results.study.clone(),
            cell: cell.place(),
            subject: cell.name.clone(),
            link: cell.link.clone(),
            median_ms: estimate.mean,
            low_ms: estimate.low,
            high_ms: estimate.high,
            forks: estimate.count,
        })
    };
    records.iter().filter_map(of_study).collect()
}

/// The dialect stands first in a subject's id.
fn dialect_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}
