//! `stentor lab`: measurements that anyone can repeat.

mod advise;
mod bench;
mod claims;
mod clock;
mod compare;
mod doctor;
mod energy;
mod kill;
mod link;
mod list;
mod load;
mod probe;
mod report;
mod run;
mod subject;

use crate::output::Output;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Measure: the sender, the pipeline, and what others have published
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Bench(bench::Bench),
    Run(run::Run),
    Kill(kill::Kill),
    Claims(claims::Claims),
    Probe(probe::Probe),
    Report(report::Report),
    Compare(compare::Compare),
    Advise(advise::Advise),
    Subject(subject::Subject),
    Energy(energy::Energy),
    List(list::List),
    Doctor(doctor::Doctor),
    Link(link::Link),
    Clock(clock::Clock),
    #[command(hide = true)]
    Load(load::Load),
}

impl Lab {
    /// Runs it.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Bench(bench) => bench.run(output).await,
            Action::Run(run) => run.run(output).await,
            Action::Kill(kill) => kill.run(output).await,
            Action::Claims(claims) => claims.run(output),
            Action::Probe(probe) => probe.run(output).await,
            Action::Report(report) => report.run(output),
            Action::Compare(compare) => compare.run(output),
            Action::Advise(advise) => advise.run(output),
            Action::Subject(subject) => subject.run(output).await,
            Action::Energy(energy) => energy.run(output).await,
            Action::List(list) => list.run(output),
            Action::Doctor(doctor) => doctor.run(output),
            Action::Link(link) => link.run(output).await,
            Action::Clock(clock) => clock.run(output).await,
            Action::Load(load) => load.run(output),
        }
    }
}
