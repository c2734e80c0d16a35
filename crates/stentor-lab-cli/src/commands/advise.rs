//! `stentor lab advise`: a ranking of transports, formats and push, with its evidence.

use super::report::read_exchanges as read;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::advise::{
    AdviceRequest, Importance, LINKS, LinkPreset, Measured, PAYLOAD_MAX_BYTES, Reason, Recommendation,
    StudyEvidence, advise,
};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// Number of choices that are printed with their reasons, besides the best one by push; the other reasons are only in JSON.
const SHOWN: usize = 3;

/// Rank transports, formats and push, each with the claims and measurements behind it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab advise --payload 600 --rate 2 --link 4g
  stentor lab advise --payload 300000 --rate 0.01 --link 3g --energy high
  stentor lab advise --payload 2000 --rate 50 --link lan --correctness high --openness none
  stentor lab advise --payload 600 --rate 2 --link wifi --records results --records other --json

Bytes are counted by writing objects of that size in each format; the time is the link's time for these bytes. Reasons come
from published studies. A claim does not count when figures contradict it: figures of the given records, else of the runs in
docs/studies, else of the paper itself. Each choice is printed with its measurement at the nearest size and the run it is from.")]
pub(crate) struct AdviseArgs {
    /// Content of a message, in bytes
    #[arg(long, value_name = "BYTES")]
    payload: u64,
    /// Messages per second
    #[arg(long, value_name = "PER_SECOND")]
    rate: f64,
    /// The link
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(LINKS.iter().map(|link| link.name)))]
    link: String,
    /// Importance of checked types and reported faults
    #[arg(long, value_enum, default_value_t)]
    correctness: Matters,
    /// Importance of clients that need only common tools
    #[arg(long, value_enum, default_value_t)]
    openness: Matters,
    /// Importance of a long battery life
    #[arg(long, value_enum, default_value_t)]
    energy: Matters,
    /// Directories of runs to take measurements from, instead of those that come with the program
    #[arg(long, value_name = "DIR")]
    records: Vec<PathBuf>,
}

/// Importance of a criterion.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Matters {
    /// Not at all
    None,
    /// As usual
    #[default]
    Some,
    /// More than most else
    High,
}

impl From<Matters> for Importance {
    fn from(matters: Matters) -> Self {
        match matters {
            Matters::None => Self::None,
            Matters::Some => Self::Some,
            Matters::High => Self::High,
        }
    }
}

impl AdviseArgs {
    /// Prints the ranking.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if self.payload > PAYLOAD_MAX_BYTES {
            let sentence = format!(
                "--payload is at most {PAYLOAD_MAX_BYTES} bytes: larger content is better sent in parts"
            );
            return Err(CommandFailure::usage(sentence).into());
        }
        if !self.rate.is_finite() || self.rate < 0.0 {
            return Err(CommandFailure::usage("--rate is a number of messages a second, 0 or more").into());
        }
        let link = LinkPreset::named(&self.link)
            .ok_or_else(|| CommandFailure::usage("--link is one of the links that --help lists"))?;
        let wish = AdviceRequest {
            payload_bytes: self.payload,
            per_second: self.rate,
            link,
            correctness: self.correctness.into(),
            openness: self.openness.into(),
            energy: self.energy.into(),
        };
        let given = self.records.iter().map(|path| evidence(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let evidence = StudyEvidence::with_committed(given);
        let ranked = advise(&wish, &evidence)?;
        let sources: Vec<_> = evidence.iter().map(|one| &one.source).collect();
        let object = json!({
            "wish": wish,
            "ranked": ranked,
            "measured": ranked.iter().all(|one| !one.measured.is_empty()),
            "sources": sources,
        });
        output.result(&object, || describe(&ranked, &evidence))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the evidence for advice from a run.
fn evidence(path: &Path) -> anyhow::Result<StudyEvidence> {
    Ok(StudyEvidence::of(&read(path)?, &path.display().to_string())?)
}

fn describe(ranked: &[Recommendation], evidence: &[StudyEvidence]) -> String {
    let rows = ranked.iter().enumerate().map(|(place, one)| {
        [
            (place + 1).to_string(),
            one.choice.to_owned(),
            format!("{:.1}", one.points),
            one.body_bytes.to_string(),
            format!("{:.1}", one.link_ms),
            if one.service_ms > 0.0 { format!("{:.0}", one.service_ms) } else { "–".to_owned() },
            format!("{:.1} %", 100.0 * one.link_share),
        ]
    });
    let list =
        table(["", "choice", "points", "bytes", "ms on the link", "in the service", "of the link"], rows);
    let mut parts = vec![list];
    let (first, further) = ranked.split_at(SHOWN.min(ranked.len()));
    let has_push = first.iter().any(Recommendation::is_push);
    let best_push = further.iter().find(|one| !has_push && one.is_push());
    parts.extend(first.iter().chain(best_push).map(why));
    let sources = evidence.iter().map(|one| format!("{} ({})", one.source.records, one.source.date));
    parts.push(format!(
        "Measurements are of {}. Your own: --records DIR (stentor lab run STUDY --out DIR makes them).",
        sources.collect::<Vec<_>>().join(", ")
    ));
    parts.join("\n\n")
}

fn why(one: &Recommendation) -> String {
    let mut lines = vec![one.choice.to_owned()];
    lines.extend(one.reasons.iter().map(|reason| format!("  {:>+5.1}  {}", reason.points, sentence(reason))));
    if one.measured.is_empty() {
        lines.push("         not measured".to_owned());
    }
    lines.extend(one.measured.iter().map(|one| format!("         measured: {}", measurement(one))));
    lines.join("\n")
}

fn measurement(one: &Measured) -> String {
    let timed = &one.timed;
    let interval = timed.low_ms.zip(timed.high_ms).map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
    let levels = timed.levels.iter().map(|(factor, level)| format!(", {factor} {level}"));
    format!(
        "{:.2} ms{} with a body of {} bytes in {}, {}{}, {} (link {}, {} forks, {})",
        timed.median_ms,
        interval.unwrap_or_default(),
        timed.body_bytes,
        one.source.study,
        timed.part,
        levels.collect::<String>(),
        timed.subject,
        if timed.link.is_empty() { "none" } else { &timed.link },
        timed.forks,
        one.source.date
    )
}

fn sentence(reason: &Reason) -> String {
    let Some(claim) = &reason.claim else { return reason.text.clone() };
    let published = reason.published.map_or("unknown", |verdict| verdict.word());
    let ours = reason.ours.map_or("not measured", |verdict| verdict.word());
    let part = reason.part.as_ref().map(|part| format!(" in part, {part}")).unwrap_or_default();
    format!("{} [{claim}; the paper's data: {published}; ours: {ours}{part}]", reason.text)
}
