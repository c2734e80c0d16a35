//! `stentor lab bench`: what Stentor costs, beside others where there are any, as ratios within one run.

mod accept;
mod cold;
mod fair;
mod http2;
mod import;
mod pipeline;
mod trouble;
mod urgent;

use crate::output::Output;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Measure what Stentor costs on this machine
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Accept(accept::Accept),
    Cold(cold::Cold),
    Fair(fair::Fair),
    Http2(http2::Http2),
    Import(import::Import),
    Pipeline(pipeline::Pipeline),
    Trouble(trouble::TroubleBench),
    Urgent(urgent::Urgent),
}

impl Bench {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        crate::emulated::refuse()?;
        match self.subject {
            Subject::Accept(accept) => accept.run(output).await,
            Subject::Cold(cold) => cold.run(output).await,
            Subject::Fair(fair) => fair.run(output).await,
            Subject::Http2(http2) => http2.run(output).await,
            Subject::Import(import) => import.run(output).await,
            Subject::Pipeline(pipeline) => pipeline.run(output).await,
            Subject::Trouble(trouble) => trouble.run(output).await,
            Subject::Urgent(urgent) => urgent.run(output).await,
        }
    }
}

/// Returns the exit code of a bench that holds, or does not.
fn exit(holds: bool) -> ExitCode {
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
