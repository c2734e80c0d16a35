//! The testbed of a fork: it starts the processes, links them, and measures their usage.

use super::interruption::Interruption;
use crate::plan::Cell;
use crate::record::{Bytes, QueriedClocks, RecordedLink};
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::SubjectRole;
use crate::subject::{Definition, SubjectError};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

/// The reason for leaving out a cell with a link cut if there is no link.
pub(crate) const NO_LINK_TO_CUT: &str =
    "a link can be cut only where there is one of its own between the halves";

/// The usage of a half.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HalfUsage {
    /// Processor time since its start.
    pub cpu_ns: Option<u64>,
    /// Peak memory since its start.
    pub peak_bytes: Option<u64>,
}

/// Times at which packets with data were seen at an end, in their order, by the clock of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataTimes {
    /// Of packets that arrived.
    pub arrived_ns: Vec<i64>,
    /// Of packets that left.
    pub left_ns: Vec<i64>,
}

/// The traffic between the halves.
#[derive(Debug, Clone, Default)]
pub struct CaptureResult {
    /// The link with its measured behaviour.
    pub link: RecordedLink,
    /// Bytes, if frames are visible; the caller sets `exchanges`.
    pub bytes: Option<Bytes>,
    /// Times of packets with data at the server's end; empty if packets are not visible.
    pub server_end: DataTimes,
    /// The offset from the clock of samples to that of the pcap file, in nanoseconds.
    pub epoch_ns: i64,
}

/// The place where forks run.
pub trait Testbed {
    /// Returns the name of the level: `netns`, `veth` or `loopback`.
    fn level(&self) -> &'static str;

    /// Returns the cgroup version that limits the halves: `v2`, `v1`, or empty.
    fn cgroup(&self) -> &'static str {
        ""
    }

    /// Returns `awake` if idle processors are kept from halting, else empty.
    fn idle(&self) -> &'static str {
        ""
    }

    /// Returns the reason for which a cell cannot be run here; `None` if it can.
    fn objection(&self, cell: &Cell) -> Option<String>;

    /// Prepares a fork of a cell. The seed decides all chance on its links.
    fn prepare(&mut self, cell: &Cell, seed: u64) -> Result<(), SubjectError>;

    /// Starts a half.
    fn start(
        &mut self,
        role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError>;

    /// Returns the address of a half.
    fn address(&self, role: SubjectRole) -> IpAddr;

    /// Returns the address of the gateway as seen by another half.
    fn gateway(&self, _seen_by: SubjectRole) -> IpAddr {
        self.address(SubjectRole::Server)
    }

    /// Returns the usage of a half so far.
    fn usage(&mut self, role: SubjectRole, host: &SubjectProcess) -> HalfUsage;

    /// Applies the cell's CPU limit to both halves; they start and warm up without it.
    fn hold(&mut self, _cell: &Cell) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Cuts the link between the halves, or restores it. Fails if there is no link.
    fn cut(&mut self, _is_cut: bool) -> Result<(), SubjectError> {
        Err(SubjectError::Exchange(NO_LINK_TO_CUT.into()))
    }

    /// Lets both halves query a time server for their clocks, and returns the resulting error in one-way delay; `None` without a link.
    fn queried_clocks(&self) -> Option<QueriedClocks> {
        None
    }

    /// Starts counting traffic.
    fn listen(&mut self);

    /// Returns the traffic since `listen`. Writes a pcap file if a path is given and packets are visible.
    fn captured(&mut self, pcap: Option<&Path>) -> CaptureResult;
}

/// This machine's loopback: no emulation, and only bodies are counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loopback;

impl Testbed for Loopback {
    fn level(&self) -> &'static str {
        "loopback"
    }

    fn objection(&self, cell: &Cell) -> Option<String> {
        if Interruption::of(cell).is_some_and(|interruption| interruption.cuts) {
            return Some(NO_LINK_TO_CUT.into());
        }
        let share = cell.cpu_percent.map(|percent| format!("{percent} % of a processor"));
        let limited = share.or(cell.memory_mib.map(|mib| format!("a limit of {mib} MiB")));
        limited.map(|limit| format!("{limit} needs control groups, and this rig is loopback only"))
    }

    fn prepare(&mut self, _cell: &Cell, _seed: u64) -> Result<(), SubjectError> {
        Ok(())
    }

    fn start(
        &mut self,
        _role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError> {
        SubjectProcess::start(definition, patience)
    }

    fn address(&self, _role: SubjectRole) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }

    fn usage(&mut self, _role: SubjectRole, host: &SubjectProcess) -> HalfUsage {
        process_usage(host.id())
    }

    fn listen(&mut self) {}

    fn captured(&mut self, _pcap: Option<&Path>) -> CaptureResult {
        let link = RecordedLink { profile: "none".into(), ..RecordedLink::default() };
        CaptureResult { link, ..CaptureResult::default() }
    }
}

/// Reads the usage of a process from the system. The processor time covers live threads only.
#[must_use]
pub fn process_usage(id: u32) -> HalfUsage {
    let of_threads = std::fs::read_dir(format!("/proc/{id}/task")).ok().map(|threads| {
        let spent = threads.flatten().filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        spent.sum::<u64>()
    });
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    HalfUsage { cpu_ns: of_threads, peak_bytes: kibibytes.map(|size| size << 10) }
}
