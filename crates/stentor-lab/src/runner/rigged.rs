//! The rig as testbed: two namespaces with a link between them if the machine allows it, else a lower level.

use super::interruption::Interruption;
use super::testbed::{CaptureResult, DataTimes, HalfUsage, NO_LINK_TO_CUT, Testbed};
use crate::plan::{Cell, CpuOf};
use crate::record::{Bytes, DirectionBytes, Quantiles, QueriedClocks, RecordedLink as LinkRecord};
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::SubjectRole;
use crate::subject::{Definition, SubjectError};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path as FilePath;
use std::time::Duration;
use stentor_rig::anatomy::PurposeBytes;
use stentor_rig::capture::Capture;
use stentor_rig::cgroup::Cgroup;
use stentor_rig::clock::inquiry::{self, ClockErrors};
use stentor_rig::link::{Path, Rate};
use stentor_rig::{CgroupLimits, Link, Plan, Rig, RigError, RigLevel, Side, Wakeful, Wanted};

/// The name for no link: both halves on loopback.
pub const NO_LINK: &str = "none";
/// Silence after which an exchange counts as over. `SETTLE_MAX` limits the wait for it.
const QUIET: Duration = Duration::from_millis(5);
const SETTLE_MAX: Duration = Duration::from_millis(300);
/// Captures larger than this are not kept as a file.
const PCAP_MAX_BYTES: u64 = 8 << 20;

/// A testbed with a fresh rig for each fork.
pub struct Rigged {
    plan: Plan,
    /// The study's link between a gateway and its server, in cells with a gateway; below that of the present cell.
    usual_behind: Link,
    link_behind: Link,
    // Declared, and so dropped, before the rig that it is attached to.
    behind: Option<Rig>,
    rig: Option<Rig>,
    level: RigLevel,
    notes: Vec<String>,
    limits: Result<(), String>,
    awake: Option<Wakeful>,
}

impl Rigged {
    /// Determines the capabilities of this machine; `None` if there is no such link. `link_behind` is the link between a gateway and its
    /// server.
    pub fn try_out(link: &str, link_behind: &str) -> Result<Option<Self>, RigError> {
        let profile = |link: &str| if link == NO_LINK { Some(Link::open()) } else { Link::profile(link) };
        let Some((profile, link_behind)) = profile(link).zip(profile(link_behind)) else { return Ok(None) };
        let mut plan = Plan::new(profile);
        if link == NO_LINK {
            plan.level = Wanted::Exactly(RigLevel::Loopback);
        }
        let rig = Rig::raise(&plan)?;
        let limits = CgroupLimits { cpu_percent: Some(50), memory_bytes: None };
        let limits = Cgroup::make(limits).map(drop).map_err(|error| error.to_string());
        let (level, mut notes) = (rig.level(), rig.notes().to_vec());
        let awake = Wakeful::begin();
        if let Err(error) = &awake {
            notes.push(format!("processors may halt when idle and wake late: /dev/cpu_dma_latency: {error}"));
        }
        let awake = awake.ok();
        let usual_behind = link_behind.clone();
        Ok(Some(Self {
            plan,
            usual_behind,
            link_behind,
            behind: None,
            rig: None,
            level,
            notes,
            limits,
            awake,
        }))
    }

    /// Returns the limitations of this machine, in a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the level.
    #[must_use]
    pub const fn level_of(&self) -> RigLevel {
        self.level
    }

    /// Sets the CPU limit of a cell; `None` removes it. Changes nothing in a cell without a limit.
    fn share(&self, cell: &Cell, percent: Option<u32>) -> Result<(), SubjectError> {
        let (Some(rig), Some(_)) = (&self.rig, cell.cpu_percent) else { return Ok(()) };
        let refused = |error| SubjectError::Exchange(format!("the share of a processor: {error}"));
        let mut sides = Side::BOTH.into_iter().filter(|side| is_limited(cell, *side));
        sides.try_for_each(|side| rig.hold_cpu(side, percent).map_err(refused))
    }

    /// Returns the link between the gateway of a cell and its server.
    fn behind_of(&self, cell: &Cell) -> Link {
        let own = cell.gateway_link.as_deref().and_then(Link::profile);
        own.unwrap_or_else(|| self.usual_behind.clone())
    }

    fn link(&self) -> LinkRecord {
        self.recorded(&self.plan.link, self.rig.as_ref())
    }

    /// Returns the record of a link, with its measured behaviour if a rig is given.
    fn recorded(&self, link: &Link, rig: Option<&Rig>) -> LinkRecord {
        if !self.level.shapes() {
            return LinkRecord { profile: NO_LINK.to_owned(), ..LinkRecord::default() };
        }
        let mut params = BTreeMap::new();
        for (way, path) in [("up", &link.up), ("down", &link.down)] {
            params.extend(link_params(path).map(|(name, value)| (format!("{way}_{name}"), value)));
        }
        let mut recorded = LinkRecord { profile: link.name.clone(), params, ..LinkRecord::default() };
        let Some(rig) = rig else { return recorded };
        let late = rig.lateness();
        let us = |ns: u64| ns as f64 / 1000.0;
        recorded.lateness_us =
            Some(Quantiles { p50: us(late.p50_ns), p99: us(late.p99_ns), max: us(late.max_ns) });
        recorded.frames = late.packets;
        recorded.drops = Side::BOTH.iter().map(|side| rig.traffic(*side).overflowed_packets).sum();
        recorded
    }

    /// Returns the rig of a half, and its side.
    fn place(&self, role: SubjectRole) -> Option<(&Rig, Side)> {
        match (role, &self.behind) {
            (SubjectRole::Server, Some(behind)) => Some((behind, Side::Server)),
            _ => self.rig.as_ref().map(|rig| (rig, side(role))),
        }
    }
}

impl Testbed for Rigged {
    fn level(&self) -> &'static str {
        self.level.word()
    }

    fn cgroup(&self) -> &'static str {
        match &self.limits {
            Err(_) => "",
            Ok(()) => stentor_rig::cgroup::version(),
        }
    }

    fn idle(&self) -> &'static str {
        self.awake.as_ref().map_or("", |_| "awake")
    }

    fn objection(&self, cell: &Cell) -> Option<String> {
        if !self.level.shapes() && Interruption::of(cell).is_some_and(|interruption| interruption.cuts) {
            return Some(NO_LINK_TO_CUT.into());
        }
        if let (Some(percent), Err(why)) = (cell.cpu_percent, &self.limits) {
            return Some(format!("{percent} % of a processor cannot be set: {why}"));
        }
        let why = memory(cell).and_then(|limits| Cgroup::make(limits).err())?;
        Some(format!("{} MiB of memory cannot be set: {why}", cell.memory_mib.unwrap_or_default()))
    }

    fn prepare(&mut self, cell: &Cell, seed: u64) -> Result<(), SubjectError> {
        let limits = |side| CgroupLimits {
            cpu_percent: cell.cpu_percent.filter(|_| is_limited(cell, side)),
            ..memory(cell).unwrap_or_default()
        };
        // The previous rig is dropped first, because both have the same addresses.
        self.behind = None;
        self.rig = None;
        let plan =
            Plan { seed, device: limits(Side::Device), server: limits(Side::Server), ..self.plan.clone() };
        let plan = Plan { level: Wanted::Exactly(self.level), ..plan };
        let refused = |error: RigError| SubjectError::Exchange(format!("the rig: {error}"));
        let rig = Rig::raise(&plan).map_err(refused)?;
        if cell.gateway.is_some() {
            self.link_behind = self.behind_of(cell);
            let plan = Plan { link: self.link_behind.clone(), seed: seed.wrapping_add(1), ..plan };
            self.behind = Some(Rig::raise_behind(&plan, &rig).map_err(refused)?);
        }
        self.rig = Some(rig);
        self.share(cell, None)
    }

    fn hold(&mut self, cell: &Cell) -> Result<(), SubjectError> {
        self.share(cell, cell.cpu_percent)
    }

    fn start(
        &mut self,
        role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError> {
        let Some((rig, side)) = self.place(role) else { return SubjectProcess::start(definition, patience) };
        let command = SubjectProcess::command(definition)?;
        let program = definition.run.first().cloned().unwrap_or_default();
        let child = rig.spawn(side, command).map_err(SubjectError::io(format!("starting {program}")))?;
        SubjectProcess::adopt(child, patience)
    }

    fn address(&self, role: SubjectRole) -> IpAddr {
        self.place(role).map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |(rig, side)| rig.address(side))
    }

    fn gateway(&self, seen_by: SubjectRole) -> IpAddr {
        match (seen_by, &self.behind, &self.rig) {
            (_, _, None) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            (SubjectRole::Server, Some(behind), _) => behind.address(Side::Device),
            // The gateway has an address on each of its links.
            (SubjectRole::Gateway, Some(_), _) if self.level != RigLevel::Loopback => {
                IpAddr::V4(Ipv4Addr::UNSPECIFIED)
            }
            (_, _, Some(rig)) => rig.address(Side::Server),
        }
    }

    fn usage(&mut self, role: SubjectRole, _host: &SubjectProcess) -> HalfUsage {
        let usage = self.place(role).and_then(|(rig, side)| rig.usage(side).ok());
        usage.map_or_else(HalfUsage::default, |usage| HalfUsage {
            cpu_ns: Some(usage.cpu_ns),
            peak_bytes: Some(usage.memory_peak_bytes),
        })
    }

    fn cut(&mut self, is_cut: bool) -> Result<(), SubjectError> {
        let is_done = self.rig.as_ref().is_some_and(|rig| rig.cut(is_cut));
        if is_done { Ok(()) } else { Err(SubjectError::Exchange(NO_LINK_TO_CUT.into())) }
    }

    fn queried_clocks(&self) -> Option<QueriedClocks> {
        let rig = self.rig.as_ref().filter(|_| self.level.shapes())?;
        // A failed query yields no value.
        let found = inquiry::inquire(rig, self.behind.as_ref()).ok()?;
        let ClockErrors { papers_mean_ns, shortest_ns, shortest_bound_ns } = found;
        Some(QueriedClocks { papers_mean_ns, shortest_ns, shortest_bound_ns })
    }

    fn listen(&mut self) {
        self.rig.iter().chain(&self.behind).for_each(Rig::reset_lateness);
        self.rig.iter().chain(&self.behind).for_each(Rig::begin_capture);
    }

    fn captured(&mut self, pcap: Option<&FilePath>) -> CaptureResult {
        let Some(rig) = self.rig.as_ref().filter(|_| self.level.shapes()) else {
            return CaptureResult { link: self.link(), ..CaptureResult::default() };
        };
        // Packets still in transit are in the capture all the same.
        let _ = rig.settle(QUIET, SETTLE_MAX);
        let capture = rig.end_capture();
        let mut link = self.link();
        let mut server_end = data_times(&capture);
        if let Some(behind) = &self.behind {
            link.behind = Some(Box::new(self.recorded(&self.link_behind, Some(behind))));
            // The server is at the far end of the second link.
            server_end = data_times(&behind.end_capture());
        }
        let anatomy = capture.anatomy(Side::Device);
        let is_small = anatomy.up.wire_bytes() + anatomy.down.wire_bytes() < PCAP_MAX_BYTES;
        if let Some(file) = pcap.filter(|_| is_small) {
            // The record names the file only if it exists.
            let _ = capture.write_pcap(Side::Device, file);
        }
        let opening = |parts: &PurposeBytes| parts.handshake_bytes + parts.close_bytes;
        let handshake =
            DirectionBytes { ip: opening(&anatomy.up) + opening(&anatomy.down), ..DirectionBytes::default() };
        let bytes = (capture.is_complete && capture.not_kept == 0).then(|| Bytes {
            source: "capture".into(),
            exchanges: 0,
            up: traffic(&anatomy.up),
            down: traffic(&anatomy.down),
            handshake,
        });
        CaptureResult { link, bytes, server_end, epoch_ns: capture.epoch_ns.cast_signed() }
    }
}

/// Returns the memory limit of a cell, if it has one.
fn memory(cell: &Cell) -> Option<CgroupLimits> {
    let bytes = u64::from(cell.memory_mib?) << 20;
    Some(CgroupLimits { memory_bytes: Some(bytes), cpu_percent: None })
}

/// Returns true if the CPU limit of a cell applies to a side.
fn is_limited(cell: &Cell, side: Side) -> bool {
    cell.cpu_of == CpuOf::Both || side == Side::Device
}

const fn side(role: SubjectRole) -> Side {
    match role {
        SubjectRole::Client => Side::Device,
        SubjectRole::Server | SubjectRole::Gateway => Side::Server,
    }
}

fn data_times(capture: &Capture) -> DataTimes {
    let times = |from| {
        let seen = capture.data_times_ns(Side::Server, from);
        seen.into_iter().map(u64::cast_signed).collect()
    };
    DataTimes { arrived_ns: times(Side::Device), left_ns: times(Side::Server) }
}

fn traffic(parts: &PurposeBytes) -> DirectionBytes {
    DirectionBytes {
        frames: parts.packets,
        ip: parts.wire_bytes(),
        data_frames: Some(parts.data_packets),
        data_ip: Some(parts.data_bytes()),
        tcp_payload: parts.framing_bytes + parts.tls_bytes + parts.payload_bytes,
        app: 0,
        payload: 0,
    }
}

fn link_params(path: &Path) -> [(&'static str, f64); 5] {
    let rate = match path.rate {
        Rate::BitsPerSecond(bits) => bits as f64 / 1e6,
        Rate::Unlimited | Rate::Trace(_) => 0.0,
    };
    [
        ("delay_ms", path.delay_ns as f64 / 1e6),
        ("jitter_ms", path.jitter_ns as f64 / 1e6),
        ("mbit_s", rate),
        ("loss", path.loss),
        ("queue_packets", path.queue_packets as f64),
    ]
}
