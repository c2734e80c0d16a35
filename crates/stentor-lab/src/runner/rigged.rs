//! The rig as testbed: two namespaces with a link between them where the machine allows it, and less where it does not.

use super::interruption::Interruption;
use super::testbed::{CaptureResult, HalfUsage, NO_LINK_TO_CUT, Testbed};
use crate::plan::Cell;
use crate::record::{Bytes, DirectionBytes, Quantiles, RecordedLink as LinkRecord};
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::SubjectRole;
use crate::subject::{Definition, SubjectError};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path as FilePath;
use std::time::Duration;
use stentor_rig::anatomy::PurposeBytes;
use stentor_rig::cgroup::Cgroup;
use stentor_rig::link::{Path, Rate};
use stentor_rig::{CgroupLimits, Link, Plan, Rig, RigError, RigLevel, Side, Wakeful, Wanted};

/// The name of no link at all: both halves on loopback.
pub const NO_LINK: &str = "none";
/// How long no packet may pass before an exchange counts as over, and how long that is waited for.
const QUIET: Duration = Duration::from_millis(5);
const SETTLE_MAX: Duration = Duration::from_millis(300);
/// A capture of more than this is not kept as a file.
const PCAP_MAX_BYTES: u64 = 8 << 20;

/// Rigs, a fresh one for each fork.
pub struct Rigged {
    plan: Plan,
    rig: Option<Rig>,
    level: RigLevel,
    notes: Vec<String>,
    limits: Result<(), String>,
    awake: Option<Wakeful>,
}

impl Rigged {
    /// Tries what this machine allows; `None` when there is no such link.
    pub fn try_out(link: &str, seed: u64) -> Result<Option<Self>, RigError> {
        let profile = if link == NO_LINK { Some(Link::open()) } else { Link::profile(link) };
        let Some(profile) = profile else { return Ok(None) };
        let mut plan = Plan { seed, ..Plan::new(profile) };
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
        Ok(Some(Self { plan, rig: None, level, notes, limits, awake: awake.ok() }))
    }

    /// Returns why something is less than it could be, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the level.
    #[must_use]
    pub const fn level_of(&self) -> RigLevel {
        self.level
    }

    /// Gives both sides so much of a processor from now on, `Some(None)` being all of it; nothing changes with `None`.
    fn share(&self, percent: Option<Option<u32>>) -> Result<(), SubjectError> {
        let (Some(rig), Some(percent)) = (&self.rig, percent) else { return Ok(()) };
        let refused = |error| SubjectError::Exchange(format!("the share of a processor: {error}"));
        Side::BOTH.into_iter().try_for_each(|side| rig.hold_cpu(side, percent).map_err(refused))
    }

    fn link(&self) -> LinkRecord {
        let mut params = BTreeMap::new();
        if self.level.shapes() {
            for (way, path) in [("up", &self.plan.link.up), ("down", &self.plan.link.down)] {
                params.extend(told(path).map(|(name, value)| (format!("{way}_{name}"), value)));
            }
        }
        let profile = if self.level.shapes() { self.plan.link.name.clone() } else { NO_LINK.to_owned() };
        LinkRecord { profile, params, ..LinkRecord::default() }
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

    fn prepare(&mut self, cell: &Cell) -> Result<(), SubjectError> {
        let limits = CgroupLimits { cpu_percent: cell.cpu_percent, ..memory(cell).unwrap_or_default() };
        // The one before goes first: both have the same addresses.
        self.rig = None;
        let plan = Plan { device: limits, server: limits, ..self.plan.clone() };
        let plan = Plan { level: Wanted::Exactly(self.level), ..plan };
        self.rig =
            Some(Rig::raise(&plan).map_err(|error| SubjectError::Exchange(format!("the rig: {error}")))?);
        self.release(cell)
    }

    fn release(&mut self, cell: &Cell) -> Result<(), SubjectError> {
        self.share(cell.cpu_percent.map(|_| None))
    }

    fn hold(&mut self, cell: &Cell) -> Result<(), SubjectError> {
        self.share(cell.cpu_percent.map(Some))
    }

    fn start(
        &mut self,
        role: SubjectRole,
        definition: &Definition,
        patience: Duration,
    ) -> Result<SubjectProcess, SubjectError> {
        let Some(rig) = &self.rig else { return SubjectProcess::start(definition, patience) };
        let command = SubjectProcess::command(definition)?;
        let program = definition.run.first().cloned().unwrap_or_default();
        let child =
            rig.spawn(side(role), command).map_err(SubjectError::io(format!("starting {program}")))?;
        SubjectProcess::adopt(child, patience)
    }

    fn address(&self, role: SubjectRole) -> IpAddr {
        self.rig.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |rig| rig.address(side(role)))
    }

    fn usage(&mut self, role: SubjectRole, _host: &SubjectProcess) -> HalfUsage {
        let usage = self.rig.as_ref().and_then(|rig| rig.usage(side(role)).ok());
        usage.map_or_else(HalfUsage::default, |usage| HalfUsage {
            cpu_ns: Some(usage.cpu_ns),
            peak_bytes: Some(usage.memory_peak_bytes),
        })
    }

    fn cut(&mut self, is_cut: bool) -> Result<(), SubjectError> {
        let is_done = self.rig.as_ref().is_some_and(|rig| rig.cut(is_cut));
        if is_done { Ok(()) } else { Err(SubjectError::Exchange(NO_LINK_TO_CUT.into())) }
    }

    fn listen(&mut self) {
        if let Some(rig) = &self.rig {
            rig.reset_lateness();
            rig.begin_capture();
        }
    }

    fn captured(&mut self, pcap: Option<&FilePath>) -> CaptureResult {
        let mut link = self.link();
        let Some(rig) = self.rig.as_ref().filter(|_| self.level.shapes()) else {
            return CaptureResult { link, bytes: None };
        };
        // What did not come to rest is in the capture all the same.
        let _ = rig.settle(QUIET, SETTLE_MAX);
        let capture = rig.end_capture();
        let late = rig.lateness();
        let us = |ns: u64| ns as f64 / 1000.0;
        link.lateness_us =
            Some(Quantiles { p50: us(late.p50_ns), p99: us(late.p99_ns), max: us(late.max_ns) });
        link.frames = late.packets;
        link.drops = Side::BOTH.iter().map(|side| rig.traffic(*side).overflowed_packets).sum();
        let anatomy = capture.anatomy(Side::Device);
        let is_small = anatomy.up.wire_bytes() + anatomy.down.wire_bytes() < PCAP_MAX_BYTES;
        if let Some(file) = pcap.filter(|_| is_small) {
            // The record names the file only if it is there.
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
        CaptureResult { link, bytes }
    }
}

/// Returns the limit of a cell's memory, if it has one.
fn memory(cell: &Cell) -> Option<CgroupLimits> {
    let bytes = u64::from(cell.memory_mib?) << 20;
    Some(CgroupLimits { memory_bytes: Some(bytes), cpu_percent: None })
}

const fn side(role: SubjectRole) -> Side {
    match role {
        SubjectRole::Client => Side::Device,
        SubjectRole::Server | SubjectRole::Gateway => Side::Server,
    }
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

fn told(path: &Path) -> [(&'static str, f64); 5] {
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
