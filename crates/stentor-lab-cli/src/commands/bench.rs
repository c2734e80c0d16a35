//! `stentor lab bench`: benchmarks of Stentor, as ratios within one run, beside other servers where possible.

mod accept;
mod cold;
mod console;
mod faces;
mod fair;
mod gateway;
mod http2;
mod import;
mod limits;
mod live_activities;
mod pipeline;
mod shared_engines;
mod trouble;
mod urgent;
mod web_push;

use clap::{Args, Subcommand};
use std::process::ExitCode;
use stentor_terminal::output::Output;

/// Measure the cost of Stentor on this machine
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Accept(accept::AcceptArgs),
    Cold(cold::ColdArgs),
    Console(console::ConsoleArgs),
    Faces(faces::FacesArgs),
    Fair(fair::FairArgs),
    Gateway(gateway::GatewayBenchArgs),
    Http2(http2::Http2Args),
    Import(import::ImportBenchArgs),
    Limits(limits::LimitsArgs),
    LiveActivities(live_activities::LiveActivitiesArgs),
    Pipeline(pipeline::PipelineArgs),
    Trouble(trouble::TroubleArgs),
    Urgent(urgent::UrgentArgs),
    WebPush(web_push::WebPushArgs),
}

impl BenchArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        stentor_stage::emulated::refuse()?;
        match self.command {
            BenchCommand::Accept(accept) => accept.run(output).await,
            BenchCommand::Cold(cold) => cold.run(output).await,
            BenchCommand::Console(console) => console.run(output).await,
            BenchCommand::Faces(faces) => faces.run(output).await,
            BenchCommand::Fair(fair) => fair.run(output).await,
            BenchCommand::Gateway(gateway) => gateway.run(output).await,
            BenchCommand::Http2(http2) => http2.run(output).await,
            BenchCommand::Import(import) => import.run(output).await,
            BenchCommand::Limits(limits) => limits.run(output).await,
            BenchCommand::LiveActivities(live) => live.run(output).await,
            BenchCommand::Pipeline(pipeline) => pipeline.run(output).await,
            BenchCommand::Trouble(trouble) => trouble.run(output).await,
            BenchCommand::Urgent(urgent) => urgent.run(output).await,
            BenchCommand::WebPush(web_push) => web_push.run(output).await,
        }
    }
}

/// Returns the exit code of a bench.
fn exit(holds: bool) -> ExitCode {
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
