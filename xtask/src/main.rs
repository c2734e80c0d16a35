//! The project's own tools: the house rules that a machine can check, the generated references, the full test command.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a script talks to whoever called it")]

mod arm;
mod book;
mod ci;
mod codegen;
mod finding;
mod package;
mod prose;
mod records;
mod rust_file;
mod tidy;
mod weight;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::package::{Arch, PackageRequest};
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The scripts of the house")]
struct Cli {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Checks walls, sizes, links and the other house rules; exits 1 on any finding
    Tidy,
    /// Writes the generated files: the references under docs/, target/descriptions, and half of the clients
    Codegen {
        /// Writes the clients alone, from docs/openapi.json, and builds no server
        #[arg(long, conflicts_with_all = ["check", "binary"])]
        clients: bool,
        /// Writes nothing; fails if a reference is out of date
        #[arg(long)]
        check: bool,
        /// Runs this binary instead of building one
        #[arg(long)]
        binary: Option<PathBuf>,
    },
    /// Runs the checks for every change: format, rules, clippy, tests, references
    Ci {
        /// Also runs the steps that take long or need many tools: all tests, documentation, cargo deny, the static binary, upgrades
        #[arg(long)]
        full: bool,
    },
    /// Builds the binary for a Raspberry Pi (64 bits) and tries it on an emulated processor, where nothing is timed
    #[command(after_help = "\
Examples:
  cargo xtask arm
  cargo xtask arm --jobs 2
  cargo xtask arm --binary target/aarch64-unknown-linux-gnu/release/stentor

Runs a small part of every study of web services with our own subjects, and a demo; exits 0 only if everything answered
rightly and no time was kept. Each missing program is reported with the command that installs it.")]
    Arm {
        /// Builds nothing and tries this binary instead
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Number of concurrent compilers; by default the number of processors
        #[arg(long)]
        jobs: Option<u32>,
    },
    /// Makes the files of a release in target/package: static binaries, debs, images, bills of materials, packages of the clients
    #[command(after_help = "\
Examples:
  packaging/install && cargo xtask package
  cargo xtask package --arch x86_64 --json
  cargo xtask package --binary target/x86_64-unknown-linux-musl/dist/stentor

Each file is judged by the tools that are installed, and the report names them. Every missing tool is reported with the
command that installs it.")]
    Package {
        /// Makes the files for these processors
        #[arg(long, value_enum, value_delimiter = ',', default_values = ["x86_64", "aarch64"])]
        arch: Vec<Arch>,
        /// Builds no binary and packs this static one; can be repeated
        #[arg(long)]
        binary: Vec<PathBuf>,
        /// Number of concurrent compilers; by default the number of processors
        #[arg(long)]
        jobs: Option<u32>,
        /// Prints one JSON object: {"files":[{"path","bytes","sha256","checked_by"}]}
        #[arg(long)]
        json: bool,
    },
    /// Builds the site of the pages under target/docs/book, and checks its links; needs docs/mdbook/install
    Book,
    /// Brings the records of the studies, which a clone without history does not have, into docs/studies
    Records,
    /// Counts words in comments that make sentences hard to read, by package; nothing fails
    Prose {
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Counts lines, packages and the bytes of a clone without history, and lists the slowest crates of the last timed build
    Weight {
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let workspace = Workspace::load()?;
    let passed = match cli.command {
        XtaskCommand::Tidy => tidy::run(&workspace)?,
        XtaskCommand::Codegen { clients: true, .. } => codegen::write_clients(&workspace)?,
        XtaskCommand::Codegen { clients: false, check, binary } => codegen::run(&workspace, check, binary)?,
        XtaskCommand::Ci { full } => ci::run(&workspace, full)?,
        XtaskCommand::Arm { binary, jobs } => arm::run(&workspace, binary, jobs)?,
        XtaskCommand::Package { arch: archs, binary: binaries, jobs, json } => {
            package::run(&workspace, &PackageRequest { archs, binaries, jobs, json })?
        }
        XtaskCommand::Book => book::run(&workspace)?,
        XtaskCommand::Records => records::run(&workspace)?,
        XtaskCommand::Prose { json } => prose::run(&workspace, json)?,
        XtaskCommand::Weight { json } => weight::run(&workspace, json)?,
    };
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
