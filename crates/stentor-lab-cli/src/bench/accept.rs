//! The rate of single messages that are on disk and answered with 202.

use super::killed_singles::{self, KilledReport};
use super::single_rivals::{self, RivalRow};
use super::singles::{self, LoadEnd, MessageLoad, Pace, RequestForm, SentMessages};
use super::sink_log::{self, DeliveryCheck};
use super::store_ratio::beside_file;
use super::sustained::{self, SustainedReport};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::engines::{StageQueue, StageStore};
use stentor_stage::postgres::bytes_below;
use stentor_stage::reporter::Reporter;
use stentor_stage::server::data_dir;
use stentor_stage::stage::{Stage, StageOptions};

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct AcceptOptions {
    /// Number of messages, each to a token of its own.
    pub(crate) messages: u64,
    /// Number of concurrent callers.
    pub(crate) callers: u64,
    /// Duration of the sustained load; zero leaves it out.
    pub(crate) sustained: Duration,
    /// Kills of the server under the same load, after the sustained one.
    pub(crate) kills: u32,
    /// Store and queue of the servers; unless both are files, these are measured first.
    pub(crate) store: StageStore,
    pub(crate) queue: StageQueue,
    /// Number of servers, to which the callers are dealt out.
    pub(crate) nodes: u32,
    /// Measures other programs under the sustained load, after the server.
    pub(crate) with_rivals: bool,
}

/// Results of the bench.
pub(crate) struct AcceptReport {
    options: AcceptOptions,
    sent: SentMessages,
    kept: DeliveryCheck,
    /// Time from the last 202 to the push service's answer to the last message.
    behind: Duration,
    /// Time of the same number of requests without an effect.
    idle: Duration,
    /// Processor time of the server for the requests without an effect, and for the messages.
    cpu_seconds: [f64; 2],
    /// Processor time of the database for the messages, if there is one.
    database_cpu_seconds: Option<f64>,
    peak_rss_bytes: u64,
    limits: Value,
    sustained: Option<SustainedReport>,
    /// Growth of the store after a clean stop, by the number of messages of all loads.
    growth: Option<(StoredSize, u64)>,
    rivals: Vec<RivalRow>,
    killed: Option<KilledReport>,
    /// The report on SQLite, if another store was measured.
    beside: Option<Box<AcceptReport>>,
}

/// Most calls that fail while the server is killed.
const FAILED_MAX_COUNT: u64 = 200_000;

/// Most tokens that the sinks note.
const SINK_MAX_TOKENS: u64 = 4_200_000;

/// Fields in the comparison of two stores.
const COMPARED: [&str; 7] = [
    "accepted_per_second",
    "sent_per_second",
    "wall_seconds",
    "server_cpu_microseconds_per_message",
    "server_peak_rss_bytes",
    "sustained_per_second",
    "server_cpu_us_in_all",
];

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: AcceptOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<AcceptReport> {
    let (store, queue) = (StageStore::File, StageQueue::File);
    let on_file = AcceptOptions { store, queue, nodes: 1, with_rivals: false, ..options };
    let is_on_file = (options.store, &options.queue) == (on_file.store, &on_file.queue);
    let beside = if is_on_file { None } else { Some(Box::new(run_once(on_file, reporter).await?)) };
    Ok(AcceptReport { beside, ..run_once(options, reporter).await? })
}

async fn run_once(options: AcceptOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<AcceptReport> {
    let AcceptOptions { messages, callers, sustained, kills, store, with_rivals, nodes, .. } = options;
    let queue = options.queue.clone();
    let on_stage = StageOptions { store, queue, nodes, ..StageOptions::with_sinks(SINK_MAX_TOKENS) };
    let mut stage = Stage::build(&on_stage, reporter).await?;
    let stored_before = StoredSize::of(&stage)?;
    // Opens connections and warms caches before the clock starts.
    let load = |first, end| {
        let (pace, form) = (Pace::AtOnce, RequestForm::Stentor);
        MessageLoad { first, end, callers, pace, form, outlives_kills: false }
    };
    let warm = load(messages, LoadEnd::Count(callers * 4));
    let clients = stage.clients()?;
    let warm = singles::send(&clients, warm).await?;
    let start = stage.usage().cpu_seconds;
    let idle = singles::ask_nothing(&clients, messages, callers).await?;
    let before = stage.usage().cpu_seconds;
    let engines_before = stage.engines.used();
    let sent = singles::send(&clients, load(0, LoadEnd::Count(messages))).await?;
    let usage = stage.usage();
    let database_cpu_seconds = stage.engines.used().since(engines_before).postgres;
    let answered = Instant::now();
    let check = sink_log::kept(stage.directory(), &[&warm, &sent]).await?;
    let behind = answered.elapsed();
    let limits = stage.server.limits()?;
    let (mut sustained_report, mut growth, mut rivals, mut killed) = (None, None, Vec::new(), None);
    if !sustained.is_zero() {
        let first = messages + callers * 4;
        let load = load(first, LoadEnd::After(sustained));
        let report = sustained::measure(&mut stage, load, &**reporter).await?;
        // A clean stop moves everything into the files.
        stage.stop();
        growth = Some((StoredSize::of(&stage)?.since(stored_before), report.next()));
        let mut load = MessageLoad { first: report.next(), ..load };
        if kills > 0 {
            stage.server.start_again().await?;
            let done = killed_singles::measure(&mut stage, load, kills, &**reporter).await?;
            // Numbers of failed calls are not used again either: no load makes more calls than this.
            load.first += done.accepted() as u64 + FAILED_MAX_COUNT;
            killed = Some(done);
            stage.server.stop();
        }
        if with_rivals {
            rivals = single_rivals::measure_all(&stage, load, &**reporter).await;
        }
        sustained_report = Some(report);
    }
    let cpu_seconds = [before - start, usage.cpu_seconds - before];
    let peak_rss_bytes = usage.peak_rss_bytes;
    Ok(AcceptReport {
        options,
        sent,
        kept: check,
        behind,
        idle,
        cpu_seconds,
        database_cpu_seconds,
        peak_rss_bytes,
        limits,
        sustained: sustained_report,
        growth,
        rivals,
        killed,
        beside: None,
    })
}

/// The size of a store.
#[derive(Clone, Copy)]
struct StoredSize {
    /// Rows of all tables.
    rows: u64,
    /// Bytes of a database's tables and indexes, or of the server's files.
    bytes: u64,
}

impl StoredSize {
    fn of(stage: &Stage) -> anyhow::Result<Self> {
        if let (Some(rows), Some(bytes)) = (stage.engines.database_rows()?, stage.engines.database_bytes()?) {
            return Ok(Self { rows, bytes });
        }
        let folder = data_dir(stage.directory());
        Ok(Self { rows: stentor_node::count_rows(&folder)?, bytes: bytes_below(&folder)? })
    }

    const fn since(self, before: Self) -> Self {
        let bytes = self.bytes.saturating_sub(before.bytes);
        Self { rows: self.rows.saturating_sub(before.rows), bytes }
    }
}

impl AcceptReport {
    /// Returns true if the push service got every message.
    pub(crate) fn holds(&self) -> bool {
        let holds = self.sustained.as_ref().is_none_or(SustainedReport::holds);
        let holds = holds && self.killed.as_ref().is_none_or(KilledReport::holds);
        self.kept.lost == 0 && holds && self.beside.as_ref().is_none_or(|beside| beside.holds())
    }

    /// Rate of messages answered with 202, per second.
    pub(crate) fn accepted_per_second(&self) -> f64 {
        self.options.messages as f64 / self.sent.wall.as_secs_f64()
    }

    /// Rate of messages answered by the push service, per second from the first request on.
    fn sent_per_second(&self) -> f64 {
        self.options.messages as f64 / (self.sent.wall + self.behind).as_secs_f64()
    }

    /// The quantile `part` of the times to the 202, in milliseconds.
    pub(crate) fn latency_ms(&self, part: f64) -> Option<f64> {
        self.sent.latency_ms.quantile(part)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let AcceptOptions { messages, callers, nodes, .. } = self.options;
        let [idle_cpu_seconds, cpu_seconds] = self.cpu_seconds;
        let at = |part| self.latency_ms(part);
        let mut object = json!({
            "messages": messages,
            "callers": callers,
            "store": self.options.store.word(),
            "queue": self.options.queue.word(),
            "nodes": nodes,
            "ok": self.holds(),
            "accepted": self.sent.messages.len(),
            "lost": self.kept.lost,
            "duplicates": self.kept.duplicates,
            "wall_seconds": self.sent.wall.as_secs_f64(),
            "sent_behind_seconds": self.behind.as_secs_f64(),
            "server_cpu_seconds": cpu_seconds,
            "accepted_per_second": self.accepted_per_second(),
            "sent_per_second": self.sent_per_second(),
            "latency_ms": {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)},
            "server_cpu_microseconds_per_message": cpu_seconds * 1e6 / messages as f64,
            "database_cpu_microseconds_per_message":
                self.database_cpu_seconds.map(|seconds| seconds * 1e6 / messages as f64),
            "floor": {
                "requests_per_second": messages as f64 / self.idle.as_secs_f64(),
                "server_cpu_microseconds_per_request": idle_cpu_seconds * 1e6 / messages as f64,
            },
            "server_peak_rss_bytes": self.peak_rss_bytes,
            "limits": self.limits,
        });
        if let Some(sustained) = &self.sustained {
            sustained.add_to(&mut object);
            if let Some((StoredSize { rows, bytes }, messages)) = self.growth {
                object["rows_per_message"] = json!(rows as f64 / messages as f64);
                object["bytes_per_message"] = json!(bytes as f64 / messages as f64);
            }
            object["rivals"] = self.rivals.iter().map(RivalRow::object).collect();
        }
        if let Some(killed) = &self.killed {
            object["killed"] = killed.object();
        }
        if let Some(beside) = &self.beside {
            object["beside_sqlite"] = beside_file(&COMPARED, &beside.object(), &object);
        }
        object
    }
}
