//! `stentor lab`: measurements that anyone can repeat.

mod advise;
mod bench;
mod claims;
mod clock;
mod cluster;
mod compare;
mod doctor;
mod energy;
mod features;
mod kill;
mod link;
mod list;
mod load;
mod mqtt_devices;
mod probe;
mod report;
mod rig;
mod run;
mod scale;
mod subject;

use crate::output::Output;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Measure: the sender, the pipeline, and what others have published
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    Bench(bench::BenchArgs),
    Run(run::RunArgs),
    Kill(kill::KillArgs),
    Cluster(cluster::ClusterArgs),
    Scale(scale::ScaleArgs),
    Claims(claims::ClaimsArgs),
    Probe(probe::ProbeArgs),
    Features(features::FeaturesArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    Advise(advise::AdviseArgs),
    Subject(subject::SubjectArgs),
    Energy(energy::EnergyArgs),
    List(list::LabListArgs),
    Doctor(doctor::LabDoctorArgs),
    Link(link::LinkArgs),
    Clock(clock::ClockArgs),
    #[command(hide = true)]
    Load(load::LoadArgs),
    #[command(hide = true)]
    MqttDevices(mqtt_devices::MqttDevicesArgs),
}

impl LabArgs {
    /// Runs it.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.command {
            LabCommand::Bench(bench) => bench.run(output).await,
            LabCommand::Run(run) => run.run(output).await,
            LabCommand::Kill(kill) => kill.run(output).await,
            LabCommand::Cluster(cluster) => cluster.run(output).await,
            LabCommand::Scale(scale) => scale.run(output),
            LabCommand::Claims(claims) => claims.run(output),
            LabCommand::Probe(probe) => probe.run(output).await,
            LabCommand::Features(features) => features.run(output).await,
            LabCommand::Report(report) => report.run(output),
            LabCommand::Compare(compare) => compare.run(output),
            LabCommand::Advise(advise) => advise.run(output),
            LabCommand::Subject(subject) => subject.run(output).await,
            LabCommand::Energy(energy) => energy.run(output).await,
            LabCommand::List(list) => list.run(output),
            LabCommand::Doctor(doctor) => doctor.run(output),
            LabCommand::Link(link) => link.run(output).await,
            LabCommand::Clock(clock) => clock.run(output).await,
            LabCommand::Load(load) => load.run(output),
            LabCommand::MqttDevices(devices) => devices.run(),
        }
    }
}
