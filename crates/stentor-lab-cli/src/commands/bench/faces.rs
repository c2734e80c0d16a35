//! `stentor lab bench faces`: the cost of one call for the server through each face, beside other servers that answer with the same record.

use crate::bench::faces::{
    self, ABOVE_REST_MAX_US, FaceRow, FacesOptions, FacesReport, OPERATION, RivalFolder,
};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::statistics::Samples;
use stentor_lab::subject::catalogue::{RIVALS, folder_named};
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;

/// Compare the processor time of one operation through every face, and beside CXF, Apache XML-RPC and grpc-java
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench faces
  stentor lab bench faces --seconds 5 --rounds 9 --json
  stentor lab bench faces --rivals none
  stentor lab subject build --subjects lab/rivals --all

The operation is devices.show: one device is read by its id. Each caller writes its request once, sends it again and again over
a connection that stays open, and compares every reply with the first. In each round every face and every rival has a turn.
CPU time is that of the server's process alone, as the operating system counts it. The rivals get the same bytes and answer with
the same record from memory: they look at no key and read no database.")]
pub(crate) struct FacesArgs {
    /// Seconds of each turn
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Number of turns of each server
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Connections at the same time, each with one call at a time
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    connections: u64,
    /// Seconds of calls that are not timed, before the first turn, in which a Java machine compiles
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=600))]
    warm_up_seconds: u32,
    /// Servers to measure beside the faces
    #[arg(long, value_enum, default_value_t = RivalChoice::All)]
    rivals: RivalChoice,
    /// Folder of the rivals' definitions; otherwise `lab/rivals` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    rival_folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RivalChoice {
    /// All that are built and can run here
    All,
    /// No other server
    None,
}

impl FacesArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let report = faces::run(self.options(), &*on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(ExitCode::SUCCESS)
    }

    fn options(self) -> FacesOptions {
        let rivals = match self.rivals {
            RivalChoice::None => RivalFolder::LeftOut,
            RivalChoice::All => self.folder().map_or(RivalFolder::Unknown, RivalFolder::At),
        };
        FacesOptions {
            seconds: self.seconds,
            rounds: self.rounds,
            connections: self.connections as usize,
            warm_up_seconds: self.warm_up_seconds,
            rivals,
            commit: env!("STENTOR_COMMIT"),
        }
    }

    fn folder(&self) -> Option<PathBuf> {
        let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
        let places = here.iter().chain(&program).map(PathBuf::as_path);
        self.rival_folder.clone().or_else(|| folder_named(RIVALS, places))
    }
}

fn describe(report: &FacesReport) -> String {
    let header = ["face", "calls/s", "CPU us each", "above REST", "", "beside", "CPU us each", ""];
    let rows = table(header, report.rows.iter().map(row));
    format!(
        "{OPERATION}; at most {ABOVE_REST_MAX_US:.0} us of CPU above REST, and less than the program beside it\n\n{rows}"
    )
}

fn row(row: &FaceRow) -> [String; 8] {
    let is_rest = row.face == "rest";
    let above = row.above_rest.quantile(0.5).filter(|_| !is_rest);
    let verdict =
        |is_met: Option<bool>| is_met.map_or("", |is_met| if is_met { "met" } else { "missed" }).to_owned();
    let (beside, cost) = match &row.rival {
        Ok(rival) => (rival.id.clone(), cell(&rival.cpu, 1)),
        Err(why) => (why.clone(), String::new()),
    };
    [
        row.face.to_owned(),
        cell(&row.rates, 0),
        cell(&row.cpu, 1),
        above.map_or_else(String::new, |above| format!("{above:+.1} us")),
        if is_rest { String::new() } else { verdict(row.is_near_rest()) },
        beside,
        cost,
        verdict(row.is_cheaper()),
    ]
}

fn cell(samples: &Samples, digits: usize) -> String {
    samples.summary().map_or_else(String::new, |summary| {
        let (median, min, max) = (summary.median, summary.min, summary.max);
        format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
    })
}
