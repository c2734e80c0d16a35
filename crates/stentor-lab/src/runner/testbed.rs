//! The testbed that a fork runs on: where its processes start, what lies between them, and what they use.

use super::interruption::Interruption;
use crate::plan::Cell;
use crate::record::{Bytes, QueriedClocks, RecordedLink};
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::SubjectRole;
use crate::subject::{Definition, SubjectError};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

/// Why a cell whose link is cut cannot be run without one.
pub(crate) const NO_LINK_TO_CUT: &str =
    "a link can be cut only where there is one of its own between the halves";

/// What a half has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HalfUsage {
    /// Processor time so far.
    pub cpu_ns: Option<u64>,
    /// Most memory so far.
    pub peak_bytes: Option<u64>,
}

/// What passed between the halves.
#[derive(Debug, Clone, Default)]
pub struct CaptureResult {
    /// The link and how it did.
    pub link: RecordedLink,
    /// Bytes, where frames are seen; for `exchanges` the caller fills in its own count.
    pub bytes: Option<Bytes>,
}

/// Where forks run.
pub trait Testbed {
    /// Names the level: `netns`, `veth` or `loopback`.
    fn level(&self) -> &'static str;

    /// Names how halves are limited: `v2`, `v1` or nothing.
    fn cgroup(&self) -> &'static str {
        ""
    }

    /// Returns whether idle processors are kept from halting: `awake`, or nothing.
    fn idle(&self) -> &'static str {
        ""
    }

    /// Returns why a cell cannot be run here.
    fn objection(&self, cell: &Cell) -> Option<String>;

    /// Gets ready for a fork of a cell.
    fn prepare(&mut self, cell: &Cell) -> Result<(), SubjectError>;

    /// Starts a half.
    fn start(
        &mut self,
        role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError>;

    /// Returns the address of a half.
    fn address(&self, role: SubjectRole) -> IpAddr;

    /// Returns the address of the gateway as another half sees it.
    fn gateway(&self, _seen_by: SubjectRole) -> IpAddr {
        self.address(SubjectRole::Server)
    }

    /// Returns what a half has used so far.
    fn usage(&mut self, role: SubjectRole, host: &SubjectProcess) -> HalfUsage;

    /// Holds both halves to the cell's share of a processor from now on; until then they start without it.
    fn hold(&mut self, _cell: &Cell) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Lets both halves use the whole processor again, until they are held once more.
    fn release(&mut self, _cell: &Cell) -> Result<(), SubjectError> {
        Ok(())
    }

    /// Cuts what lies between the halves, or joins it again; fails where nothing does.
    fn cut(&mut self, _is_cut: bool) -> Result<(), SubjectError> {
        Err(SubjectError::Exchange(NO_LINK_TO_CUT.into()))
    }

    /// Lets both halves ask a time server for their clocks, and returns what that adds to a one-way delay; `None` where there is no
    /// link that could add anything.
    fn queried_clocks(&self) -> Option<QueriedClocks> {
        None
    }

    /// Begins to count what passes.
    fn listen(&mut self);

    /// Returns what has passed since, and keeps it as a file of packets where one is named and packets are seen.
    fn captured(&mut self, pcap: Option<&Path>) -> CaptureResult;
}

/// This machine's loopback: nothing is emulated, and only bodies are counted.
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

    fn prepare(&mut self, _cell: &Cell) -> Result<(), SubjectError> {
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
        CaptureResult {
            link: RecordedLink { profile: "none".into(), ..RecordedLink::default() },
            bytes: None,
        }
    }
}

/// Reads what a process has used from the system; threads that ended are in by the clock tick only.
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
