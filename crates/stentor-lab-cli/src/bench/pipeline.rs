//! One campaign through sinks, from the 202 to the settled ledger.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use stentor_lab::statistics::Samples;
use stentor_stage::demo::{self, DemoOptions, DemoReport};
use stentor_stage::engines::{StageQueue, StageStore};
use stentor_stage::reporter::Reporter;

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct PipelineOptions {
    /// Number of devices: half through FCM, half through APNs.
    pub(crate) devices: u64,
    /// Response time of the sinks.
    pub(crate) latency_ms: Option<f64>,
    /// Number of rounds, each with an empty store.
    pub(crate) rounds: u32,
    /// Store of the server; each round in PostgreSQL has one in SQLite beside it.
    pub(crate) store: StageStore,
    /// Queue of the waiting chunks; in the rounds beside it, SQLite.
    pub(crate) queue: StageQueue,
    /// Number of servers that share the campaign; one in the rounds beside it.
    pub(crate) nodes: u32,
    /// Directory for all files of a single round.
    pub(crate) keep: Option<PathBuf>,
}

/// Results of the rounds, in their order.
pub(crate) struct PipelineReport {
    latency_ms: Option<f64>,
    store: StageStore,
    queue: StageQueue,
    rounds: Vec<DemoReport>,
    /// The rounds on SQLite, if another store was measured.
    beside: Vec<DemoReport>,
}

/// Fields that are sampled in every round.
const SAMPLED: [&str; 12] = [
    "pushes_per_second",
    "wall_seconds",
    "server_cpu_seconds",
    "server_peak_rss_bytes",
    "campaign_peak_rss_bytes",
    "import_seconds",
    "import_cpu_seconds",
    "import_peak_rss_bytes",
    "postgres_cpu_seconds",
    "nats_cpu_seconds",
    "processor_seconds",
    "processor_seconds_per_million_pushes",
];

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: &PipelineOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<PipelineReport> {
    let demo = |(store, queue), keep| {
        DemoOptions::through_sinks(options.devices, options.latency_ms, keep, store, queue)
    };
    let files = (StageStore::File, StageQueue::File);
    let engines = (options.store, options.queue.clone());
    let (mut rounds, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        if engines != files {
            beside.push(demo::run(&demo(files.clone(), None), reporter).await?);
        }
        let mut shared = demo(engines.clone(), options.keep.clone());
        shared.stage.nodes = options.nodes;
        rounds.push(demo::run(&shared, reporter).await?);
        reporter.line(&format!("round {round} of {}", options.rounds));
    }
    let (store, queue) = engines;
    Ok(PipelineReport { latency_ms: options.latency_ms, store, queue, rounds, beside })
}

impl PipelineReport {
    /// Returns true if the proof of every round holds.
    pub(crate) fn holds(&self) -> bool {
        self.rounds.iter().chain(&self.beside).all(DemoReport::holds)
    }

    /// The report of the last round.
    pub(crate) fn last(&self) -> Option<&DemoReport> {
        self.rounds.last()
    }

    /// Returns the last round as an object, with the medians and samples of all rounds.
    pub(crate) fn object(&self) -> Value {
        let rounds: Vec<Value> = self.rounds.iter().map(DemoReport::object).collect();
        let mut object = rounds.last().cloned().unwrap_or_else(|| json!({}));
        for field in SAMPLED {
            let samples: Samples = rounds.iter().filter_map(|round| round[field].as_f64()).collect();
            object["rounds"][field] = json!({"summary": samples.summary(), "samples": samples.values()});
            object[field] = samples.quantile(0.5).map_or(Value::Null, Value::from);
        }
        if !self.beside.is_empty() {
            object["beside_sqlite"] = self.beside(&rounds);
        }
        object["latency_ms"] = json!(self.latency_ms);
        object["store"] = self.store.word().into();
        object["queue"] = self.queue.word().into();
        object["ok"] = self.holds().into();
        object
    }

    /// Returns the results of SQLite in the same run, and the ratios of the other store's medians to them.
    fn beside(&self, rounds: &[Value]) -> Value {
        let beside: Vec<Value> = self.beside.iter().map(DemoReport::object).collect();
        let median = |rounds: &[Value], field: &str| {
            let samples: Samples = rounds.iter().filter_map(|round| round[field].as_f64()).collect();
            samples.quantile(0.5)
        };
        let mut object = json!({});
        for field in SAMPLED {
            let (theirs, ours) = (median(&beside, field), median(rounds, field));
            let ratio =
                ours.zip(theirs).filter(|(_, theirs)| *theirs > 0.0).map(|(ours, theirs)| ours / theirs);
            object[field] = json!({"sqlite": theirs, "ratio": ratio});
        }
        object
    }
}
