//! New devices through the API, as one stream of NDJSON.

use crate::devices::DevicePopulation;
use crate::import;
use crate::reporter::Reporter;
use crate::stage::{Stage, StageOptions};
use serde_json::{Value, json};
use std::sync::Arc;
use stentor_lab::statistics::Samples;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ImportBenchOptions {
    /// How many devices, all of them new.
    pub devices: u64,
    /// How often it is repeated, each time from nothing.
    pub rounds: u32,
}

/// What was measured.
pub struct ImportBenchReport {
    devices: u64,
    rates: Samples,
    /// Microseconds of processor time for each device.
    cpu: Samples,
    wall: Samples,
    peak_rss_bytes: u64,
}

/// Measures.
pub async fn run(
    options: ImportBenchOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<ImportBenchReport> {
    let ImportBenchOptions { devices, rounds } = options;
    let (rates, cpu, wall) = (Samples::default(), Samples::default(), Samples::default());
    let mut report = ImportBenchReport { devices, rates, cpu, wall, peak_rss_bytes: 0 };
    for _ in 0..rounds {
        let mut stage = Stage::build(&StageOptions::with_sinks(2), reporter).await?;
        let took = import::run(&stage.client, DevicePopulation::new(devices, 1), &**reporter).await?;
        let usage = stage.server.stop();
        report.wall.push(took.as_secs_f64());
        report.rates.push(devices as f64 / took.as_secs_f64());
        report.cpu.push(usage.cpu_seconds * 1e6 / devices as f64);
        report.peak_rss_bytes = report.peak_rss_bytes.max(usage.peak_rss_bytes);
    }
    Ok(report)
}

impl ImportBenchReport {
    /// Devices per second, the median of the rounds.
    pub fn devices_per_second(&self) -> Option<f64> {
        self.rates.quantile(0.5)
    }

    /// The report as one object.
    pub fn object(&self) -> Value {
        let (cpu, devices) = (self.cpu.quantile(0.5), self.devices as f64);
        json!({
            "devices": self.devices,
            "wall_seconds": self.wall.quantile(0.5),
            "server_cpu_seconds": cpu.map(|each| each * devices / 1e6),
            "devices_per_second": self.devices_per_second(),
            "server_cpu_microseconds_per_device": cpu,
            "server_peak_rss_bytes": self.peak_rss_bytes,
            "rounds": {"devices_per_second": self.rates, "server_cpu_microseconds_per_device": self.cpu},
        })
    }
}
