//! `stentor lab run` for a study of campaigns: its subject is our server between emulated push services.

use super::records::{self, Looks, PAGE};
use super::site::{DIRECTORY, Site};
use super::trial::{self, CampaignTrial};
use super::{COMMIT, RunArgs, refused};
use crate::commands::report;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use stentor_lab::plan::{CampaignCell, Campaigns, StudyPlan};
use stentor_lab::record::{self, CAMPAIGNS, CampaignRecord, FINISHED, ForkRecord, NOT_MADE};
use stentor_lab::results::Account;
use stentor_lab::runner::{Adapter, AttemptResult, RunError, RunEvent, Scheduled, Settings, run_with};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, note};

/// A cell, with its number of runs and their expected duration.
struct Test<'a> {
    cell: &'a CampaignCell,
    repetitions: u32,
    seconds: f64,
}

impl Scheduled for Test<'_> {
    fn key(&self, fork: u32) -> String {
        trial::blank(self.cell, fork).key()
    }

    fn forks(&self) -> (u32, u32) {
        (self.repetitions, 1)
    }

    fn fork_seconds(&self) -> f64 {
        self.seconds
    }

    fn label_text(&self) -> String {
        self.cell.id.clone()
    }

    fn subject(&self) -> String {
        trial::STACK.to_owned()
    }

    fn is_of_subject(&self, _other: &Self) -> bool {
        true
    }
}

/// Our server between emulators, as the adapter that makes forks.
struct WithEmulators<'a> {
    study: &'a Campaigns,
    scale: f64,
    give_up_after: Duration,
    settings: &'a Settings,
    /// The running processes; `None` until the run has begun.
    running: Option<(Site, Looks)>,
    /// The error that ended the run, with its exit code.
    error: Option<anyhow::Error>,
}

impl WithEmulators<'_> {
    async fn build(&self, directory: &Path) -> anyhow::Result<(Site, Looks)> {
        remove_leftovers(directory)?;
        let looks = Looks::open(directory)?;
        Ok((Site::build(self.study, self.scale, directory).await?, looks))
    }

    async fn run(&mut self, cell: &CampaignCell, fork: u32, attempt: u32) -> anyhow::Result<ForkRecord> {
        let (site, looks) = self.running.as_mut().context("nothing runs yet")?;
        let (usual, give_up_after) = (self.study.provider, self.give_up_after);
        let trial = CampaignTrial { cell, fork, attempt, usual, give_up_after, settings: self.settings };
        let made = trial::run(trial, site, looks).await;
        let record = made.with_context(|| format!("{} could not be run", cell.id))?;
        looks.end(record.outcome != NOT_MADE)?;
        Ok(record)
    }

    /// Keeps an error with its exit code, which only this command knows.
    fn failed(&mut self, error: anyhow::Error) -> RunError {
        let sentence = format!("{error:#}");
        self.error = Some(error);
        RunError::Adapter(sentence)
    }
}

impl<'a> Adapter for WithEmulators<'a> {
    type Cell = Test<'a>;

    fn file(&self) -> &'static str {
        CAMPAIGNS
    }

    async fn begin(&mut self, directory: &Path) -> Result<(), RunError> {
        let built = self.build(directory).await;
        self.running = Some(built.map_err(|error| self.failed(error))?);
        Ok(())
    }

    async fn attempt(
        &mut self,
        test: &Self::Cell,
        fork: u32,
        attempt: u32,
    ) -> Result<AttemptResult, RunError> {
        let made = self.run(test.cell, fork, attempt).await;
        made.map(|record| AttemptResult::Kept(Box::new(record))).map_err(|error| self.failed(error))
    }
}

/// Removes the directories of an interrupted run.
fn remove_leftovers(directory: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(DIRECTORY) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

impl RunArgs {
    /// Runs a study of campaigns.
    pub(super) async fn campaigns(&self, plan: &StudyPlan, output: Output) -> anyhow::Result<ExitCode> {
        // The study is about nothing but rates, which need real time.
        stentor_stage::emulated::refuse()?;
        if let Some(option) = self.options.only_theirs() {
            let sentence = format!("{} has no {option}: see --scale and --only", plan.id);
            return Err(CommandFailure::usage(sentence).into());
        }
        let account = self.until_interrupted(self.perform(plan)).await?;
        // Runs that were not made or were ended by their limit are no evidence either way.
        let mut finished = account.results.records.iter().filter(|record| record.outcome == FINISHED);
        let is_sound = finished.all(|record| record.campaign.as_ref().is_some_and(CampaignRecord::is_sound));
        let mut object = report::campaigns(&account)?;
        object["ok"] = json!(is_sound);
        object["scale"] = json!(self.scale);
        object["repetitions"] = json!(self.repetitions);
        object["out"] = json!(self.out);
        let page = self.out.join(PAGE);
        let description = report::describe_campaigns(&account)?;
        output.result(&object, || format!("{description}\n\nreport: {}", page.display()))?;
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn perform(&self, plan: &StudyPlan) -> anyhow::Result<Account> {
        let study = self.study_of(plan)?;
        let (tests, settings) = (self.tests(&study)?, self.campaign_settings(plan, &study));
        let load_before = records::load();
        let mut adapter = WithEmulators {
            study: &study,
            scale: self.scale,
            give_up_after: Duration::from_secs(self.give_up_after_seconds),
            settings: &settings,
            running: None,
            error: None,
        };
        let mut runs = 0;
        let mut on_event = |event: RunEvent<'_>| report(&event, &mut runs);
        let ran = run_with(&mut adapter, &tests, Vec::new(), &settings, &mut on_event).await;
        ran.map_err(|error| adapter.error.take().unwrap_or_else(|| refused(error)))?;
        if let Some((site, _)) = &adapter.running {
            let mut recorded_plan = settings.plan.clone();
            recorded_plan["repetitions"] = json!(self.repetitions);
            recorded_plan["commit"] = json!(commits(&record::read_directory(&self.out)?));
            records::provenance(&self.out, &recorded_plan, site, &load_before).await?;
        }
        let account = report::account(std::slice::from_ref(&self.out))?;
        records::finish(&self.out, &account)?;
        Ok(account)
    }

    /// Returns the campaigns of a plan, with the requested latency of the push services.
    fn study_of(&self, plan: &StudyPlan) -> anyhow::Result<Campaigns> {
        let mut study = plan.campaigns.clone().context("the study has no campaigns")?;
        if let Some(median) = self.latency_median_ms {
            study.provider.latency_median_ms = median;
        }
        Ok(study)
    }

    /// Lists the tests to be run.
    fn tests<'a>(&self, study: &'a Campaigns) -> anyhow::Result<Vec<Test<'a>>> {
        let mut cells: Vec<&CampaignCell> =
            study.cells.iter().filter(|cell| self.beyond || cell.question.is_empty()).collect();
        let is_called = |cell: &CampaignCell, name: &String| cell.id == *name || cell.question == *name;
        if let Some(unknown) = self.only.iter().find(|name| !cells.iter().any(|cell| is_called(cell, name))) {
            let further = if self.beyond { "" } else { "; with --beyond there are more" };
            let sentence = format!("there is no test {unknown}: they are T1 to T13{further}");
            return Err(CommandFailure::usage(sentence).into());
        }
        cells.retain(|cell| self.only.is_empty() || self.only.iter().any(|name| is_called(cell, name)));
        let test = |cell: &'a CampaignCell| Test {
            cell,
            repetitions: self.repetitions,
            seconds: study.expected_seconds(cell, self.scale),
        };
        Ok(cells.into_iter().map(test).collect())
    }

    /// Returns the settings of the run; the plan in them must not change when a run is continued.
    fn campaign_settings(&self, plan: &StudyPlan, study: &Campaigns) -> Settings {
        let recorded_plan: Value = json!({
            "study": plan.id,
            "scale": self.scale,
            "seed": self.seed,
            "provider_latency_ms": {
                "kind": "lognormal",
                "median": study.provider.latency_median_ms,
                "sigma": study.provider.latency_sigma,
                "mean": study.provider.mean_ms(),
            },
            "background": study.background,
        });
        Settings {
            study: plan.id.clone(),
            out: PathBuf::clone(&self.out),
            resume: self.resume,
            seed: self.seed,
            patience: Duration::from_secs(self.give_up_after_seconds),
            commit: COMMIT.to_owned(),
            plan: recorded_plan,
            ..Settings::default()
        }
    }
}

/// Names the commits that runs were made with; a continued directory may have several.
fn commits(records: &[ForkRecord]) -> String {
    let commits: BTreeSet<&str> = records.iter().map(|record| record.env.commit.as_str()).collect();
    commits.into_iter().collect::<Vec<_>>().join(", ")
}

/// Reports each attempt, and the progress of all.
fn report(event: &RunEvent<'_>, runs: &mut u64) {
    match event {
        RunEvent::Begun { forks, .. } => *runs = *forks,
        RunEvent::Attempt { done, seconds_left, record } => {
            note(&attempt_text(record));
            if record.valid {
                note(&format!(
                    "{done} of {runs} runs, about {} left",
                    super::services::minutes(*seconds_left)
                ));
            }
        }
        // The number of its runs is fixed.
        RunEvent::Looked { .. } => {}
        RunEvent::LeftOut(what) => note(&format!("not run: {}: {}", what.what, what.reason)),
    }
}

fn attempt_text(record: &ForkRecord) -> String {
    let name = format!("{} ({})", record.experiment, record.fork);
    let Some(campaign) = record.campaign.as_ref().filter(|campaign| campaign.pushes > 0) else {
        let why = if record.invalid_reason.is_empty() { &record.outcome } else { &record.invalid_reason };
        return format!("{name}: {why}");
    };
    let doubt =
        if record.valid { String::new() } else { format!("; does not count: {}", record.invalid_reason) };
    format!(
        "{name}: {} pushes in {:.2} s, {:.1} pushes/s, {} lost{doubt}",
        campaign.pushes, campaign.wall_seconds, campaign.pushes_per_second, campaign.lost
    )
}
