//! The bytes of one capture, counted by us, by the kernel, and by tshark.

use super::{StepOutcome, outcome, raise, unsettled};
use crate::capture::Capture;
use crate::check::Check;
use crate::link::{Path, Rate};
use crate::probe;
use crate::rig::{Rig, RigError};
use crate::side::Side;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

const EXCHANGES: usize = 5;
const PAYLOAD_BYTES: usize = 4055;
const QUIET: Duration = Duration::from_millis(80);
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks every byte of HTTP exchanges, each on a connection of its own.
pub(super) fn bytes(seed: u64) -> Result<StepOutcome, RigError> {
    let path = Path { delay_ns: 2_000_000, rate: Rate::BitsPerSecond(20_000_000), ..Path::open() };
    let rig = raise(path.clone(), path, seed)?;
    rig.begin_capture();
    probe::exchanges(&rig, EXCHANGES, PAYLOAD_BYTES)?;
    if !rig.settle(QUIET, PATIENCE) {
        return Err(unsettled().into());
    }
    let capture = rig.end_capture();
    let mut checks = kernel(&rig, &capture)?;
    checks.extend(anatomy(&capture));
    checks.extend(tshark(&capture)?);
    // A late packet has as many bytes as a punctual one.
    Ok(StepOutcome { invalid: None, ..outcome(&rig, checks) })
}

/// Against the counters of both interfaces.
fn kernel(rig: &Rig, capture: &Capture) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for side in Side::BOTH {
        let counters = rig.counters(side)?;
        let name = |way: &str| format!("bytes {way} the {}, against its interface", side.word());
        checks.push(Check::equal(name("from"), sum(capture, side, side), counters.sent_bytes, "bytes"));
        checks.push(Check::equal(
            name("to"),
            sum(capture, side, side.other()),
            counters.received_bytes,
            "bytes",
        ));
    }
    Ok(checks)
}

/// Compares the capture's anatomy with the known content of the exchanges.
fn anatomy(capture: &Capture) -> Vec<Check> {
    let anatomy = capture.anatomy(Side::Device);
    let payload = anatomy.up.payload_bytes + anatomy.down.payload_bytes;
    let sent = (2 * EXCHANGES * PAYLOAD_BYTES) as u64;
    let purposes = anatomy.up.wire_bytes() + anatomy.down.wire_bytes();
    let captured: u64 = Side::BOTH.map(|from| sum(capture, Side::Device, from)).iter().sum();
    vec![
        Check::equal("exchanges found", anatomy.exchanges.len() as u64, EXCHANGES as u64, "exchanges"),
        Check::equal("payload found in the packets", payload, sent, "bytes"),
        Check::equal("bytes by purpose, together", purposes, captured, "bytes"),
    ]
}

/// Compares the counts with those of tshark, if it is installed.
fn tshark(capture: &Capture) -> io::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for end in Side::BOTH {
        let Some(theirs) = read_by_tshark(capture, end)? else { return Ok(Vec::new()) };
        let anatomy = capture.anatomy(end);
        let frames = Side::BOTH.map(|from| sum(capture, end, from)).iter().sum();
        let carried = [anatomy.up, anatomy.down]
            .map(|part| part.framing_bytes + part.tls_bytes + part.payload_bytes + part.repeated_bytes);
        let name = |what: &str| format!("{what} at the {}, against tshark", end.word());
        checks.push(Check::equal(
            name("packets"),
            anatomy.up.packets + anatomy.down.packets,
            theirs.packets,
            "packets",
        ));
        checks.push(Check::equal(name("bytes"), frames, theirs.bytes, "bytes"));
        checks.push(Check::equal(name("bytes in TCP"), carried.iter().sum(), theirs.carried_bytes, "bytes"));
    }
    Ok(checks)
}

/// Counts by tshark.
#[derive(Clone, Copy, Debug, Default)]
struct TsharkCounts {
    packets: u64,
    bytes: u64,
    carried_bytes: u64,
}

fn read_by_tshark(capture: &Capture, end: Side) -> io::Result<Option<TsharkCounts>> {
    let name = format!("stentor-rig-{}-{}.pcap", std::process::id(), end.word());
    let file = std::env::temp_dir().join(name);
    capture.write_pcap(end, &file)?;
    let fields = ["-T", "fields", "-e", "ip.len", "-e", "tcp.len"];
    let output = Command::new("tshark").arg("-r").arg(&file).args(fields).stdin(Stdio::null()).output();
    std::fs::remove_file(&file)?;
    match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(output) if !output.status.success() => {
            Err(io::Error::other(format!("tshark: {}", String::from_utf8_lossy(&output.stderr).trim())))
        }
        Ok(output) => Ok(Some(add_up(&String::from_utf8_lossy(&output.stdout)))),
    }
}

fn add_up(table: &str) -> TsharkCounts {
    table.lines().fold(TsharkCounts::default(), |sum, line| {
        let mut fields = line.split('\t').map(|field| field.trim().parse::<u64>().unwrap_or(0));
        TsharkCounts {
            packets: sum.packets + 1,
            bytes: sum.bytes + fields.next().unwrap_or(0),
            carried_bytes: sum.carried_bytes + fields.next().unwrap_or(0),
        }
    })
}

/// The bytes that one end saw of one sender.
fn sum(capture: &Capture, at: Side, from: Side) -> u64 {
    let packets = capture.packets.iter().filter(|packet| packet.at == at && packet.from == from);
    packets.map(|packet| packet.bytes.len() as u64).sum()
}
