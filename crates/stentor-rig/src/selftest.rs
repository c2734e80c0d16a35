//! The self-test of the link: its configuration against the measurements of probes on both sides.

mod bytes;

use crate::check::Check;
use crate::lateness::{Lateness, LatenessLimits};
use crate::level::{RigLevel, Wanted};
use crate::link::{Link, Path, Rate};
use crate::namespace::MTU_BYTES;
use crate::probe;
use crate::rig::{Plan, Rig, RigError};
use crate::side::Side;
use std::io;
use std::time::Duration;

/// The maximum number of attempts at a step in which the engine was late.
const ATTEMPTS: u32 = 3;
const MS_NS: u64 = 1_000_000;
const DELAY_BOUND_MS: f64 = 0.5;
const RATE_BOUND_PERCENT: f64 = 6.0;
/// Standard deviations that leave out one sample of a thousand, on both sides together.
const ONE_IN_A_THOUSAND: f64 = 3.29;
/// IP and TCP headers with time stamps.
const TCP_HEADERS_BYTES: f64 = 52.0;

/// One step of the self-test.
#[derive(Clone, Copy, Debug)]
pub struct SelftestStep {
    /// The tested property.
    pub name: &'static str,
    run: fn(u64) -> Result<StepOutcome, RigError>,
}

/// Every step, in the order in which they are made.
pub const STEPS: &[SelftestStep] = &[
    SelftestStep { name: "delay", run: delay },
    SelftestStep { name: "jitter", run: jitter },
    SelftestStep { name: "rate", run: rate },
    SelftestStep { name: "loss", run: loss },
    SelftestStep { name: "bytes", run: bytes::bytes },
    SelftestStep { name: "lateness", run: lateness },
];

/// The outcome of a step.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// The comparisons made.
    pub checks: Vec<Check>,
    /// The engine's lateness during the step.
    pub lateness: Lateness,
    /// The reason why the step is invalid, if it is.
    pub invalid: Option<String>,
}

impl SelftestStep {
    /// Runs the step, and repeats it at most twice if the engine was late.
    pub fn make(&self, seed: u64) -> Result<StepOutcome, RigError> {
        let mut outcome = (self.run)(seed)?;
        for _ in 1..ATTEMPTS {
            if outcome.invalid.is_none() {
                break;
            }
            outcome = (self.run)(seed)?;
        }
        Ok(outcome)
    }
}

/// Raises a rig with real packets, or none.
fn raise(up: Path, down: Path, seed: u64) -> Result<Rig, RigError> {
    let link = Link { name: "selftest".to_owned(), up, down, source: "the self-test".to_owned() };
    Rig::raise(&Plan { level: Wanted::Exactly(RigLevel::Netns), seed, ..Plan::new(link) })
}

fn outcome(rig: &Rig, checks: Vec<Check>) -> StepOutcome {
    let lateness = rig.lateness();
    StepOutcome { checks, lateness, invalid: lateness.complaint(LatenessLimits::default()) }
}

/// Two ways of different length, each measured by one clock that both ends share.
fn delay(seed: u64) -> Result<StepOutcome, RigError> {
    let way = |ms| Path { delay_ns: ms * MS_NS, ..Path::open() };
    let rig = raise(way(20), way(35), seed)?;
    let mut checks = Vec::new();
    for (from, name, wanted_ms) in [(Side::Device, "delay up", 20.0), (Side::Server, "delay down", 35.0)] {
        let delays = probe::one_way(&rig, from, 150, 1, Duration::from_millis(4))?;
        let note = format!("median of {} datagrams, worst {:.2} ms", delays.len(), ms(worst(&delays)));
        checks.push(Check::within(name, ms(median(delays)), wanted_ms, DELAY_BOUND_MS, "ms").with_note(note));
    }
    Ok(outcome(&rig, checks))
}

/// Sends datagrams with enough distance that none has to wait for the one before.
fn jitter(seed: u64) -> Result<StepOutcome, RigError> {
    let up = Path { delay_ns: 5 * MS_NS, jitter_ns: 10 * MS_NS, ..Path::open() };
    let rig = raise(up, Path::open(), seed)?;
    let delays = probe::one_way(&rig, Side::Device, 200, 1, Duration::from_millis(11))?;
    let mean_ms = delays.iter().map(|delay| ms(*delay)).sum::<f64>() / delays.len().max(1) as f64;
    // An even spread over 10 ms has a standard deviation of 10 / sqrt(12).
    let bound_ms = ONE_IN_A_THOUSAND * 10.0 / 12_f64.sqrt() / (delays.len() as f64).sqrt() + DELAY_BOUND_MS;
    let check = Check::within("mean delay with jitter", mean_ms, 10.0, bound_ms, "ms");
    Ok(outcome(&rig, vec![check.with_note("5 ms and 0 to 10 ms; bound of one in a thousand, and 0.5 ms")]))
}

/// Compares a long transfer each way with the rate that TCP can reach in packets of the link.
fn rate(seed: u64) -> Result<StepOutcome, RigError> {
    let path = |megabits: u64| Path {
        delay_ns: 5 * MS_NS,
        rate: Rate::BitsPerSecond(megabits * 1_000_000),
        queue_packets: 200,
        ..Path::open()
    };
    let rig = raise(path(6), path(12), seed)?;
    let mut checks = Vec::new();
    for (from, name, megabits) in [(Side::Device, "rate up", 6.0), (Side::Server, "rate down", 12.0)] {
        let goodput = probe::goodput(&rig, from, (megabits * 1e6 / 8.0 * 1.5) as usize)? / 1e6;
        let packet_bytes = f64::from(MTU_BYTES);
        let theory = megabits * (packet_bytes - TCP_HEADERS_BYTES) / packet_bytes;
        let bound = theory * RATE_BOUND_PERCENT / 100.0;
        let check = Check::within(name, goodput, theory, bound, "Mbit/s");
        checks.push(check.with_note("payload of TCP, 1448 of each 1500 bytes"));
    }
    Ok(outcome(&rig, checks))
}

/// Datagrams of which one in twenty is lost.
fn loss(seed: u64) -> Result<StepOutcome, RigError> {
    const SENT: u64 = 4000;
    const SHARE: f64 = 0.05;
    let rig = raise(Path { loss: SHARE, ..Path::open() }, Path::open(), seed)?;
    let arrived = probe::one_way(&rig, Side::Device, SENT, 20, Duration::from_millis(2))?.len() as u64;
    let deviation = (SENT as f64 * SHARE * (1.0 - SHARE)).sqrt();
    let lost = SENT - arrived;
    let share =
        Check::within("lost", lost as f64, SENT as f64 * SHARE, ONE_IN_A_THOUSAND * deviation, "packets");
    let counted =
        Check::equal("lost, as the engine counted", rig.traffic(Side::Device).lost_packets, lost, "packets");
    let note = format!("of {SENT}; bound of the binomial distribution, one in a thousand");
    Ok(outcome(&rig, vec![share.with_note(note), counted]))
}

/// Checks that an engine that is late on purpose is noticed. If it is not, only this step fails.
fn lateness(seed: u64) -> Result<StepOutcome, RigError> {
    let rig = raise(Path { delay_ns: 5 * MS_NS, ..Path::open() }, Path::open(), seed)?;
    rig.hinder(Duration::from_millis(30));
    probe::one_way(&rig, Side::Device, 40, 1, Duration::from_millis(3))?;
    let lateness = rig.lateness();
    let complaint = lateness.complaint(LatenessLimits::default());
    let check = Check::seen("an engine late by 30 ms makes a run invalid", complaint.is_some());
    let note = complaint.unwrap_or_else(|| format!("not noticed: {lateness}"));
    Ok(StepOutcome { checks: vec![check.with_note(note)], lateness: Lateness::default(), invalid: None })
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn worst(values: &[u64]) -> u64 {
    values.iter().copied().max().unwrap_or(0)
}

fn ms(ns: u64) -> f64 {
    ns as f64 / MS_NS as f64
}

/// The link was still busy long after everything had been sent.
fn unsettled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the link does not come to rest")
}
