//! The metrics of a fork: one number each, with its unit.

use crate::record::{Bytes, ForkRecord, PhaseLatency, phase};
use crate::statistics::reaches;

/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;
/// Bytes of a mebibyte.
const MIB: f64 = 1_048_576.0;

/// A metric of a fork.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// A short name for data files.
    pub id: &'static str,
    /// The display name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Reads the metric; `None` if it was not measured.
    pub of: fn(&ForkRecord) -> Option<f64>,
}

/// Every metric; the first is the principal one.
pub const METRICS: &[Metric] = &[
    metric("rtt_p50", "round trip, median", "ms", median),
    metric("rtt_steady_p50", "round trip once warm, median", "ms", |r| phase_ms(r, phase::RTT_STEADY)),
    metric("rtt_mean", "round trip, mean", "ms", mean),
    metric("rtt_p95", "round trip, 95 of 100", "ms", |r| tail(r, 0.95, |l| l.p95)),
    metric("rtt_p99", "round trip, 99 of 100", "ms", |r| tail(r, 0.99, |l| l.p99)),
    metric("owd_p50", "one way there, median", "ms", |r| phase_ms(r, phase::OWD)),
    metric("first_call", "first call", "ms", |r| Some(r.first_call_ns? as f64 / MS)),
    metric("server_start", "start of the server", "ms", |r| Some(r.start_ns.server? as f64 / MS)),
    metric("bytes_wire", "bytes on the wire, both ways", "B", wire),
    metric("client_cpu", "processor time of the client, each exchange", "ms", |r| each(r, r.cpu.client)),
    metric("server_cpu", "processor time of the server, each exchange", "ms", |r| each(r, r.cpu.server)),
    metric("client_memory", "most memory of the client", "MiB", |r| Some(r.mem.client? as f64 / MIB)),
    metric("server_memory", "most memory of the server", "MiB", |r| Some(r.mem.server? as f64 / MIB)),
];

const fn metric(
    id: &'static str,
    name: &'static str,
    unit: &'static str,
    of: fn(&ForkRecord) -> Option<f64>,
) -> Metric {
    Metric { id, name, unit, of }
}

impl Metric {
    /// Returns the metric with an id.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.id == id)
    }
}

/// Returns a phase's median, in milliseconds.
pub(super) fn phase_ms(record: &ForkRecord, phase: &str) -> Option<f64> {
    Some(record.latency.get(phase)?.p50 as f64 / MS)
}

/// Returns the bytes and the number of whole exchanges, if every frame was captured.
pub(super) fn captured(record: &ForkRecord) -> Option<(&Bytes, f64)> {
    let bytes = record.bytes.as_ref()?;
    let is_seen = bytes.exchanges > 0 && bytes.up.ip + bytes.down.ip > 0;
    is_seen.then_some((bytes, bytes.exchanges as f64 / pages(record)))
}

/// Returns the processor load of the client during the exchanges, in percent.
pub(super) fn client_load_percent(record: &ForkRecord) -> Option<f64> {
    let times = record.whole()?;
    let waited = times.mean * times.n as f64;
    (waited > 0.0).then_some(100.0 * record.cpu.client? as f64 / waited)
}

/// Counts the exchanges in one whole, to match the times of [`ForkRecord::whole`]: the pages of a synchronisation, else one.
pub(super) fn pages(record: &ForkRecord) -> f64 {
    let interrupted = record.interruption.as_ref().map(|found| found.pages as f64);
    let of_times = || {
        let (each, all) = (record.latency.get(phase::RTT)?, record.latency.get(phase::SYNC)?);
        (all.n > 0).then_some((each.n as f64 / all.n as f64).round())
    };
    interrupted.or_else(of_times).unwrap_or(1.0).max(1.0)
}

/// Counts the measured whole exchanges.
pub(super) fn wholes(record: &ForkRecord) -> Option<f64> {
    (record.counts.sent > 0).then_some(record.counts.sent as f64 / pages(record))
}

pub(super) fn median(record: &ForkRecord) -> Option<f64> {
    at(record, |times| times.p50)
}

fn mean(record: &ForkRecord) -> Option<f64> {
    Some(record.whole()?.mean / MS)
}

fn at(record: &ForkRecord, quantile: fn(&PhaseLatency) -> u64) -> Option<f64> {
    Some(quantile(record.whole()?) as f64 / MS)
}

/// Returns a quantile of a fork's exchanges, if enough of them are beyond it.
fn tail(record: &ForkRecord, part: f64, quantile: fn(&PhaseLatency) -> u64) -> Option<f64> {
    if reaches(record.whole()?.n, part) { at(record, quantile) } else { None }
}

fn wire(record: &ForkRecord) -> Option<f64> {
    let (bytes, exchanges) = captured(record)?;
    Some((bytes.up.ip + bytes.down.ip) as f64 / exchanges)
}

/// Returns the bytes of an exchange's packets that carry application data.
pub(super) fn data_bytes(record: &ForkRecord) -> Option<f64> {
    let (bytes, exchanges) = captured(record)?;
    Some((bytes.up.data_ip? + bytes.down.data_ip?) as f64 / exchanges)
}

/// Divides processor time by the number of measured exchanges.
fn each(record: &ForkRecord, cpu_ns: Option<u64>) -> Option<f64> {
    Some(cpu_ns? as f64 / MS / wholes(record)?)
}
