//! `stentor lab run`: a repetition of a published study, with our server against emulators, or with pairs of web services.

mod background;
mod campaigns;
mod known;
mod lateness;
mod policy;
mod proof;
mod records;
mod services;
mod settings;
mod site;
mod trial;
mod watch;

use anyhow::Context;
use clap::{Args, ValueEnum};
use services::{RunOptions, Services};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::plan::{PLAN_MAX_BYTES, StudyPlan};
use stentor_lab::runner::RunError;
use stentor_terminal::failure::{CommandFailure, Exit};
use stentor_terminal::output::Output;

/// The commit of this program's sources, set by the build.
const COMMIT: &str = env!("STENTOR_COMMIT");

/// Run a published study again, or a study of your own
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab run cai-2009 --quick --out study
  stentor lab run anacleto-2012 --standard --subject rust --out study
  stentor lab run cai-2009 --standard --until-decided --effect 10 --out study
  stentor lab run nunes-2014 --full --dry-run --out study
  stentor lab run albertengo-2020 --variant code --factor 'payload=64 B,4055 B' --out study --json
  stentor lab run nunes-2014 --subjects mine --subject my-framework --out study
  stentor lab run --plan mine/plan.toml --subjects mine --out study
  stentor lab run isikligil-2017 --scale 0.002 --out study
  stentor lab run isikligil-2017 --scale 0.02 --repetitions 5 --out study
  stentor lab run isikligil-2017 --scale 0.02 --repetitions 5 --out study --resume
  stentor lab run isikligil-2017 --scale 0.05 --only T1,T9 --out study
  stentor lab run isikligil-2017 --scale 0.01 --beyond --repetitions 3 --out study --json
  stentor lab run isikligil-2017 --scale 0.01 --beyond --only supply,slow-producer --out study

isikligil-2017: 13 tests, each a campaign to a million devices (at scale 1) of 3 million in two apps, through emulated
push services, with 20, 50 or 100 requests in flight for each. At full scale that takes hours. Each run has a fresh
server, and each round runs the tests in a random order. DIR gets report.html, report.md, rates.svg, consumers.svg, scenarios.ndjson (a
line for each run), samples.csv, provenance.json and plan.json. Exits 0 only if nothing was lost, stuck or sent twice.

The other studies compare web services. A cell is one combination of levels for one subject; each of its forks has a fresh
server and a fresh client process, every answer is checked, and a subject with a wrong answer is refused. DIR gets
records.jsonl (a line for each attempt, written when it ends), plan.json and raw samples; cai-2009 also probes.json (see stentor
lab probe). Exits 0 only if every cell has its minimum of valid forks and every probe finished.

A plan of your own (--plan) has the same records, intervals and report, and no verdicts, since it has no claims. The plans of the
published studies, crates/stentor-lab/studies/STUDY/plan.toml, are examples; docs/lab/studies.md has the format.")]
pub(crate) struct RunArgs {
    /// Name of the study
    #[arg(value_enum, required_unless_present = "plan")]
    study: Option<StudyName>,
    /// Run the study that this file plans, instead of a published one
    #[arg(long, value_name = "FILE", conflicts_with = "study")]
    plan: Option<PathBuf>,
    /// Share of the paper's devices: 1 is all of them
    #[arg(long, default_value_t = 0.002, value_name = "S", value_parser = scale)]
    scale: f64,
    /// Number of runs of each test, each with a fresh server; from 2 on, figures have intervals
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Seed of the order of the runs, and part of the seed that each fork has for itself
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Directory for the results; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Continue an interrupted run in DIR, or add repetitions
    #[arg(long)]
    resume: bool,
    /// Run these tests or questions only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Also run the questions beyond the paper; docs/lab/isikligil-2017.md lists them
    #[arg(long)]
    beyond: bool,
    /// Median latency of the push services; by default their mean is the paper's
    #[arg(long, value_name = "MS")]
    latency_median_ms: Option<f64>,
    /// Stop a run if no delivery changes for this long
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    give_up_after_seconds: u64,
    #[command(flatten)]
    options: RunOptions,
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
    /// SOAP, REST, GCM and FCM: delay and overhead by payload
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

impl RunArgs {
    /// Runs the study: campaigns through our server, or exchanges between pairs of subjects.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let (plan, own_plan) = self.study_plan()?;
        if plan.campaigns.is_some() {
            self.campaigns(&plan, output).await
        } else {
            Services { plan: &plan, own_plan, run: &self, options: &self.options }.run(output).await
        }
    }

    /// Returns the plan of the study, and its text if it is the user's.
    fn study_plan(&self) -> anyhow::Result<(StudyPlan, Option<String>)> {
        if let Some(file) = &self.plan {
            let text = plan_text(file)?;
            let refused = |error| CommandFailure::usage(format!("{}: {error}", file.display()));
            return Ok((StudyPlan::own(&text).map_err(refused)?, Some(text)));
        }
        let id = self.study.context("no study is named")?.id();
        Ok((StudyPlan::shipped(id)?.context("the study has no plan")?, None))
    }

    /// Waits for the measurement, or interrupts it on a signal to end.
    async fn until_interrupted<T>(
        &self,
        measured: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let ended = stentor_terminal::process::asked_to_end()?;
        tokio::select! {
            measured = measured => measured,
            () = ended => {
                let sentence = "interrupted; every run that ended is in the directory: go on with --resume";
                Err(CommandFailure::new(Exit::Interrupted, sentence).into())
            }
        }
    }
}

/// Reads the text of a plan.
fn plan_text(file: &Path) -> anyhow::Result<String> {
    let unreadable =
        |what: String| CommandFailure::usage(format!("{} cannot be read: {what}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?.len();
    if size > PLAN_MAX_BYTES {
        return Err(unreadable(format!("it is longer than {PLAN_MAX_BYTES} bytes")).into());
    }
    Ok(std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?)
}

/// Returns the error of a study that cannot be run: a usage error if the caller can correct it.
fn refused(error: RunError) -> anyhow::Error {
    match error {
        RunError::InUse(_) | RunError::OtherSettings(_) => CommandFailure::usage(error.to_string()).into(),
        error => error.into(),
    }
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
