//! Processors that stay awake: a halted one wakes late, and a virtual one later still, when its host has given it away.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The kernel's interface for it ("PM Quality of Service" in the documentation of Linux).
const FILE: &str = "/dev/cpu_dma_latency";
/// The permitted wake-up latency: at zero an idle processor looks for work instead of halting.
const LATENCY_MAX_US: i32 = 0;

/// Keeps every processor of the machine awake until it is dropped.
#[derive(Debug)]
pub struct Wakeful {
    /// The wish lasts as long as the file is open.
    _file: File,
}

impl Wakeful {
    /// Begins; fails without the right to, or where the system has no such file.
    pub fn begin() -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(FILE)?;
        file.write_all(&LATENCY_MAX_US.to_ne_bytes())?;
        Ok(Self { _file: file })
    }
}
