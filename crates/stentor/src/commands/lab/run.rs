//! `stentor lab run`: a published study, run again: with our server against emulators, or with pairs of web services.

mod background;
mod known;
mod lateness;
mod plan;
mod policy;
mod proof;
pub(super) mod records;
mod services;
mod settings;
mod site;
mod trial;
mod watch;

use crate::failure::{Exit, Failure};
use crate::output::{Output, note, table};
use anyhow::Context;
use clap::{Args, ValueEnum};
use plan::Plan;
use records::Records;
use serde_json::{Value, json};
use services::{Services, Wishes};
use site::Site;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use stentor_lab::record::Environment;
use stentor_lab::report::{Judged, Measured, Report, Row};
use stentor_lab::runner::environment;
use stentor_lab::study::{Cell, Published, Scenario, Study, Verdict, interval};
use stentor_rig::cgroup;
use trial::Trial;

/// The commit that this program is made of, as the build found it.
const COMMIT: &str = env!("STENTOR_COMMIT");
/// A run that does not count is made once more.
const TRIES_MAX: u32 = 2;

/// Run a published study again and put its figures beside ours
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab run cai-2009 --quick --out study
  stentor lab run anacleto-2012 --standard --subject rust --out study
  stentor lab run nunes-2014 --full --dry-run --out study
  stentor lab run albertengo-2020 --variant code --factor 'payload=64 B,4055 B' --out study --json
  stentor lab run isikligil-2017 --scale 0.002 --out study
  stentor lab run isikligil-2017 --scale 0.02 --repetitions 5 --out study
  stentor lab run isikligil-2017 --scale 0.02 --repetitions 5 --out study --resume
  stentor lab run isikligil-2017 --scale 0.05 --only T1,T9 --out study
  stentor lab run isikligil-2017 --scale 0.01 --beyond --repetitions 3 --out study --json
  stentor lab run isikligil-2017 --scale 0.01 --beyond --only supply,slow-producer --out study

isikligil-2017: 13 tests, each a campaign to a million devices (at scale 1) of 3 million in two apps, through emulated
push services, with 20, 50 or 100 requests in flight for each. At full scale that takes hours. Each run has a fresh
server; rounds over all tests are mixed. DIR gets report.html, report.md, rates.svg, consumers.svg, scenarios.ndjson (a
line for each run), samples.csv, provenance.json and plan.json. Exits 0 only if nothing was lost, stuck or sent twice.

The other studies compare web services. A cell is one combination of levels for one subject; each of its forks has a fresh
server and a fresh client process, every answer is checked, and a subject with a wrong answer is refused. DIR gets
records.jsonl (a line for each attempt, written when it ends), plan.json and raw samples; cai-2009 also probes.json (see stentor
lab probe). Exits 0 only if every cell has its minimum of forks that count, and every probe came to its end.")]
pub(crate) struct Run {
    /// Which study
    #[arg(value_enum)]
    study: StudyName,
    /// Share of the paper's devices: 1 is all of them
    #[arg(long, default_value_t = 0.002, value_name = "S", value_parser = scale)]
    scale: f64,
    /// Run each test so often, each time with a fresh server; from 2 on figures have intervals
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// What the order of the runs follows from
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Where the results go; the directory must not exist or be empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Go on in DIR where an earlier run was interrupted, or with more repetitions
    #[arg(long)]
    resume: bool,
    /// Run these tests or questions only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Also run what the paper did not: see the questions in docs/lab.md
    #[arg(long)]
    beyond: bool,
    /// Half of the push services' answers come sooner; chosen so that their mean is what the paper allows
    #[arg(long, value_name = "MS")]
    latency_median_ms: Option<f64>,
    /// Give up a run when nothing has moved for so long
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    give_up_after_seconds: u64,
    #[command(flatten)]
    wishes: Wishes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StudyName {
    /// SOAP, XML-RPC and REST: arrays of three types in five sizes
    #[value(name = "cai-2009")]
    Cai2009,
    /// Points of interest to a phone: XML, JSON, Protocol Buffers, sockets
    #[value(name = "anacleto-2012")]
    Anacleto2012,
    /// Axis2 and CXF on a small computer: numbers sent, sorted and sent back
    #[value(name = "nunes-2014")]
    Nunes2014,
    /// A push framework with a pool of consumers, 13 tests
    #[value(name = "isikligil-2017")]
    Isikligil2017,
    /// SOAP and REST (GCM and FCM come with the gateway): delay and overhead by payload
    #[value(name = "albertengo-2020")]
    Albertengo2020,
}

impl StudyName {
    const fn id(self) -> &'static str {
        match self {
            Self::Cai2009 => "cai-2009",
            Self::Anacleto2012 => "anacleto-2012",
            Self::Nunes2014 => "nunes-2014",
            Self::Isikligil2017 => "isikligil-2017",
            Self::Albertengo2020 => "albertengo-2020",
        }
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    if scale > 0.0 && scale <= 1.0 { Ok(scale) } else { Err("more than 0 and at most 1".to_owned()) }
}

impl Run {
    /// Runs the study.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if self.study != StudyName::Isikligil2017 {
            let (study, seed, resume) = (self.study, self.seed, self.resume);
            let services = Services { study, wishes: &self.wishes, seed, out: self.out, resume };
            return services.run(output).await;
        }
        // It is about rates and nothing else.
        crate::emulated::refuse()?;
        if let Some(wish) = self.wishes.only_theirs() {
            return Err(
                Failure::usage(format!("isikligil-2017 has no {wish}: see --scale and --only")).into()
            );
        }
        let ended = crate::process::asked_to_end()?;
        let report = tokio::select! {
            report = self.perform() => report?,
            () = ended => {
                let sentence = "interrupted; what was measured so far is in the directory: go on with --resume";
                return Err(Failure::new(Exit::Interrupted, sentence).into());
            }
        };
        let is_sound = report.runs.iter().all(Row::is_sound);
        let page = self.out.join(records::PAGE);
        let told = || format!("{}\n\nreport: {}", describe(&report), page.display());
        output.result(&self.object(&report, is_sound), told)?;
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn perform(&self) -> anyhow::Result<Report> {
        let (study, published) = (self.study()?, Published::isikligil_2017()?);
        let (cells, settings) = (self.cells(&study)?, self.settings(&study));
        let (mut records, mut runs) = if self.resume {
            Records::resume(&self.out, &settings)?
        } else {
            (Records::create(&self.out, &settings)?, Vec::new())
        };
        let mut plan = Plan::make(&study, self.scale, &cells, self.repetitions, self.seed, &runs);
        let mut site = Site::build(&study, self.scale, &self.out).await?;
        while let Some(step) = plan.next() {
            let cell = &cells[step.cell];
            let give_up_after = Duration::from_secs(self.give_up_after_seconds);
            let trial = Trial { cell, repetition: step.repetition, usual: study.provider, give_up_after };
            let made = self.make(trial, &published, &mut site, &mut records).await?;
            runs.extend(made);
            note(&plan.done(step));
        }
        let mut provenance = records.provenance(&settings, &site).await?;
        provenance["repetitions"] = json!(self.repetitions);
        provenance["commit"] = json!(commits(&runs));
        let (scenarios, beyond) = sum_up(&cells, &runs);
        let report = Report { study, published, scenarios, beyond, runs, provenance };
        records.finish(&report)?;
        Ok(report)
    }

    /// Makes a run, and once more when it does not count.
    async fn make(
        &self,
        trial: Trial<'_>,
        published: &Published,
        site: &mut Site,
        records: &mut Records,
    ) -> anyhow::Result<Vec<Row>> {
        let mut made = Vec::new();
        for _ in 0..TRIES_MAX {
            let load_before = around(trial.cell).load_before;
            let made_now = trial::run(trial, site, records).await;
            let mut row = made_now.with_context(|| format!("{} could not be run", trial.cell.id))?;
            row.env = Some(Environment { load_before, ..around(trial.cell) });
            row.derive(trial.cell.inflight_requests(), published.pushes_per_second(&row.id));
            note(&told(&row));
            records.row(&row)?;
            let is_over = row.invalid.is_empty();
            made.push(row);
            if is_over {
                break;
            }
        }
        Ok(made)
    }

    fn study(&self) -> anyhow::Result<Study> {
        study(self.latency_median_ms)
    }

    /// Lists what is to be run.
    fn cells(&self, study: &Study) -> anyhow::Result<Vec<Cell>> {
        let mut cells: Vec<Cell> = study.scenarios.iter().map(Scenario::cell).collect();
        if self.beyond {
            cells.extend(study.beyond.iter().cloned());
        }
        let is_called = |cell: &Cell, name: &String| cell.id == *name || cell.group == *name;
        if let Some(unknown) = self.only.iter().find(|name| !cells.iter().any(|cell| is_called(cell, name))) {
            let further = if self.beyond { "" } else { "; with --beyond there are more" };
            let sentence = format!("there is no test {unknown}: they are T1 to T13{further}");
            return Err(Failure::usage(sentence).into());
        }
        cells.retain(|cell| self.only.is_empty() || self.only.iter().any(|name| is_called(cell, name)));
        Ok(cells)
    }

    /// What must not change when a run is gone on with.
    fn settings(&self, study: &Study) -> Value {
        json!({
            "study": study.id,
            "scale": self.scale,
            "seed": self.seed,
            "provider_latency_ms": {
                "kind": "lognormal",
                "median": study.provider.latency_median_ms,
                "sigma": study.provider.latency_sigma,
                "mean": study.provider.mean_ms(),
            },
            "background": study.background,
        })
    }

    fn object(&self, report: &Report, is_sound: bool) -> Value {
        json!({
            "study": report.study.id,
            "ok": is_sound,
            "scale": self.scale,
            "repetitions": self.repetitions,
            "scenarios": report.scenarios,
            "beyond": report.beyond,
            "claims": report.judged(),
            "uncounted": report.uncounted().collect::<Vec<_>>(),
            "provenance": report.provenance,
            "out": self.out,
        })
    }
}

/// Tells of every cell and every claim.
pub(super) fn describe(report: &Report) -> String {
    let header =
        ["test", "mix", "in flight", "pools", "runs", "pushes/s", "published", "ratio", "bound", "lost"];
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
    };
    let rows = report.scenarios.iter().chain(&report.beyond).map(|one| {
        let row = &one.row;
        let rate = one.rate.map(|rate| interval(rate.median, rate.low, rate.high, 1));
        [
            row.id.clone(),
            row.mix.clone(),
            row.consumers.map_or_else(|| "adaptive".to_owned(), |count| count.to_string()),
            if row.pooled { "yes" } else { "no" }.to_owned(),
            one.runs.to_string(),
            rate.unwrap_or_else(|| "does not count".to_owned()),
            number(row.published_pushes_per_second, 0),
            number(row.ratio, 2),
            number(row.bound_pushes_per_second, 0),
            row.lost.to_string(),
        ]
    });
    let claims: Vec<String> = report.judged().iter().filter_map(verdict).collect();
    format!("{}\n\n{}", table(header, rows), claims.join("\n"))
}

/// Opens the study, with push services that take as long as was asked for.
fn study(latency_median_ms: Option<f64>) -> anyhow::Result<Study> {
    let mut study = Study::isikligil_2017()?;
    if let Some(median) = latency_median_ms {
        study.provider.latency_median_ms = median;
    }
    Ok(study)
}

/// Returns where a run of a cell is made, and how loaded that is now.
fn around(cell: &Cell) -> Environment {
    let is_limited = cell.cpu_percent.is_some() || cell.memory_mib.is_some();
    environment("loopback", if is_limited { cgroup::version() } else { "" }, "", COMMIT)
}

/// Names the commits that runs were made with; there may be several in a directory that was gone on with.
fn commits(runs: &[Row]) -> String {
    let mut commits: Vec<&str> =
        runs.iter().filter_map(|row| Some(row.env.as_ref()?.commit.as_str())).collect();
    commits.sort_unstable();
    commits.dedup();
    commits.join(", ")
}

/// Sums up the runs of each cell: the study's own, and those beyond it.
fn sum_up(cells: &[Cell], runs: &[Row]) -> (Vec<Measured>, Vec<Measured>) {
    let measured = cells.iter().filter_map(|cell| {
        let of_cell: Vec<Row> = runs.iter().filter(|row| row.id == cell.id).cloned().collect();
        let mut measured = Measured::of(&of_cell, cell.inflight_requests())?;
        measured.group.clone_from(&cell.group);
        measured.levels = cell.levels();
        Some(measured)
    });
    measured.partition(|one| one.group.is_empty())
}

/// Writes a claim of the paper with both verdicts, and one of ours when it was tested.
fn verdict(one: &Judged) -> Option<String> {
    let ours = format!("  by ours: {} ({})", one.ours.word(), one.our_figures);
    if one.claim.group.is_empty() {
        let (published, figures) = (one.published.word(), &one.published_figures);
        return Some(format!(
            "{}\n  by the paper's figures: {published} ({figures})\n{ours}",
            one.claim.text
        ));
    }
    (one.ours != Verdict::NotTestable).then(|| format!("{}\n{ours}", one.claim.text))
}

fn told(row: &Row) -> String {
    let name = format!("{} ({})", row.id, row.repetition);
    if let Some(why) = [&row.skipped, &row.ended].into_iter().find(|why| !why.is_empty()) {
        return format!("{name}: {why}");
    }
    let doubt =
        if row.invalid.is_empty() { String::new() } else { format!("; does not count: {}", row.invalid) };
    format!(
        "{name}: {} pushes in {:.2} s, {:.1} pushes/s, {} lost{doubt}",
        row.pushes, row.wall_seconds, row.pushes_per_second, row.lost
    )
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn a_scale_is_a_share_of_the_paper() {
        assert_eq!((scale("1"), scale("0.002")), (Ok(1.0), Ok(0.002)));
        assert!(["0", "-1", "1.01", "NaN", "x"].iter().all(|text| scale(text).is_err()));
    }
}
