//! The files of a study: samples as they come, a line for each run, where and how it was measured, the report.

use super::site::{DIRECTORY, Site};
use crate::failure::Failure;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use stentor_lab::facts::{fact, line, processor};
use stentor_lab::report::{Measured, Report, Row, draw, figure, figures, markdown, page};
use stentor_lab::study::{Published, Scenario};

/// The page with everything.
pub(super) const PAGE: &str = "report.html";
const SAMPLES: &str = "samples.csv";
const RUNS: &str = "scenarios.ndjson";
const PLAN: &str = "plan.json";
const PROVENANCE: &str = "provenance.json";
/// The paper's table that our figures stand beside.
const TABLE: &str = "Table 3";
const SAMPLES_HEADER: &str = "test,repetition,seconds,ended,attempts,inflight,connections,server_cpu_seconds,\
                              server_peak_rss_bytes";

/// Files that grow while the study runs.
pub(super) struct Records {
    directory: PathBuf,
    samples: BufWriter<File>,
    runs: BufWriter<File>,
    load_before: String,
}

impl Records {
    /// Makes the directory and its files; it must not hold anything. What must be the same when it is gone on with later
    /// is kept as the plan.
    pub(super) fn create(directory: &Path, plan: &Value) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| unusable(directory))?;
        if std::fs::read_dir(directory).with_context(|| unusable(directory))?.next().is_some() {
            let sentence = format!(
                "{} is not empty: name a new directory with --out, or go on there with --resume",
                directory.display()
            );
            return Err(Failure::usage(sentence).into());
        }
        write(directory, PLAN, &plan.to_string())?;
        Self::begin(directory, &[], &[])
    }

    /// Goes on in a directory; returns the runs that are there already. What an interrupted run left is removed.
    pub(super) fn resume(directory: &Path, plan: &Value) -> anyhow::Result<(Self, Vec<Row>)> {
        let kept: Option<Value> = serde_json::from_str(&read(directory, PLAN)?).ok();
        if kept.as_ref() != Some(plan) {
            let sentence = format!(
                "{} was made with other settings: give the same study, scale, seed and latency",
                directory.display()
            );
            return Err(Failure::usage(sentence).into());
        }
        for entry in std::fs::read_dir(directory)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(DIRECTORY) {
                std::fs::remove_dir_all(entry.path()).with_context(|| unusable(directory))?;
            }
        }
        let (lines, samples) = (read(directory, RUNS)?, read(directory, SAMPLES)?);
        let (lines, runs): (Vec<&str>, Vec<Row>) = torn(&lines).unzip();
        Ok((Self::begin(directory, &lines, &complete(&samples, &runs))?, runs))
    }

    fn begin(directory: &Path, runs: &[&str], samples: &[&str]) -> anyhow::Result<Self> {
        let file = |name: &str, lines: &[&str]| {
            let mut file = BufWriter::new(File::create(directory.join(name))?);
            lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
            file.flush().map(|()| file)
        };
        let samples = [&[SAMPLES_HEADER], samples].concat();
        let samples = file(SAMPLES, &samples).with_context(|| unusable(directory))?;
        let runs = file(RUNS, runs).with_context(|| unusable(directory))?;
        Ok(Self { directory: directory.to_owned(), samples, runs, load_before: load() })
    }

    /// Adds a look at a running test.
    pub(super) fn sample(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.samples, "{line}")?)
    }

    /// Adds a run that is over.
    pub(super) fn row(&mut self, row: &Row) -> anyhow::Result<()> {
        writeln!(self.runs, "{}", serde_json::to_string(row)?)?;
        self.samples.flush()?;
        Ok(self.runs.flush()?)
    }

    /// Returns where, when and how all of this was measured; `plan` is said too.
    pub(super) async fn provenance(&self, plan: &Value, site: &Site) -> anyhow::Result<Value> {
        let server = site.server.client()?;
        let mut facts = json!({
            "command": std::env::args().collect::<Vec<_>>().join(" "),
            "date": site.newest_campaign().await?,
            "version": server.get("/version").await?,
            "optimized": !cfg!(debug_assertions),
            "kernel": line("/proc/sys/kernel/osrelease"),
            "cpu": processor(),
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "memory": fact("/proc/meminfo", "MemTotal"),
            "load_before": self.load_before,
            "load_after": load(),
            "network": "loopback, TLS 1.3, HTTP/2",
            "intervals": "95 %, Student's t on logarithms of rates; the unit is the run of a fresh server",
        });
        for (name, value) in plan.as_object().into_iter().flatten() {
            facts[name] = value.clone();
        }
        Ok(facts)
    }

    /// Writes the report.
    pub(super) fn finish(&self, report: &Report) -> anyhow::Result<()> {
        let write = |name: &str, text: &str| write(&self.directory, name, text);
        write(PROVENANCE, &serde_json::to_string_pretty(&report.provenance)?)?;
        drawings(report).iter().try_for_each(|(name, text)| write(name, text))?;
        write("figures.csv", &csv(report))?;
        write("report.md", &markdown(report))?;
        write(PAGE, &page(report))
    }
}

/// The drawings, each with the name of its file.
pub(in crate::commands::lab) fn drawings(report: &Report) -> [(&'static str, String); 2] {
    let rates = draw(&report.scenarios.iter().collect::<Vec<&Measured>>());
    [("rates.svg", rates), ("consumers.svg", figure(report))]
}

/// The rates beside the paper's table.
pub(in crate::commands::lab) fn csv(report: &Report) -> String {
    figures(report, TABLE)
}

/// Returns whether a directory keeps campaigns of a study.
pub(in crate::commands::lab) fn is_kept(directory: &Path) -> bool {
    directory.join(RUNS).is_file()
}

/// Makes the report of what a directory keeps, also of a run that was interrupted or goes on; `None` where no such run is kept.
pub(in crate::commands::lab) fn kept(directory: &Path) -> anyhow::Result<Option<Report>> {
    if !is_kept(directory) {
        return Ok(None);
    }
    let object =
        |name: &str| serde_json::from_str::<Value>(&read(directory, name)?).map_err(anyhow::Error::from);
    let plan = object(PLAN).with_context(|| unusable(&directory.join(PLAN)))?;
    let study = super::study(plan["provider_latency_ms"]["median"].as_f64())?;
    let runs: Vec<Row> = torn(&read(directory, RUNS)?).map(|(_, row)| row).collect();
    let cells: Vec<_> =
        study.scenarios.iter().map(Scenario::cell).chain(study.beyond.iter().cloned()).collect();
    let (scenarios, beyond) = super::sum_up(&cells, &runs);
    // What is written last is missing where a run did not come to its end.
    let provenance = object(PROVENANCE).unwrap_or(plan);
    Ok(Some(Report { study, published: Published::isikligil_2017()?, scenarios, beyond, runs, provenance }))
}

/// Reads lines as runs; the last line of a run that was interrupted may be torn.
fn torn(lines: &str) -> impl Iterator<Item = (&str, Row)> {
    lines.lines().map_while(|line| Some((line, serde_json::from_str(line).ok()?)))
}

fn unusable(directory: &Path) -> String {
    format!("{} cannot be used", directory.display())
}

fn read(directory: &Path, name: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(directory.join(name))
        .with_context(|| format!("{} holds no run to go on with", directory.display()))
}

fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Keeps the samples of runs that came to their end.
fn complete<'a>(samples: &'a str, runs: &[Row]) -> Vec<&'a str> {
    let ended: HashSet<String> = runs.iter().map(|row| format!("{},{}", row.id, row.repetition)).collect();
    let is_ended = |line: &&str| {
        let name = line.match_indices(',').nth(1).map(|(end, _)| &line[..end]);
        name.is_some_and(|name| ended.contains(name))
    };
    samples.lines().skip(1).filter(is_ended).collect()
}

fn load() -> String {
    line("/proc/loadavg")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        Row { id: id.to_owned(), repetition: 1, wall_seconds: 1.5, ..Row::default() }
    }

    #[test]
    fn an_interrupted_run_is_gone_and_every_other_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (path, plan) = (directory.path(), json!({"scale": 0.5}));
        let mut records = Records::create(path, &plan).unwrap();
        records.sample("T1,1,0.5,3").unwrap();
        records.row(&row("T1")).unwrap();
        records.sample("T10,1,0.5,3").unwrap();
        records.samples.flush().unwrap();
        records.runs.write_all(b"{\"id\":\"T10\"").unwrap();
        drop(records);
        std::fs::create_dir(path.join("site-x")).unwrap();
        let (records, runs) = Records::resume(path, &plan).unwrap();
        drop(records);
        assert_eq!(runs, [row("T1")]);
        assert_eq!(read(path, SAMPLES).unwrap(), format!("{SAMPLES_HEADER}\nT1,1,0.5,3\n"));
        assert_eq!(read(path, RUNS).unwrap().lines().count(), 1);
        assert!(!path.join("site-x").exists());
    }

    #[test]
    fn a_report_is_made_of_what_is_kept_though_the_run_was_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(kept(path).unwrap().is_none(), "nothing is kept");
        let plan = json!({"scale": 0.5, "provider_latency_ms": {"median": 80.0}});
        let mut records = Records::create(path, &plan).unwrap();
        for one in [Row { pushes_per_second: 400.0, ..row("T9") }, row("T10")] {
            records.row(&one).unwrap();
        }
        records.runs.write_all(b"{\"id\":\"T1\"").unwrap();
        drop(records);
        let report = kept(path).unwrap().expect("kept");
        let ids: Vec<&str> = report.scenarios.iter().map(|one| one.row.id.as_str()).collect();
        assert_eq!((ids, report.runs.len()), (vec!["T9", "T10"], 2));
        assert!((report.study.provider.latency_median_ms - 80.0).abs() < 1e-9);
        assert_eq!(report.provenance, plan);
        std::fs::write(path.join(PROVENANCE), "{\"cores\": 3}").unwrap();
        assert_eq!(kept(path).unwrap().expect("kept").provenance["cores"], json!(3));
        assert!(page(&report).contains("400.0"), "drawn from the runs");
    }

    #[test]
    fn runs_of_other_settings_are_not_mixed_in() {
        let directory = tempfile::tempdir().unwrap();
        Records::create(directory.path(), &json!({"scale": 0.5})).unwrap();
        assert!(Records::resume(directory.path(), &json!({"scale": 0.6})).is_err());
        assert!(Records::create(directory.path(), &json!({})).is_err(), "it is in use");
    }
}
