//! Facts of the machine on which a figure is measured: its processor, and whether it is emulated.
#![forbid(unsafe_code)]

pub mod emulation;
pub mod facts;
