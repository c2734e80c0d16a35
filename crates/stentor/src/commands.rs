//! The command line: one list of singular nouns, each in a file of its own.

mod account;
mod app;
mod audit;
mod campaign;
mod channel;
mod completions;
mod config;
mod contract;
mod credential;
mod demo;
mod device;
mod discover;
mod doctor;
mod emulate;
mod group;
mod kill;
mod lab;
mod message;
mod node;
mod ready;
mod reference;
mod schedule;
mod secret;
mod serve;
mod store;
mod topic;
mod user;
mod webhook;

use crate::failure::{EXIT_CODES, judge};
use crate::output::Output;
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;
use stentor_stage::programs::Program;
use stentor_terminal::reference::CommandsArgs;

/// The option for the authority of the server's certificate.
const SERVER_CA: &str = "server-ca";

/// The push server that can prove where every message went
#[derive(Debug, Parser)]
#[command(name = "stentor", version, propagate_version = true, after_help = EXIT_CODES)]
struct Stentor {
    /// Print one JSON object on the last line, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Demo(demo::DemoArgs),
    Emulate(emulate::EmulateArgs),
    App(app::AppArgs),
    Device(device::DeviceArgs),
    User(user::UserArgs),
    Group(group::GroupArgs),
    Topic(topic::TopicArgs),
    Message(message::MessageArgs),
    Campaign(campaign::CampaignArgs),
    Channel(channel::ChannelArgs),
    Schedule(schedule::ScheduleArgs),
    Audit(audit::AuditArgs),
    Node(node::NodeArgs),
    Ready(ready::ReadyArgs),
    Config(config::ConfigArgs),
    Secret(secret::SecretArgs),
    Store(store::StoreArgs),
    Discover(discover::DiscoverArgs),
    Doctor(doctor::DoctorArgs),
    Kill(kill::KillArgs),
    Lab(lab::LabArgs),
    Completions(completions::CompletionsArgs),
    Contract(contract::Contract),
    Openapi(reference::OpenapiArgs),
    Errors(reference::ErrorsArgs),
    Commands(CommandsArgs),
}

/// Executes the command line and returns its exit code.
pub(crate) fn run() -> ExitCode {
    Program::Product.declare();
    let words = with_server_ca(std::env::args_os().collect());
    let arguments = with_own_lab_commands(Stentor::parse_from(words));
    if let Command::Lab(lab) = &arguments.command {
        return failed(&lab.exec(arguments.json), Output::new(arguments.json || lab.asks_for_json()));
    }
    if matches!(arguments.command, Command::Serve(_) | Command::Emulate(_)) {
        crate::copying::restart_with_tunable();
    }
    let output = Output::new(arguments.json);
    match perform(arguments.command, output) {
        Ok(code) => code,
        Err(error) => failed(&error, output),
    }
}

fn failed(error: &anyhow::Error, output: Output) -> ExitCode {
    output.error(error);
    ExitCode::from(judge(error).0 as u8)
}

/// Reads `--ca` as the option for the server, unless the command has its own `--ca`, because a credential has an authority too.
fn with_server_ca(mut words: Vec<OsString>) -> Vec<OsString> {
    let root = tree();
    let has = |command: &clap::Command, long| command.get_arguments().any(|one| one.get_long() == Some(long));
    let (mut command, mut connects) = (&root, false);
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            connects |= has(command, SERVER_CA);
        }
    }
    if connects && !has(command, "ca") {
        for word in words.iter_mut().skip(1) {
            let rest = word.to_str().and_then(|word| word.strip_prefix("--ca"));
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('=')) {
                *word = format!("--{SERVER_CA}{rest}").into();
            }
        }
    }
    words
}

/// Reads `lab kill …` as `kill …`, for scripts written for earlier versions.
fn with_own_lab_commands(arguments: Stentor) -> Stentor {
    let Command::Lab(lab) = &arguments.command else { return arguments };
    let Some(words) = lab.own() else { return arguments };
    let json = arguments.json.then(|| "--json".into());
    Stentor::parse_from(std::iter::once("stentor".into()).chain(json).chain(words.iter().cloned()))
}

/// Returns the whole command line, for documents that are generated from it.
fn tree() -> clap::Command {
    Stentor::command()
}

fn perform(command: Command, output: Output) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(dispatch(command, output));
    // Remaining tasks are not awaited; a read of standard input, for example, can block forever.
    runtime.shutdown_background();
    done
}

async fn dispatch(command: Command, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(command) => command.run(output).await?,
        Command::Demo(command) => return command.run(output).await,
        Command::Emulate(command) => command.run(output).await?,
        Command::App(command) => command.run(output).await?,
        Command::Device(command) => command.run(output).await?,
        Command::User(command) => command.run(output).await?,
        Command::Group(command) => command.run(output).await?,
        Command::Topic(command) => command.run(output).await?,
        Command::Message(command) => return command.run(output).await,
        Command::Campaign(command) => return command.run(output).await,
        Command::Channel(command) => command.run(output).await?,
        Command::Schedule(command) => command.run(output).await?,
        Command::Audit(command) => command.run(output).await?,
        Command::Node(command) => command.run(output).await?,
        Command::Ready(command) => command.run(output).await?,
        Command::Config(command) => command.run(output)?,
        Command::Secret(command) => command.run(output)?,
        Command::Store(command) => command.run(output).await?,
        Command::Discover(command) => command.run(output).await?,
        Command::Doctor(command) => return command.run(output).await,
        Command::Kill(command) => return command.run(output).await,
        Command::Lab(command) => return Err(command.exec(output.is_json())),
        Command::Completions(command) => command.run()?,
        Command::Contract(command) => command.run(output)?,
        Command::Openapi(command) => command.run()?,
        Command::Errors(command) => command.run(output)?,
        Command::Commands(command) => command.run_with(tree(), &lab::commands()?, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
