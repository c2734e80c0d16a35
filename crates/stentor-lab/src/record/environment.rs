//! The machine of a run, as records describe it.

use serde::{Deserialize, Serialize};

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Release of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: String,
    /// Family, model and stepping of the processor. Empty here and in the next two fields: not recorded, as in older versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_model: String,
    /// Name of the hypervisor; `none` on a bare machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    /// Compiler of the laboratory and of its own subjects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compiler: String,
    /// Number of processors.
    pub cores: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The frequency governor; empty if the system does not report it.
    pub governor: String,
    /// `awake` if idle processors were kept from halting, else empty.
    pub idle: String,
    /// Load average over a minute before the fork.
    pub load_before: f64,
    /// Load average over a minute after the fork.
    pub load_after: f64,
    /// Share of the last ten seconds in which a task waited for a processor (PSI), in percent.
    pub psi_cpu: Option<f64>,
    /// The level of the rig between the halves: `netns`, `veth` or `loopback`.
    pub rig: String,
    /// The cgroup version that limits the halves: `v2`, `v1`, or empty.
    pub cgroup: String,
    /// Version of the laboratory.
    pub tool_version: String,
    /// The commit of the build, with `-dirty` if its sources differed from it, `unknown` if it was built outside a repository; empty in
    /// records of older versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// True if the laboratory and its own subjects were built with optimizations.
    pub optimized: bool,
    /// The evidence of an emulated processor, else empty. Records with an emulated processor hold no times.
    pub emulated: String,
}
