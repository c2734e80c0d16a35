//! The command line of `stentor lab`: measurements that anyone can repeat.

mod advise;
mod artifact;
mod bench;
mod claims;
mod clock;
mod cluster;
mod compare;
mod doctor;
mod energy;
mod features;
mod link;
mod list;
mod load;
mod measure;
mod mqtt_devices;
mod probe;
mod report;
mod rig;
mod run;
mod scale;
mod selftest;
mod subject;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use stentor_stage::programs::Program;
use stentor_terminal::failure::{EXIT_CODES, judge};
use stentor_terminal::output::Output;
use stentor_terminal::reference::CommandsArgs;

/// Measure: the sender, the pipeline, and published studies
#[derive(Debug, Parser)]
#[command(name = "stentor-lab", bin_name = "stentor lab", version, propagate_version = true, after_help = after_help())]
struct Laboratory {
    /// Print one JSON object on the last line, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    Bench(bench::BenchArgs),
    Run(run::RunArgs),
    Cluster(cluster::ClusterArgs),
    Scale(scale::ScaleArgs),
    Claims(claims::ClaimsArgs),
    Probe(probe::ProbeArgs),
    Features(features::FeaturesArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    Artifact(artifact::ArtifactArgs),
    Advise(advise::AdviseArgs),
    Subject(subject::SubjectArgs),
    Energy(energy::EnergyArgs),
    List(list::LabListArgs),
    Doctor(doctor::LabDoctorArgs),
    Link(link::LinkArgs),
    Measure(Box<measure::MeasureArgs>),
    #[command(hide = true)]
    MeasureCaller(measure::MeasureCallerArgs),
    Clock(clock::ClockArgs),
    Selftest(selftest::SelftestArgs),
    #[command(hide = true)]
    Load(load::LoadArgs),
    #[command(hide = true)]
    MqttDevices(mqtt_devices::MqttDevicesArgs),
    Commands(CommandsArgs),
}

fn after_help() -> String {
    format!("Examples:\n  stentor lab doctor\n  stentor lab list\n  stentor lab run cai-2009\n\n{EXIT_CODES}")
}

/// Runs the command of this process's arguments.
pub(crate) fn run() -> ExitCode {
    Program::Laboratory.declare();
    let arguments = Laboratory::parse();
    let output = Output::new(arguments.json);
    match perform(arguments.command, output) {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            ExitCode::from(judge(&error).0 as u8)
        }
    }
}

fn perform(command: LabCommand, output: Output) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(dispatch(command, output));
    // A read of standard input, for one, can block for ever.
    runtime.shutdown_background();
    done
}

async fn dispatch(command: LabCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        LabCommand::Bench(bench) => bench.run(output).await,
        LabCommand::Run(run) => run.run(output).await,
        LabCommand::Cluster(cluster) => cluster.run(output).await,
        LabCommand::Scale(scale) => scale.run(output),
        LabCommand::Claims(claims) => claims.run(output),
        LabCommand::Probe(probe) => probe.run(output).await,
        LabCommand::Features(features) => features.run(output).await,
        LabCommand::Report(report) => report.run(output),
        LabCommand::Compare(compare) => compare.run(output),
        LabCommand::Artifact(artifact) => artifact.run(output),
        LabCommand::Advise(advise) => advise.run(output),
        LabCommand::Subject(subject) => subject.run(output).await,
        LabCommand::Energy(energy) => energy.run(output).await,
        LabCommand::List(list) => list.run(output),
        LabCommand::Doctor(doctor) => doctor.run(output),
        LabCommand::Link(link) => link.run(output).await,
        LabCommand::Measure(measure) => measure.run(output).await,
        LabCommand::MeasureCaller(caller) => caller.run().await,
        LabCommand::Clock(clock) => clock.run(output).await,
        LabCommand::Selftest(selftest) => selftest.run(output).await,
        LabCommand::Load(load) => load.run(output),
        LabCommand::MqttDevices(devices) => devices.run(),
        LabCommand::Commands(commands) => {
            commands.run(Laboratory::command(), output).map(|()| ExitCode::SUCCESS)
        }
    }
}
