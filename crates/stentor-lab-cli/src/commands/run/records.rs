//! The files of a study of campaigns beside its records: looks at running tests, where and how it was run, the report.

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

/// The page with everything.
pub(super) const PAGE: &str = "report.html";
const LOOKS: &str = "samples.csv";
const HEADER: &str = "test,repetition,seconds,ended,attempts,inflight,connections,server_cpu_seconds,\
                      server_peak_rss_bytes\n";

/// Looks at a running test; they are kept when it has ended, so that an interrupted one leaves nothing.
pub(super) struct Looks {
    path: PathBuf,
    lines: String,
}

impl Looks {
    /// Goes on in the directory of a run, or begins there.
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(LOOKS);
        if !path.exists() {
            write(directory, LOOKS, HEADER)?;
        }
        Ok(Self { path, lines: String::new() })
    }

    /// Adds a look.
    pub(super) fn add(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "{line}");
    }

    /// Keeps those of a run that is over, or forgets them.
    pub(super) fn end(&mut self, are_kept: bool) -> anyhow::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        if are_kept {
            OpenOptions::new().append(true).open(&self.path)?.write_all(lines.as_bytes())?;
        }
        Ok(())
    }
}

/// Keeps where, when and how all of this was measured; `plan` is said too.
pub(super) async fn provenance(
    directory: &Path,
    plan: &Value,
    site: &Site,
    load_before: &str,
) -> anyhow::Result<()> {
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

/// Returns the load of the machine as the system tells it.
pub(super) fn load() -> String {
    line("/proc/loadavg")
}

#[cfg(test)]
mod tests {
    use super::*;

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
