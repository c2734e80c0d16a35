//! A test of one-way delay between two clocks with a known difference: the estimates beside the true values.

mod blocks;

pub use blocks::{Findings, TrialBlock};

use super::Drifting;
use super::party::{PartyRecord, Protocol};
use super::sntp;
use crate::check::Check;
use crate::level::{RigLevel, Wanted};
use crate::link::{Link, Path};
use crate::priority::step_forward;
use crate::probe;
use crate::rig::{Plan, Rig, RigError};
use crate::side::Side;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MS_NS: u64 = 1_000_000;
/// The port of the time server, and the port where the server receives messages; nothing else lives in their namespace.
const TIME_PORT: u16 = 123;
const SERVER_PORT: u16 = 7123;
/// Standard deviations that leave out one sample of a thousand, on both sides together.
const ONE_IN_A_THOUSAND: f64 = 3.29;
/// The error that time stamps in whole milliseconds and waiting processes may add to a mean, in milliseconds.
const COARSENESS_MS: f64 = 0.5;

/// A trial: a link, a protocol, and the differences of the clocks.
#[derive(Clone, Debug)]
pub struct ClockTrial {
    /// The name of the trial in results.
    pub name: &'static str,
    /// The link between the phone and the server; the time server stands beside the server.
    pub link: Link,
    /// The protocol of queries and messages.
    pub protocol: Protocol,
    /// The offset by which the phone's clock is ahead of ours.
    pub phone_offset_ns: i64,
    /// The offset by which the server's clock is ahead of ours at its start.
    pub server_offset_ns: i64,
    /// The rate by which the server's clock is too fast, in parts per billion.
    pub server_fast_ppb: i64,
    /// The seed of the packets' delays.
    pub seed: u64,
}

/// The role of a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// On the device's side.
    Phone,
    /// On the server's side.
    Server,
}

/// The parameters of a party's process.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The role of the party.
    pub role: Role,
    /// The address of the time server.
    pub time_server: SocketAddr,
    /// The address of the server, or the address that it is to bind.
    pub server: SocketAddr,
    /// The protocol of queries and messages.
    pub protocol: Protocol,
    /// The speed of its clock, and the offset that it adds by itself where there are no time namespaces.
    pub clock: Drifting,
}

impl ClockTrial {
    /// Equal ways: 2 ms and up to 10 ms more each way.
    #[must_use]
    pub fn symmetric(protocol: Protocol, seed: u64) -> Self {
        Self::with("equal ways", way(10), way(10), protocol, seed)
    }

    /// A way back that takes up to 30 ms more, as an access link under load.
    #[must_use]
    pub fn asymmetric(protocol: Protocol, seed: u64) -> Self {
        Self::with("a slower way back", way(0), way(30), protocol, seed)
    }

    fn with(name: &'static str, up: Path, down: Path, protocol: Protocol, seed: u64) -> Self {
        let source = "2 ms each way, jitter as named".to_owned();
        Self {
            name,
            link: Link { name: name.to_owned(), up, down, source },
            protocol,
            phone_offset_ns: -52_300_000,
            server_offset_ns: 137_400_000,
            server_fast_ppb: 50_000,
            seed,
        }
    }

    /// The expected error of the paper's mean at the time when it is taken: half of the difference between both ways, in milliseconds.
    #[must_use]
    pub fn papers_bias_ms(&self) -> f64 {
        let jitter = |path: &Path| path.jitter_ns as f64 / MS_NS as f64;
        let mean = |path: &Path| path.delay_ns as f64 / MS_NS as f64 + jitter(path) / 2.0;
        (mean(&self.link.down) - mean(&self.link.up)) / 2.0
    }

    /// The chance deviation of the paper's mean from that error, in milliseconds.
    fn papers_spread_ms(&self) -> f64 {
        let variance = |path: &Path| (path.jitter_ns as f64 / MS_NS as f64).powi(2) / 12.0;
        let deviation = (variance(&self.link.up) + variance(&self.link.down)).sqrt() / 2.0;
        // The first round of each block counts.
        let queries = self.protocol.queries * self.protocol.tests * self.protocol.blocks;
        ONE_IN_A_THOUSAND * deviation / f64::from(queries.max(1)).sqrt() + COARSENESS_MS
    }

    /// Compares the findings with the expected values.
    #[must_use]
    pub fn checks(&self, findings: &Findings) -> Vec<Check> {
        let name = |what: &str| format!("{}: {what}", self.name);
        let worst = findings.worst();
        let shortest = Check::within(
            name("worst error of a one-way delay, by shortest round trips"),
            worst.worst_error_ms,
            0.0,
            worst.bound_ms,
            "ms",
        );
        let mean = Check::within(
            name("mean one-way delay, by shortest round trips, against the true one"),
            findings.mean(|block| block.shortest_ms),
            findings.mean(|block| block.true_ms),
            findings.mean(|block| block.bound_ms),
            "ms",
        );
        let paper = Check::within(
            name(
                "bias of the paper's mean, against half the difference of the ways and the drift since it was taken",
            ),
            findings.mean(|block| block.paper_ms - block.true_ms),
            self.papers_bias_ms() + findings.mean(|block| block.aged_ms),
            self.papers_spread_ms(),
            "ms",
        );
        let drift = Check::within(
            name("drift of the server's clock"),
            findings.drift_ppm,
            self.server_fast_ppb as f64 / 1e3,
            findings.drift_bound_ppm,
            "ppm",
        );
        vec![shortest, mean, paper.with_note("it has no bound of its own; the bound here is chance"), drift]
    }

    /// Runs the trial. `command` gives the process of a party, which writes [`PartyRecord`]s on standard output. `progress` receives the
    /// number of messages sent.
    pub fn make(
        &self,
        command: impl Fn(&Orders) -> Command,
        mut progress: impl FnMut(u64),
    ) -> Result<Findings, RigError> {
        let plan =
            Plan { level: Wanted::Exactly(RigLevel::Netns), seed: self.seed, ..Plan::new(self.link.clone()) };
        let rig = Rig::raise(&plan)?;
        let place = |port| SocketAddr::new(rig.address(Side::Server), port);
        let (time_server, server) = (place(TIME_PORT), place(SERVER_PORT));
        let socket = probe::join(rig.within(Side::Server, move || UdpSocket::bind(time_server))?)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stop_signal = Arc::clone(&stop);
        let answering = rig.within(Side::Server, move || {
            step_forward();
            sntp::serve(&socket, Drifting::default(), &stop_signal)
        })?;
        let orders_for = |role, fast_ppb| Orders {
            role,
            time_server,
            server,
            protocol: self.protocol,
            clock: Drifting { fast_ppb, ..Drifting::default() },
        };
        let started = start(
            &rig,
            Side::Server,
            self.server_offset_ns,
            &orders_for(Role::Server, self.server_fast_ppb),
            &command,
        )?;
        let phone = start(&rig, Side::Device, self.phone_offset_ns, &orders_for(Role::Phone, 0), &command)?;
        let in_namespaces = started.in_namespace && phone.in_namespace;
        let listening = std::thread::spawn(move || hear(started.child, |_| {}));
        let phone = hear(phone.child, &mut progress);
        if phone.is_err() {
            // Taken down with everything on it, the server does not wait for a phone that has gone.
            stop.store(true, Ordering::Relaxed);
            drop(rig);
            return Ok(phone.map(|_| Findings::default())?);
        }
        let server = probe::join(listening);
        stop.store(true, Ordering::Relaxed);
        probe::join(answering)?;
        Ok(blocks::work_out(self, &phone?, &server?, in_namespaces, rig.lateness())?)
    }
}

/// A party that runs.
struct RunningParty {
    child: Child,
    /// True if a time namespace sets its clock ahead; otherwise the party adds the offset itself.
    in_namespace: bool,
}

fn start(
    rig: &Rig,
    side: Side,
    offset_ns: i64,
    party_orders: &Orders,
    command: &impl Fn(&Orders) -> Command,
) -> io::Result<RunningParty> {
    let prepared = |party_orders: &Orders| {
        let mut command = command(party_orders);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    };
    if let Ok(child) = rig.spawn_with_offset(side, offset_ns, prepared(party_orders)) {
        return Ok(RunningParty { child, in_namespace: true });
    }
    let clock = Drifting { offset_ns, ..party_orders.clock };
    let child = rig.spawn(side, prepared(&Orders { clock, ..party_orders.clone() }))?;
    Ok(RunningParty { child, in_namespace: false })
}

/// Reads all that a party writes down, to its end.
fn hear(mut child: Child, mut progress: impl FnMut(u64)) -> io::Result<Vec<PartyRecord>> {
    /// A full run writes a few megabytes.
    const OUTPUT_MAX_BYTES: u64 = 64 << 20;
    let mut records = Vec::new();
    let mut sent = 0;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out.take(OUTPUT_MAX_BYTES)).lines() {
            let record = PartyRecord::read(&line?)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a party wrote down no record"))?;
            sent += u64::from(matches!(record, PartyRecord::Sent { .. }));
            progress(sent);
            records.push(record);
        }
    }
    let status = child.wait()?;
    if status.success() {
        Ok(records)
    } else {
        Err(io::Error::other(format!("a party has failed: {status}")))
    }
}

fn way(jitter_ms: u64) -> Path {
    Path { delay_ns: 2 * MS_NS, jitter_ns: jitter_ms * MS_NS, ..Path::open() }
}

#[cfg(test)]
mod tests;
