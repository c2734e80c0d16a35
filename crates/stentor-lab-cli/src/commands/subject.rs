//! `stentor lab subject`: the subjects of studies, as processes that take orders, and checks of their behaviour.

pub(super) mod foreign;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use foreign::{SubjectBuildArgs, SubjectFolderArgs, SubjectListArgs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use stentor_lab::statistics::Samples;
use stentor_lab::subject::catalogue;
use stentor_lab::subject::check::{Passed, check};
use stentor_lab::subject::client::SubjectClient;
use stentor_lab::subject::dialect::{DIALECTS, SubjectDialect};
use stentor_lab::subject::reference::{Digest, Op};
use stentor_lab::subject::sample::ClientSample;
use stentor_lab::subject::server::{Behaviour, SubjectServer};
use stentor_lab::subject::{Definition, PUSH_SERVICES, SubjectError, speaker};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// Nanoseconds of a millisecond.
const MILLISECOND_NS: f64 = 1e6;

/// Subjects: services and their clients, one process for each half
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    #[command(subcommand)]
    command: SubjectCommand,
}

#[derive(Debug, Subcommand)]
enum SubjectCommand {
    List(SubjectListArgs),
    Build(SubjectBuildArgs),
    Check(CheckArgs),
    Serve(SubjectServeArgs),
    Call(CallArgs),
    #[command(hide = true)]
    Speak(SpeakArgs),
}

/// Check a subject before it is measured: right answers, kept samples, an end on request
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab subject check soap
  stentor lab subject check soap/cxf-2.7.4
  stentor lab subject check --definition my-subject.toml

Client and server are started as processes and get their orders by LSP-1. Every answer is compared with the right one, and a
subject with one wrong answer is refused. docs/lab/your-own-service.md describes how to write a subject.")]
struct CheckArgs {
    /// A subject of ours, by its dialect, or a foreign one, by its id or the beginning of it
    #[arg(required_unless_present = "definition", conflicts_with = "definition")]
    subject: Option<String>,
    #[command(flatten)]
    place: SubjectFolderArgs,
    /// A subject of yours, by its file
    #[arg(long, value_name = "FILE")]
    definition: Option<PathBuf>,
    /// Longest wait for each report and answer
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    patience_seconds: u64,
}

/// Serve one operation until interrupted
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  stentor lab subject serve rest+json --op sort --bind 127.0.0.1:8090")]
struct SubjectServeArgs {
    /// The dialect: transport and format
    #[arg(value_parser = names())]
    dialect: String,
    /// The operation
    #[arg(long, value_enum, default_value = "echo")]
    op: OpName,
    /// Address to listen at
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    bind: SocketAddr,
}

/// Call a server and compare its answers
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab subject call rest+json --op sort --target 127.0.0.1:8090 --factor items=1000 --count 100
  stentor lab subject call soap --op array --target 127.0.0.1:8090 --factor items=200 --factor type=Object --json")]
struct CallArgs {
    /// The dialect: transport and format
    #[arg(value_parser = names())]
    dialect: String,
    /// The operation
    #[arg(long, value_enum, default_value = "echo")]
    op: OpName,
    /// Address of the server
    #[arg(long, value_name = "ADDRESS")]
    target: SocketAddr,
    /// Levels: payload (echo), items (sort, array), type (array: Int, String, Object), poi (points)
    #[arg(long, value_name = "NAME=LEVEL", value_parser = factor)]
    factor: Vec<(String, String)>,
    /// Exchanges, one after the other on one connection
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
}

/// Take LSP-1 orders on standard input
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  echo '{\"order\":\"hello\"}' | stentor lab subject speak rest+json")]
struct SpeakArgs {
    /// The dialect: transport and format; or a push service
    #[arg(value_parser = PossibleValuesParser::new(spoken()))]
    dialect: String,
    /// Behaviour of the subject; dishonest ones serve to test the checks
    #[arg(long, value_enum, default_value = "honest")]
    manner: MannerName,
    /// Let the real server answer, with data of its own, through the face of the dialect
    #[arg(long)]
    served: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OpName {
    Echo,
    Sort,
    Array,
    Points,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MannerName {
    Honest,
    Forgetful,
    Mute,
    Boastful,
}

impl From<OpName> for Op {
    fn from(name: OpName) -> Self {
        match name {
            OpName::Echo => Self::Echo,
            OpName::Sort => Self::Sort,
            OpName::Array => Self::Array,
            OpName::Points => Self::Points,
        }
    }
}

impl From<MannerName> for Behaviour {
    fn from(name: MannerName) -> Self {
        match name {
            MannerName::Honest => Self::Honest,
            MannerName::Forgetful => Self::Forgetful,
            MannerName::Mute => Self::Mute,
            MannerName::Boastful => Self::Boastful,
        }
    }
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(DIALECTS.map(SubjectDialect::name))
}

/// Lists the names of the dialects and push services that a half can play.
fn spoken() -> impl Iterator<Item = &'static str> {
    DIALECTS.map(SubjectDialect::name).into_iter().chain(PUSH_SERVICES)
}

fn factor(text: &str) -> Result<(String, String), String> {
    let (name, level) = text.split_once('=').ok_or("NAME=LEVEL is wanted")?;
    Ok((name.to_owned(), level.to_owned()))
}

fn dialect(name: &str) -> anyhow::Result<SubjectDialect> {
    Ok(SubjectDialect::named(name).ok_or_else(|| SubjectError::Dialect(name.to_owned()))?)
}

impl SubjectArgs {
    /// Runs the subcommand.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        match self.command {
            SubjectCommand::List(list) => list.run(output),
            SubjectCommand::Build(build) => build.run(output).await,
            SubjectCommand::Check(check) => check.run(output).await,
            SubjectCommand::Serve(serve) => serve.run(output).await,
            SubjectCommand::Call(call) => call.run(output).await,
            SubjectCommand::Speak(speak) => speak.run().await,
        }
    }
}

impl CheckArgs {
    async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let definition = self.definition()?;
        let directory = tempfile::tempdir().context("a directory for samples cannot be made")?;
        let patience = Duration::from_secs(self.patience_seconds);
        let passed = check(&definition, directory.path(), patience).await;
        let passed =
            passed.map_err(|error| CommandFailure::not_done(format!("{}: {error}", definition.id)))?;
        let object = json!({ "subject": definition.id, "ok": true, "passed": passed });
        output.result(&object, || describe(&definition, &passed))?;
        Ok(ExitCode::SUCCESS)
    }

    fn definition(&self) -> anyhow::Result<Definition> {
        if let Some(path) = &self.definition {
            let entry =
                catalogue::entry(path.clone()).map_err(|error| CommandFailure::usage(error.to_string()))?;
            return Ok(entry.definition);
        }
        let subject = self.subject.as_deref().unwrap_or_default();
        if let Some(dialect) = SubjectDialect::named(subject) {
            return built_in(dialect);
        }
        self.place.ready(subject)
    }
}

/// Describes a subject of ours: this program plays it.
fn built_in(dialect: SubjectDialect) -> anyhow::Result<Definition> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let words = ["subject", "speak", dialect.name()].map(str::to_owned);
    let run = [program.display().to_string()].into_iter().chain(words);
    Ok(Definition::built_in(dialect, run.collect()))
}

fn describe(definition: &Definition, passed: &[Passed]) -> String {
    let rows = passed.iter().map(|one| {
        let factors: Vec<String> =
            one.factors.iter().map(|(name, level)| format!("{name}={level}")).collect();
        let role = format!("{:?}", one.role).to_lowercase();
        [role, one.op.word().to_owned(), factors.join(" "), one.answers.to_string()]
    });
    format!(
        "{} may be measured\n\n{}",
        definition.id,
        table(["half", "operation", "factors", "right answers"], rows)
    )
}

impl SubjectServeArgs {
    async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = stentor_terminal::process::asked_to_end()?;
        let server =
            SubjectServer::start(dialect(&self.dialect)?, self.op.into(), self.bind, Behaviour::Honest)
                .await?;
        let object = json!({ "address": server.address, "dialect": self.dialect });
        output.result(&object, || format!("{} listens on {}", self.dialect, server.address))?;
        ended.await;
        Ok(ExitCode::SUCCESS)
    }
}

impl CallArgs {
    async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let factors: BTreeMap<String, String> = self.factor.iter().cloned().collect();
        let op = Op::from(self.op);
        let mut client = SubjectClient::connect(dialect(&self.dialect)?, op, self.target).await?;
        let (mut samples, mut digest) = (Vec::new(), Digest::default());
        for seq in 0..self.count {
            let exchange =
                op.exchange(&factors, seq).ok_or_else(|| CommandFailure::usage("no such type of array"))?;
            let (sample, answer) = client.exchange(seq, 0, &exchange.request).await?;
            if answer != exchange.answer {
                return Err(CommandFailure::not_done(format!("answer {seq} is not the expected one")).into());
            }
            digest.add(&answer);
            samples.push(sample);
        }
        let median_ms = if stentor_stage::emulated::is_timed() { phases(&samples) } else { Value::Null };
        let object = json!({ "answers": self.count, "digest": digest.hex(), "median_ms": median_ms });
        output.result(&object, || stentor_terminal::output::facts(&object))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the median of each phase, in milliseconds.
fn phases(samples: &[ClientSample]) -> Value {
    let median = |phase: fn(&ClientSample) -> i64| {
        let samples: Samples = samples.iter().map(|one| phase(one) as f64 / MILLISECOND_NS).collect();
        samples.quantile(0.5)
    };
    json!({
        "serialize": median(|one| one.t_ser_end - one.t_start),
        "first_byte": median(|one| one.t_first_byte - one.t_ser_end),
        "rest": median(|one| one.t_end - one.t_first_byte),
        "deserialize": median(|one| one.t_deser_end - one.t_end),
        "total": median(|one| one.t_deser_end - one.t_start),
    })
}

impl SpeakArgs {
    async fn run(self) -> anyhow::Result<ExitCode> {
        stentor_terminal::process::end_with_parent();
        if self.served {
            crate::faces::subject::speak(&self.dialect).await?;
            std::process::exit(0);
        }
        if PUSH_SERVICES.contains(&self.dialect.as_str()) {
            crate::push_subject::speak(&self.dialect).await?;
            std::process::exit(0);
        }
        let order_lines = tokio::io::BufReader::new(tokio::io::stdin());
        speaker::speak(dialect(&self.dialect)?, self.manner.into(), order_lines, tokio::io::stdout()).await?;
        // Standard input is read by a thread that only the end of the process stops.
        std::process::exit(0);
    }
}
