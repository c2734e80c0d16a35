//! The `stentor` binary: one download, one command line.
#![forbid(unsafe_code)]

mod commands;
mod connection;
mod copying;
mod device;
#[cfg(feature = "otlp")]
mod spans;

use stentor_stage::client;
use stentor_terminal::{failure, ledger, logging, output, process, progress, value_names};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let _written_at_the_end = logging::LastLines;
    commands::run()
}
