//! The `stentor-lab` binary: the laboratory, which the product starts for `stentor lab …`.
#![forbid(unsafe_code)]

mod bench;
mod caller;
mod cluster;
mod commands;
mod device_load;
mod faces;
mod features;
mod orders;
mod push_subject;
mod scaling;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let _written_at_the_end = stentor_terminal::logging::LastLines;
    commands::run()
}
