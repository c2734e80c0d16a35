//! The results of the faces, as one object and row by row.

use super::rivals::Rival;
use super::{FacePair, FacesOptions, OPERATION};
use serde_json::{Value, json};
use stentor_lab::runner;
use stentor_lab::statistics::{MedianSummary, Samples};

/// Limit of the processor time of a call above the same call through REST, in microseconds.
pub(crate) const ABOVE_REST_MAX_US: f64 = 20.0;

/// Results of the bench.
pub(crate) struct FacesReport {
    options: FacesOptions,
    /// The faces, REST first.
    pub(crate) rows: Vec<FaceRow>,
    record_json_bytes: usize,
    peak_rss_bytes: u64,
    /// The system's load before the first turn and after the last, which shows if the machine was quiet.
    load_average: [f64; 2],
}

/// Results of one face.
pub(crate) struct FaceRow {
    /// Its name.
    pub(crate) face: &'static str,
    /// Calls per second.
    pub(crate) rates: Samples,
    /// Microseconds of the server's processor time for each call.
    pub(crate) cpu: Samples,
    /// Processor time of each call above that of REST in the same round, in microseconds.
    pub(crate) above_rest: Samples,
    /// Results of its rival, or the reason for which it has none.
    pub(crate) rival: Result<RivalRow, String>,
    calls: u64,
    bytes: [usize; 2],
}

/// Results of a rival.
pub(crate) struct RivalRow {
    /// Dialect, software and runtime.
    pub(crate) id: String,
    /// Calls per second.
    pub(crate) rates: Samples,
    /// Microseconds of its processor time for each call.
    pub(crate) cpu: Samples,
    versions: Value,
    calls: u64,
    bytes: [usize; 2],
}

impl FacesReport {
    pub(super) fn of(
        options: &FacesOptions,
        pairs: Vec<FacePair>,
        record: &Value,
        peak_rss_bytes: u64,
        load_before: f64,
    ) -> Self {
        let rest = pairs.first().map(|pair| pair.ours.cpu.clone()).unwrap_or_default();
        let rows = pairs.into_iter().map(|pair| FaceRow::of(pair, &rest)).collect();
        let load_average = [load_before, stentor_stage::child_process::load_average()];
        let record_json_bytes = record.to_string().len();
        Self { options: options.clone(), rows, record_json_bytes, peak_rss_bytes, load_average }
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let FacesOptions { seconds, rounds, connections, warm_up_seconds, commit, .. } = self.options;
        let environment = runner::environment("loopback", "", "", commit);
        json!({
            "operation": OPERATION,
            "record_json_bytes": self.record_json_bytes,
            "faces": self.rows.iter().map(FaceRow::object).collect::<Vec<_>>(),
            "above_rest_max_us": ABOVE_REST_MAX_US,
            "seconds": seconds,
            "rounds": rounds,
            "connections": connections,
            "warm_up_seconds": warm_up_seconds,
            "server_peak_rss_bytes": self.peak_rss_bytes,
            "load_average": {"before": self.load_average[0], "after": self.load_average[1]},
            "env": {
                "cpu": environment.cpu,
                "cores": environment.cores,
                "kernel": environment.kernel,
                "memory_bytes": environment.memory_bytes,
                "tool_version": environment.tool_version,
                "commit": environment.commit,
                "optimized": environment.optimized,
            },
        })
    }
}

impl FaceRow {
    fn of(pair: FacePair, rest: &Samples) -> Self {
        let FacePair { face, ours, rival } = pair;
        let above_rest = ours.cpu.values().iter().zip(rest.values()).map(|(cpu, rest)| cpu - rest).collect();
        let bytes = [ours.request_bytes(), ours.reply.len()];
        let rival = rival.map(RivalRow::of);
        Self { face, rates: ours.rates, cpu: ours.cpu, above_rest, rival, calls: ours.calls, bytes }
    }

    /// Returns true if the cost of a call above REST is within the limit; `None` without turns.
    pub(crate) fn is_near_rest(&self) -> Option<bool> {
        self.above_rest.quantile(0.5).map(|above| above <= ABOVE_REST_MAX_US)
    }

    /// Returns true if a call takes less processor time than the rival's; `None` without a rival.
    pub(crate) fn is_cheaper(&self) -> Option<bool> {
        let rival = self.rival.as_ref().ok()?.cpu.quantile(0.5)?;
        self.cpu.quantile(0.5).map(|ours| ours < rival)
    }

    fn object(&self) -> Value {
        let rival = self.rival.as_ref().ok();
        json!({
            "face": self.face,
            "calls_per_second": self.rates.quantile(0.5),
            "cpu_us_per_call": self.cpu.quantile(0.5),
            "rival": rival.map(|rival| &rival.id),
            "rival_cpu_us_per_call": rival.and_then(|rival| rival.cpu.quantile(0.5)),
            "rival_calls_per_second": rival.and_then(|rival| rival.rates.quantile(0.5)),
            "rival_missing": self.rival.as_ref().err(),
            "above_rest_us": self.above_rest.quantile(0.5),
            "is_near_rest": self.is_near_rest(),
            "is_ahead": self.is_cheaper(),
            "calls": self.calls,
            "request_bytes": self.bytes[0],
            "reply_bytes": self.bytes[1],
            "spread": {
                "calls_per_second": self.rates.summary(),
                "cpu_us_per_call": self.cpu.summary(),
                "above_rest_us": self.above_rest.summary(),
            },
            "samples": {"calls_per_second": self.rates.values(), "cpu_us_per_call": self.cpu.values()},
            "rival_detail": rival.map(RivalRow::object),
        })
    }
}

impl RivalRow {
    fn of(rival: Rival) -> Self {
        let measured = rival.measured;
        let bytes = [measured.request_bytes(), measured.reply.len()];
        let (rates, cpu, calls) = (measured.rates, measured.cpu, measured.calls);
        Self { id: rival.id, rates, cpu, versions: json!(rival.versions), calls, bytes }
    }

    fn object(&self) -> Value {
        let spread = |samples: &Samples| -> Option<MedianSummary> { samples.summary() };
        json!({
            "versions": self.versions,
            "calls": self.calls,
            "request_bytes": self.bytes[0],
            "reply_bytes": self.bytes[1],
            "spread": {"calls_per_second": spread(&self.rates), "cpu_us_per_call": spread(&self.cpu)},
            "samples": {"calls_per_second": self.rates.values(), "cpu_us_per_call": self.cpu.values()},
        })
    }
}
