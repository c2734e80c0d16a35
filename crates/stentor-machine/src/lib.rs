//! Facts of the machine on which a figure is measured: its processor, the time that a hypervisor takes from it, the
//! compiler, and whether the processor is emulated.
#![forbid(unsafe_code)]

pub mod emulation;
pub mod facts;
