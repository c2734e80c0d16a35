//! `stentor lab bench`: what Stentor costs, beside others where there are any, as ratios within one run.

mod http2;
mod pipeline;
mod sink;

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
    Http2(http2::Http2),
    Pipeline(pipeline::Pipeline),
}

impl Bench {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.subject {
            Subject::Http2(http2) => http2.run(output).await,
            Subject::Pipeline(pipeline) => pipeline.run(output).await,
        }
    }
}
