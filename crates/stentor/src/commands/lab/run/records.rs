//! The files of a study: samples as they come, a line for each test, where and how it was measured, the report.

use super::site::Site;
use crate::failure::Failure;
use anyhow::Context;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use stentor_lab::report::{Report, Row, draw, page};
use stentor_lab::study::Study;

/// The page with everything.
pub(super) const PAGE: &str = "report.html";
const SAMPLES_HEADER: &str =
    "test,seconds,ended,attempts,inflight,connections,server_cpu_seconds,server_peak_rss_bytes";

/// Files that grow while the study runs.
pub(super) struct Records {
    directory: PathBuf,
    samples: BufWriter<File>,
    rows: BufWriter<File>,
    load_before: String,
}

impl Records {
    /// Makes the directory and its files; it must not hold anything.
    pub(super) fn create(directory: &Path) -> anyhow::Result<Self> {
        let unusable = || format!("{} cannot be used", directory.display());
        std::fs::create_dir_all(directory).with_context(unusable)?;
        if std::fs::read_dir(directory).with_context(unusable)?.next().is_some() {
            let sentence = format!("{} is not empty: name a new directory with --out", directory.display());
            return Err(Failure::usage(sentence).into());
        }
        let file =
            |name: &str| File::create_new(directory.join(name)).map(BufWriter::new).with_context(unusable);
        let (mut samples, rows) = (file("samples.csv")?, file("scenarios.ndjson")?);
        writeln!(samples, "{SAMPLES_HEADER}")?;
        Ok(Self { directory: directory.to_owned(), samples, rows, load_before: load() })
    }

    /// Adds a look at a running test.
    pub(super) fn sample(&mut self, line: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.samples, "{line}")?)
    }

    /// Adds a test that is over.
    pub(super) fn row(&mut self, row: &Row) -> anyhow::Result<()> {
        writeln!(self.rows, "{}", serde_json::to_string(row)?)?;
        self.samples.flush()?;
        Ok(self.rows.flush()?)
    }

    /// Says where, when and how all of this was measured.
    pub(super) async fn provenance(&self, scale: f64, study: &Study, site: &Site) -> anyhow::Result<Value> {
        let server = site.server.client()?;
        let newest = site.apps[0].client.get_with("/v1/campaigns", &[("limit", "1".to_owned())]).await?;
        Ok(json!({
            "command": std::env::args().collect::<Vec<_>>().join(" "),
            "date": newest["campaigns"][0]["created_at"],
            "version": server.get("/version").await?,
            "optimized": !cfg!(debug_assertions),
            "kernel": line_of("/proc/sys/kernel/osrelease"),
            "cpu": fact("/proc/cpuinfo", "model name"),
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "memory": fact("/proc/meminfo", "MemTotal"),
            "load_before": self.load_before,
            "load_after": load(),
            "scale": scale,
            "runs_of_each_test": 1,
            "provider_latency_ms": {
                "kind": "lognormal",
                "median": study.provider.latency_median_ms,
                "sigma": study.provider.latency_sigma,
                "mean": study.provider.mean_ms(),
            },
            "background": study.background,
            "network": "loopback, TLS 1.3, HTTP/2",
        }))
    }

    /// Writes the report.
    pub(super) fn finish(&self, report: &Report) -> anyhow::Result<()> {
        let write = |name: &str, text: &str| {
            let path = self.directory.join(name);
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
        };
        write("provenance.json", &serde_json::to_string_pretty(&report.provenance)?)?;
        write("rates.svg", &draw(&report.rows))?;
        write(PAGE, &page(report))
    }
}

fn load() -> String {
    line_of("/proc/loadavg")
}

/// Gives a file's first line; what this system does not tell is left empty.
fn line_of(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn fact(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches([':', ' ', '\t']).to_owned()
}
