//! A side in the rig: its namespace, its control groups, and its processes.

use super::RigError;
use crate::cgroup::{Cgroup, CgroupLimits};
use crate::kernel;
use crate::namespace::Namespace;
use crate::side::Side;
use crate::usage::{ProcMeter, Usage};
use rustix::thread::gettid;
use std::process::{Child, Command};
use std::sync::Arc;
use std::{fs, io};

const SECOND_NS: i64 = 1_000_000_000;

/// One side.
#[derive(Debug)]
pub(super) struct SideHost {
    /// A thread in its namespace, outside of its limits.
    pub(super) place: Namespace,
    /// A thread in its namespace and, where single threads can be moved, within its limits: its child processes are born there.
    spawner: Namespace,
    group: Option<Arc<Cgroup>>,
    /// Measures the usage if there is no group.
    meter: ProcMeter,
}

impl SideHost {
    /// Takes a namespace and creates its groups. If the rights are missing and no limit is requested, a note is added to `notes`.
    pub(super) fn take(
        side: Side,
        place: Namespace,
        limits: CgroupLimits,
        notes: &mut Vec<String>,
    ) -> Result<Self, RigError> {
        let name = format!("{}-spawner", side.word());
        let spawner = place.run(move || Namespace::shared(&name))?;
        let group = match Cgroup::make_counting(limits) {
            Ok(group) => Some(Arc::new(group)),
            Err(source) if limits != CgroupLimits::default() => {
                return Err(RigError::NoLimits { side, source });
            }
            Err(source) => {
                notes.push(format!("usage of the {} comes from /proc: {source}", side.word()));
                None
            }
        };
        if let Some(group) = &group {
            group.take_thread(spawner.thread_id)?;
        }
        Ok(Self { place, spawner, group, meter: ProcMeter::default() })
    }

    /// Starts a process here.
    pub(super) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let child = self.spawner.run(move || command.spawn())?;
        self.adopt(child)
    }

    /// Starts a process here with its monotonic clock ahead.
    pub(super) fn spawn_with_offset(&self, offset_ns: i64, mut command: Command) -> io::Result<Child> {
        // Uses a thread of its own, because all later processes of the thread would be ahead as well.
        let starter = self.spawner.run(|| Namespace::shared("ahead"))?;
        let child = starter.run(move || {
            kernel::leave_time()?;
            let (seconds, rest) = (offset_ns.div_euclid(SECOND_NS), offset_ns.rem_euclid(SECOND_NS));
            let offsets = format!("monotonic {seconds} {rest}\n");
            fs::write(format!("/proc/{}/timens_offsets", gettid().as_raw_nonzero()), offsets)?;
            command.spawn()
        })?;
        self.adopt(child)
    }

    /// Returns the usage of this side so far.
    pub(super) fn usage(&self) -> io::Result<Usage> {
        self.group.as_ref().map_or_else(|| Ok(self.meter.look()), |group| group.usage())
    }

    /// Limits the processor time of the processes here from now on, or lifts the limit.
    pub(super) fn hold_cpu(&self, percent: Option<u32>) -> io::Result<()> {
        self.group.as_ref().map_or(Ok(()), |group| group.hold_cpu(percent))
    }

    fn adopt(&self, mut child: Child) -> io::Result<Child> {
        self.meter.add(child.id());
        if let Some(group) = &self.group {
            // Where threads can be moved, the process is there already. A process that has ended cannot be moved.
            if let Err(error) = group.take(child.id())
                && child.try_wait()?.is_none()
            {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        }
        Ok(child)
    }
}

impl Drop for SideHost {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.end_all();
        }
    }
}
