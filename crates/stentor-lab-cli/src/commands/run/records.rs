//! The files of a study of campaigns beside its records: samples of running tests, the provenance, and the report.

use super::site::Site;
use crate::commands::report;
use anyhow::Context;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use stentor_lab::results::{self, Account, CONFIDENCE};
use stentor_machine::facts::{fact, line, processor};

/// File name of the complete report.
pub(super) const PAGE: &str = "report.html";
const LOOKS: &str = "samples.csv";
const HEADER: &str = "test,repetition,seconds,ended,attempts,inflight,connections,server_cpu_seconds,\
                      server_peak_rss_bytes\n";

/// Samples of a running test; they are written when it has ended, so that an interrupted test leaves none.
pub(super) struct Looks {
    path: PathBuf,
    lines: String,
}

impl Looks {
    /// Opens the file of samples in a directory, or creates it.
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(LOOKS);
        if !path.exists() {
            write(directory, LOOKS, HEADER)?;
        }
        Ok(Self { path, lines: String::new() })
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "{line}");
    }

    /// Writes the samples of an ended test, or discards them.
    pub(super) fn end(&mut self, are_kept: bool) -> anyhow::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        if are_kept {
            OpenOptions::new().append(true).open(&self.path)?.write_all(lines.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns the command that makes such a run anew: without the place of the program, and not as the continuation of another.
fn command(arguments: impl Iterator<Item = String>) -> String {
    arguments
        .skip(1)
        .filter(|one| one != "--resume")
        .fold("stentor lab".to_owned(), |line, one| line + " " + &one)
}

/// Writes the place, time and settings of the measurements, with `plan`.
pub(super) async fn provenance(
    directory: &Path,
    plan: &Value,
    site: &Site,
    load_before: &str,
) -> anyhow::Result<()> {
    let server = site.server.client()?;
    let mut facts = json!({
        "command": command(std::env::args()),
        "date": site.newest_campaign().await?,
        "version": server.get("/version").await?,
        "optimized": !cfg!(debug_assertions),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "cpu": processor(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": fact("/proc/meminfo", "MemTotal"),
        "load_before": load_before,
        "load_after": load(),
        "network": "loopback, TLS 1.3, HTTP/2",
        "intervals": "95 %, Student's t on logarithms of rates; the unit is the run of a fresh server",
    });
    for (name, value) in plan.as_object().into_iter().flatten() {
        facts[name] = value.clone();
    }
    write(directory, report::PROVENANCE, &serde_json::to_string_pretty(&facts)?)
}

/// Writes the report beside the records.
pub(super) fn finish(directory: &Path, account: &Account) -> anyhow::Result<()> {
    for plot in &account.plots {
        write(directory, &format!("{}.svg", plot.id), &plot.file())?;
    }
    write(directory, "figures.csv", &results::figures_csv(&account.results, CONFIDENCE))?;
    write(directory, "report.md", &results::markdown(account))?;
    write(directory, PAGE, &results::page(account))
}

fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Returns the system's load averages.
pub(super) fn load() -> String {
    line("/proc/loadavg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_run_makes_it_anew_elsewhere() {
        let given = "/opt/bin/stentor-lab run isikligil-2017 --resume --scale 0.01 --out study";
        let made = command(given.split(' ').map(str::to_owned));
        assert_eq!(made, "stentor lab run isikligil-2017 --scale 0.01 --out study");
    }

    #[test]
    fn looks_at_an_interrupted_run_are_gone_and_every_other_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut looks = Looks::open(path).unwrap();
        looks.add("T1,1,0.5,3");
        looks.end(true).unwrap();
        looks.add("T10,1,0.5,3");
        looks.end(false).unwrap();
        looks.add("T9,1,0.5,3");
        drop(looks);
        Looks::open(path).unwrap().end(true).unwrap();
        assert_eq!(std::fs::read_to_string(path.join(LOOKS)).unwrap(), format!("{HEADER}T1,1,0.5,3\n"));
    }
}
