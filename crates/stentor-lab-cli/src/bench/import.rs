//! New devices through the API, as one stream of NDJSON.

use super::store_ratio::beside_file;
use serde_json::{Value, json};
use std::sync::Arc;
use stentor_lab::statistics::Samples;
use stentor_stage::devices::DevicePopulation;
use stentor_stage::engines::StageStore;
use stentor_stage::import;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportBenchOptions {
    /// Number of devices, all of them new.
    pub(crate) devices: u64,
    /// Number of rounds, each with an empty store.
    pub(crate) rounds: u32,
    /// Store of the server; each round in PostgreSQL has one in SQLite beside it.
    pub(crate) store: StageStore,
}

/// Results of the bench.
pub(crate) struct ImportBenchReport {
    rounds: ImportRounds,
    /// The rounds on SQLite, if another store was measured.
    beside: Option<ImportRounds>,
}

/// Results of the rounds on one store.
#[derive(Default)]
struct ImportRounds {
    devices: u64,
    rates: Samples,
    /// Processor time of the server for each device, in microseconds.
    cpu: Samples,
    /// Processor time of the database for each device, if there is one.
    database_cpu: Samples,
    wall: Samples,
    peak_rss_bytes: u64,
}

/// Fields in the comparison of two stores.
const COMPARED: [&str; 4] =
    ["devices_per_second", "wall_seconds", "server_cpu_microseconds_per_device", "server_peak_rss_bytes"];

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: ImportBenchOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<ImportBenchReport> {
    let ImportBenchOptions { devices, rounds, store } = options;
    let made = || ImportRounds { devices, ..ImportRounds::default() };
    let mut report = ImportBenchReport { rounds: made(), beside: (store != StageStore::File).then(made) };
    for _ in 0..rounds {
        if let Some(beside) = &mut report.beside {
            beside.add(StageStore::File, reporter).await?;
        }
        report.rounds.add(store, reporter).await?;
    }
    Ok(report)
}

impl ImportBenchReport {
    /// Devices per second, the median of the rounds.
    pub(crate) fn devices_per_second(&self) -> Option<f64> {
        self.rounds.rates.quantile(0.5)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let mut object = self.rounds.object();
        if let Some(beside) = &self.beside {
            object["beside_sqlite"] = beside_file(&COMPARED, &beside.object(), &object);
        }
        object
    }
}

impl ImportRounds {
    /// Imports once, into an empty store.
    async fn add(&mut self, store: StageStore, reporter: &Arc<dyn Reporter>) -> anyhow::Result<()> {
        let devices = self.devices;
        let options = StageOptions { store, ..StageOptions::with_sinks(2) };
        let mut stage = Stage::build(&options, reporter).await?;
        let before = stage.engines.used();
        let took = import::run(&stage.client, DevicePopulation::new(devices, 1), &**reporter).await?;
        let database = stage.engines.used().since(before).postgres;
        let usage = stage.server.stop();
        let each = |seconds: f64| seconds * 1e6 / devices as f64;
        self.wall.push(took.as_secs_f64());
        self.rates.push(devices as f64 / took.as_secs_f64());
        self.cpu.push(each(usage.cpu_seconds));
        if let Some(seconds) = database {
            self.database_cpu.push(each(seconds));
        }
        self.peak_rss_bytes = self.peak_rss_bytes.max(usage.peak_rss_bytes);
        Ok(())
    }

    fn object(&self) -> Value {
        let (cpu, devices) = (self.cpu.quantile(0.5), self.devices as f64);
        json!({
            "devices": self.devices,
            "wall_seconds": self.wall.quantile(0.5),
            "server_cpu_seconds": cpu.map(|each| each * devices / 1e6),
            "devices_per_second": self.rates.quantile(0.5),
            "server_cpu_microseconds_per_device": cpu,
            "database_cpu_microseconds_per_device": self.database_cpu.quantile(0.5),
            "server_peak_rss_bytes": self.peak_rss_bytes,
            "rounds": {"devices_per_second": self.rates, "server_cpu_microseconds_per_device": self.cpu,
                "database_cpu_microseconds_per_device": self.database_cpu},
        })
    }
}
