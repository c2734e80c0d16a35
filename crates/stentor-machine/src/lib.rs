//! Facts of the machine on which a figure is taken: its processor, and whether an emulator stands for one.
#![forbid(unsafe_code)]

pub mod emulation;
pub mod facts;
