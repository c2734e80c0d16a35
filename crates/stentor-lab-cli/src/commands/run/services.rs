//! `stentor lab run` for the studies of web services: pairs of processes, cell by cell.

mod run_reporter;

pub(in crate::commands) use run_reporter::minutes;

use super::{RunArgs, refused};
use anyhow::Context;
use clap::Args;
use run_reporter::RunReporter;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use stentor_lab::looks::{LookFindings, Looks};
use stentor_lab::plan::{ExpandedPlan, NotRun, PlanChoice, RunProfile, SampleChoice, StudyPlan};
use stentor_lab::probes;
use stentor_lab::record::ForkRecord;
use stentor_lab::results;
use stentor_lab::runner::gate::ValidityLimits;
use stentor_lab::runner::power::Models;
use stentor_lab::runner::rigged::{NO_LINK, Rigged};
use stentor_lab::runner::{self, PlannedLooks, RunSummary, Settings, roster};
use stentor_lab::subject::{Definition, catalogue};
use stentor_machine::emulation::NOT_TIMED;
use stentor_stage::emulated;
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note, table};

/// Percent of a whole.
const PERCENT: f64 = 100.0;

/// Options for the studies of web services alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Studies of web services")]
pub(super) struct RunOptions {
    /// A few minutes: few forks, few exchanges (the default)
    #[arg(long, conflicts_with_all = ["standard", "full"])]
    quick: bool,
    /// Every level, fewer repetitions than the paper's
    #[arg(long, conflicts_with = "full")]
    standard: bool,
    /// The paper's repetitions
    #[arg(long)]
    full: bool,
    /// Readings of the study: paper, code, modern
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variant: Vec<String>,
    /// Only subjects with this text in their label, id or stack
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    subject: Vec<String>,
    /// Levels of a factor instead of the profile's, such as type=Int,String; may be repeated
    #[arg(long, value_name = "NAME=LEVELS", value_parser = factor)]
    factor: Vec<(String, Vec<String>)>,
    /// Fresh pairs of processes for each cell, instead of the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    forks: Option<u32>,
    /// Add rounds until each comparison of the claims is decided, or a difference of --effect is excluded, or --rounds-max is reached
    #[arg(long, conflicts_with = "forks")]
    until_decided: bool,
    /// With --until-decided: the difference, in percent, whose exclusion settles a comparison too
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT", requires = "until_decided", value_parser = effect)]
    effect: f64,
    /// With --until-decided: the most rounds
    #[arg(long, default_value_t = 30, value_name = "N", requires = "until_decided", value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds_max: u32,
    /// Measured exchanges of each fork, instead of the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: Option<u32>,
    /// The link between the halves: lan, wan, wifi, 4g, 3g, 2g, open, or none for plain loopback; by default the study's
    #[arg(long, value_name = "PROFILE")]
    link: Option<String>,
    /// The link between the gateway and the app server of GCM and FCM; by default the study's, and none without a link
    #[arg(long, value_name = "PROFILE")]
    gateway_link: Option<String>,
    /// Folder of definitions of further subjects; otherwise `lab/subjects` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    subjects: Option<PathBuf>,
    /// A fork does not count when the load average per processor is above this
    #[arg(long, default_value_t = ValidityLimits::default().load_per_core_max, value_name = "LOAD")]
    gate_load: f64,
    /// A fork does not count when 1 of 100 wake-ups is later than this (in proportion for exchanges above 2 seconds)
    #[arg(long, default_value_t = ValidityLimits::default().lateness_p99_max_us / 1000.0, value_name = "MS")]
    gate_lateness_ms: f64,
    /// A fork does not count when the host took more than this share of the memory away within a second; by default 5, and 100 (any)
    /// with --quick
    #[arg(long, value_name = "PERCENT")]
    gate_pages: Option<f64>,
    /// At most N attempts at each fork: it is run again while it does not count
    #[arg(long, default_value_t = ValidityLimits::default().attempts_max, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
    /// Print the cells to run and their expected duration, and run nothing
    #[arg(long)]
    dry_run: bool,
}

fn look(records: &[ForkRecord], effect_share: f64) -> Result<LookFindings, String> {
    results::look(records, effect_share).map_err(|error| error.to_string())
}

fn effect(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    // Differences within the band of 5 % count as equal, and cannot be told from them.
    if (5.0..=100.0).contains(&percent) { Ok(percent) } else { Err("5 to 100 percent".to_owned()) }
}

fn factor(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, levels) = text.split_once('=').ok_or("NAME=LEVEL,LEVEL is wanted")?;
    Ok((name.to_owned(), levels.split(',').map(str::to_owned).collect()))
}

/// A study to be run.
pub(super) struct Services<'a> {
    pub(super) plan: &'a StudyPlan,
    /// The text of the plan, if it is the user's.
    pub(super) own_plan: Option<String>,
    pub(super) run: &'a RunArgs,
    pub(super) options: &'a RunOptions,
}

impl RunOptions {
    /// Names a given option that applies to studies of web services only.
    pub(super) fn only_theirs(&self) -> Option<&'static str> {
        let options = [
            ("--standard", self.standard),
            ("--full", self.full),
            ("--variant", !self.variant.is_empty()),
            ("--subject", !self.subject.is_empty()),
            ("--factor", !self.factor.is_empty()),
            ("--forks", self.forks.is_some()),
            ("--until-decided", self.until_decided),
            ("--samples", self.samples.is_some()),
            ("--link", self.link.is_some()),
            ("--gateway-link", self.gateway_link.is_some()),
            ("--subjects", self.subjects.is_some()),
            ("--dry-run", self.dry_run),
        ];
        let given = options.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        given.chain(self.changed_limits().map(|(name, _)| name)).next()
    }

    const fn profile(&self) -> RunProfile {
        if self.full {
            RunProfile::Full
        } else if self.standard {
            RunProfile::Standard
        } else {
            RunProfile::Quick
        }
    }

    /// Returns true if `--subject` has a part of this id.
    fn names(&self, id: &str) -> bool {
        self.subject.iter().any(|wish| id.contains(wish.as_str()))
    }

    /// Gathers the levels of each factor, whether they were given at once or one after the other.
    fn levels(&self) -> BTreeMap<String, Vec<String>> {
        let mut levels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, some) in &self.factor {
            levels.entry(name.clone()).or_default().extend(some.iter().cloned());
        }
        levels
    }

    fn choice(&self) -> PlanChoice {
        PlanChoice {
            profile: self.profile(),
            factors: self.levels(),
            subjects: self.subject.clone(),
            variants: self.variant.clone(),
            samples: SampleChoice {
                forks: if self.until_decided { Some(self.rounds_max) } else { self.forks },
                samples: self.samples,
            },
        }
    }

    /// Plans the looks at the results, if they decide the number of rounds.
    fn looks(&self) -> Option<Looks> {
        self.until_decided.then(|| Looks::until(self.rounds_max, self.effect / PERCENT))
    }

    /// Lists the options for the selected part of the study, in the form that repeats the run.
    fn asked(&self) -> Vec<String> {
        let listed = |name: &str, values: &[String]| match values {
            [] => Vec::new(),
            some => vec![name.to_owned(), some.join(",")],
        };
        let factors = self
            .factor
            .iter()
            .flat_map(|(name, levels)| ["--factor".to_owned(), format!("{name}={}", levels.join(","))]);
        let forks = self.forks.iter().flat_map(|forks| ["--forks".to_owned(), forks.to_string()]);
        let rounds = self.until_decided.then(|| {
            let (effect, most) = (self.effect.to_string(), self.rounds_max.to_string());
            ["--until-decided", "--effect", &effect, "--rounds-max", &most].map(str::to_owned)
        });
        let behind = self.gateway_link.iter().flat_map(|link| ["--gateway-link".to_owned(), link.to_owned()]);
        let (variants, subjects) = (listed("--variant", &self.variant), listed("--subject", &self.subject));
        variants
            .into_iter()
            .chain(subjects)
            .chain(factors)
            .chain(forks)
            .chain(rounds.into_iter().flatten())
            .chain(behind)
            .chain(self.changed_limits().flat_map(|(name, chosen)| [name.to_owned(), chosen.to_string()]))
            .collect()
    }

    /// Lists the limits for valid forks, if they are not the defaults.
    fn changed_limits(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let usual = ValidityLimits::default();
        let (attempts, attempts_usual) = (self.attempts.into(), usual.attempts_max.into());
        let limits = [
            ("--attempts", attempts, attempts_usual),
            ("--gate-load", self.gate_load, usual.load_per_core_max),
            ("--gate-lateness-ms", self.gate_lateness_ms, usual.lateness_p99_max_us / 1000.0),
        ];
        let others = limits.into_iter().filter(|(_, chosen, usual)| chosen.total_cmp(usual).is_ne());
        let pages = self.gate_pages.map(|chosen| ("--gate-pages", chosen));
        others.map(|(name, chosen, _)| (name, chosen)).chain(pages)
    }

    /// Names the link behind the gateway.
    fn link_behind(&self, plan: &StudyPlan, link: &str) -> String {
        let usual = if link == NO_LINK { NO_LINK } else { plan.gateway_link.as_str() };
        self.gateway_link.clone().unwrap_or_else(|| usual.to_owned())
    }

    fn gate(&self) -> ValidityLimits {
        let usual = ValidityLimits::of(self.profile());
        let factor = 1000.0 * self.gate_lateness_ms / usual.lateness_p99_max_us;
        ValidityLimits {
            load_per_core_max: self.gate_load,
            lateness_p99_max_us: usual.lateness_p99_max_us * factor,
            lateness_p99_usual_us: usual.lateness_p99_usual_us * factor,
            link_p99_max_us: usual.link_p99_max_us * factor.max(1.0),
            link_share_max: usual.link_share_max * factor.max(1.0),
            usual_share: usual.usual_share * factor,
            late_pages_percent_max: self.gate_pages.unwrap_or(usual.late_pages_percent_max),
            attempts_max: self.attempts,
            ..usual
        }
    }
}

impl Services<'_> {
    /// Runs the study.
    pub(super) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let plan = self.plan;
        let (definitions, mut unusable) = self.definitions(plan)?;
        let expanded = plan.expand(&self.options.choice(), &definitions);
        let mut expansion = expanded.map_err(|error| CommandFailure::usage(error.to_string()))?;
        if expansion.cells.is_empty() {
            return Err(self.no_cell(&unusable).into());
        }
        expansion.not_run.append(&mut unusable);
        if let Some([first, ..]) = self.options.looks().as_ref().map(Looks::rounds) {
            // A run that its first look ends is complete.
            expansion
                .cells
                .iter_mut()
                .for_each(|cell| cell.amount.forks_min = cell.amount.forks_min.min(*first));
        }
        note(&estimate(plan, &expansion, self.options.profile()));
        if let Some(why) = emulated::why() {
            note(&format!("this processor is emulated ({why}): answers are checked, and nothing is timed"));
        }
        if self.options.dry_run {
            return dry(output, plan, &expansion);
        }
        let summary = self.run.until_interrupted(self.measure(expansion)).await?;
        let is_probed = self.probe().await?;
        output.result(&self.object(&summary), || self.describe(&summary))?;
        Ok(if summary.is_complete() && is_probed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns the error of a selection without cells, with the reason if a selected subject cannot run.
    fn no_cell(&self, unusable: &[NotRun]) -> CommandFailure {
        let sentence = match unusable.iter().find(|one| self.options.names(&one.what)) {
            Some(NotRun { what, reason }) => format!("no cell is left: {what} cannot run: {reason}"),
            None => "no cell is left: restrict subjects, levels or variants less; stentor lab subject list shows the subjects \
                     and their operations"
                .to_owned(),
        };
        CommandFailure::usage(sentence)
    }

    /// Stores the results of probes, if the study has tables of features; returns true if all of them ran.
    async fn probe(&self) -> anyhow::Result<bool> {
        if self.plan.id != probes::STUDY {
            return Ok(true);
        }
        let probed = super::super::probe::keep(&self.run.out, self.options.subjects.as_deref()).await?;
        for one in probed.all().filter(|one| !one.has_run()) {
            note(&format!("probe {} of {} did not run: {}", one.id, one.subject, one.evidence));
        }
        Ok(probed.have_all_run())
    }

    async fn measure(&self, expansion: ExpandedPlan) -> anyhow::Result<RunSummary> {
        let link = self.options.link.clone().unwrap_or_else(|| self.plan.link.clone());
        let mut testbed = testbed(&link, &self.options.link_behind(self.plan, &link))?;
        let settings = self.settings(link);
        let mut reporter = RunReporter::default();
        let ExpandedPlan { cells, not_run } = expansion;
        let summary =
            runner::run(&cells, not_run, &mut testbed, &settings, &mut |event| reporter.report(&event)).await;
        summary.map_err(refused)
    }

    fn settings(&self, link: String) -> Settings {
        let (plan, options) = (self.plan, self.options);
        let mut recorded_plan = json!({
            "study": plan.id,
            "profile": options.profile().word(),
            "seed": self.run.seed,
            "link": link,
            "samples": options.samples,
        });
        let requested = options.asked();
        if !requested.is_empty() {
            recorded_plan[runner::ASKED] = requested.into();
        }
        if let Some(text) = &self.own_plan {
            recorded_plan[runner::OWN_PLAN] = text.as_str().into();
        }
        if let Some(looks) = options.looks() {
            recorded_plan["looks"] = json!({"rounds": looks.rounds(), "effect_percent": options.effect});
        }
        // Timed and untimed runs must not share a directory.
        if !emulated::is_timed() {
            recorded_plan["not_timed"] = NOT_TIMED.into();
        }
        Settings {
            study: plan.id.clone(),
            out: self.run.out.clone(),
            resume: self.run.resume,
            seed: self.run.seed,
            gate: options.gate(),
            patience: Duration::from_secs(30),
            queries_clocks: plan.queries_clocks,
            models: Models {
                processor: plan.processor.clone(),
                radio: plan.radio.clone(),
                battery_period_ms: plan.battery_period_ms,
            },
            commit: super::COMMIT.to_owned(),
            plan: recorded_plan,
            looks: options.looks().map(|looks| PlannedLooks { looks, judge: look }),
        }
    }

    /// Lists our subjects and those of the directory of definitions, and the unusable ones of that directory.
    fn definitions(&self, plan: &StudyPlan) -> anyhow::Result<(Vec<Definition>, Vec<NotRun>)> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let words = ["subject", "speak"].map(str::to_owned);
        let speak: Vec<String> = [program.display().to_string()].into_iter().chain(words).collect();
        let mut definitions = roster::ours(&speak);
        let arguments: Vec<String> = speak.iter().cloned().chain(["--served".to_owned()]).collect();
        definitions.extend(roster::served(&arguments));
        definitions.extend(roster::pushed(&speak));
        let here = std::env::current_dir().ok();
        let places = here.iter().map(PathBuf::as_path).chain([Path::new(&speak[0])]);
        let directory = self.options.subjects.clone().or_else(|| catalogue::folder(places));
        let Some(directory) = directory else { return Ok((definitions, Vec::new())) };
        let entries =
            catalogue::read(&directory).map_err(|error| CommandFailure::usage(error.to_string()))?;
        let (ready, mut not_run) = roster::ready(&entries);
        not_run.retain(|one| plan.concerns(&one.what) || self.options.names(&one.what));
        definitions.extend(ready);
        Ok((definitions, not_run))
    }

    fn object(&self, summary: &RunSummary) -> Value {
        json!({
            "study": self.plan.id,
            "profile": self.options.profile().word(),
            "ok": summary.is_complete(),
            "cells": summary.cells,
            "cells_complete": summary.cells_complete,
            "forks": { "valid": summary.forks_valid, "invalid": summary.forks_invalid },
            "refused": summary.refused,
            "not_run": summary.not_run,
            "out": self.run.out,
            "not_timed": (!emulated::is_timed()).then_some(NOT_TIMED),
            "seconds": emulated::is_timed().then_some(summary.seconds),
            "instrument": emulated::is_timed().then_some(summary.instrument),
        })
    }

    fn describe(&self, summary: &RunSummary) -> String {
        let not_run = summary.not_run.iter().map(|one| [one.what.clone(), one.reason.clone()]);
        let not_run = if summary.not_run.is_empty() {
            String::new()
        } else {
            format!("\n\n{}", table(["not run", "why"], not_run))
        };
        let (id, out) = (&self.plan.id, self.run.out.display());
        let next = match self.own_plan {
            Some(_) => format!("stentor lab report {out} --html report.html"),
            None => format!("stentor lab claims {id} --record {out}"),
        };
        format!(
            "{id}: {} of {} cells have their forks; {} forks count, {} attempts do not\n{}{not_run}\n\nrecords: {}\n\
             next: {next}",
            summary.cells_complete,
            summary.cells,
            summary.forks_valid,
            summary.forks_invalid,
            took(summary),
            self.run.out.join(stentor_lab::record::RECORDS).display(),
        )
    }
}

/// Returns the cost of the laboratory itself.
fn took(summary: &RunSummary) -> String {
    let instrument = summary.instrument;
    if !emulated::is_timed() {
        return NOT_TIMED.to_owned();
    }
    format!(
        "the laboratory itself took {:.1} s of a processor; a sleeper was woken at most {:.1} ms late in 99 of 100 cases",
        instrument.cpu_seconds,
        instrument.lateness_p99_us / 1000.0,
    )
}

/// Sets the rig up, and prints its limits.
fn testbed(link: &str, link_behind: &str) -> anyhow::Result<Rigged> {
    let tried = Rigged::try_out(link, link_behind)?;
    let unknown = || {
        CommandFailure::usage(format!(
            "there is no link {link} or {link_behind}: they are lan, wan, wifi, 4g, 3g, 2g, open, {NO_LINK}"
        ))
    };
    let testbed = tried.ok_or_else(unknown)?;
    testbed.notes().iter().for_each(|text| note(text));
    for what in testbed.level_of().cannot_test().iter().filter(|_| link != NO_LINK) {
        note(&format!("{} cannot test {what}", testbed.level_of()));
    }
    Ok(testbed)
}

fn estimate(plan: &StudyPlan, expansion: &ExpandedPlan, profile: RunProfile) -> String {
    let forks: u64 = expansion.cells.iter().map(|cell| u64::from(cell.amount.forks)).sum();
    let time = run_reporter::minutes(expansion.expected_seconds());
    format!("{}, {}: {} cells, {forks} forks, about {time}", plan.id, profile.word(), expansion.cells.len())
}

fn dry(output: Output, plan: &StudyPlan, expansion: &ExpandedPlan) -> anyhow::Result<ExitCode> {
    let cells: Vec<String> = expansion.cells.iter().map(stentor_lab::plan::Cell::label_text).collect();
    let object = json!({
        "study": plan.id,
        "cells": cells,
        "expected_seconds": expansion.expected_seconds(),
        "not_run": expansion.not_run,
    });
    output.result(&object, || cells.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
