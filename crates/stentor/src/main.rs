//! The `stentor` binary: one download, one command line.
#![forbid(unsafe_code)]

mod commands;
mod connection;
mod copying;
mod device;
mod failure;
mod ledger;
mod logging;
mod output;
mod process;
mod progress;
mod value_names;

// What commands and the stage have in common.
use stentor_stage::{client, emulated};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let _written_at_the_end = logging::LastLines;
    commands::run()
}
