//! A party of a one-way-delay test, as a process with a clock of its own.

use anyhow::Context;
use clap::{Args, ValueEnum};
use std::io::BufWriter;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, ExitCode};
use std::time::Duration;
use stentor_rig::clock::Drifting;
use stentor_rig::clock::party::{self, Protocol};
use stentor_rig::clock::trial::{Orders, Role};
use stentor_terminal::process::end_with_parent;

/// Take part in a one-way-delay test
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  Started by `stentor lab clock selftest`, twice: once for the phone, once for the server.")]
pub(super) struct PartyArgs {
    #[arg(long)]
    role: RoleName,
    #[arg(long)]
    time_server: SocketAddr,
    #[arg(long)]
    server: SocketAddr,
    #[arg(long)]
    tests: u32,
    #[arg(long)]
    blocks: u32,
    #[arg(long)]
    messages: u32,
    #[arg(long)]
    interval_us: u64,
    #[arg(long)]
    queries: u32,
    #[arg(long = "ahead-ns", value_name = "AHEAD_NS", allow_negative_numbers = true)]
    offset_ns: i64,
    #[arg(long, allow_negative_numbers = true)]
    fast_ppb: i64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    Phone,
    Server,
}

impl PartyArgs {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        end_with_parent();
        tokio::task::spawn_blocking(move || self.take_part()).await??;
        Ok(ExitCode::SUCCESS)
    }

    fn take_part(&self) -> anyhow::Result<()> {
        let protocol = Protocol {
            tests: self.tests,
            blocks: self.blocks,
            messages: self.messages,
            interval: Duration::from_micros(self.interval_us),
            queries: self.queries,
        };
        let clock = Drifting { offset_ns: self.offset_ns, fast_ppb: self.fast_ppb, since_ns: 0 };
        let out = BufWriter::new(std::io::stdout().lock());
        let mut party = party::Party::start(clock, self.time_server, protocol, out)?;
        match self.role {
            RoleName::Phone => party.be_phone(&UdpSocket::bind("0.0.0.0:0")?, self.server)?,
            RoleName::Server => party.be_server(&UdpSocket::bind(self.server)?)?,
        }
        Ok(())
    }
}

/// Returns the command that runs a party.
pub(super) fn command(party_orders: &Orders) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program cannot be found again")?);
    let role = match party_orders.role {
        Role::Phone => "phone",
        Role::Server => "server",
    };
    let protocol = &party_orders.protocol;
    command.args(["clock", "party", "--role", role]);
    let mut option = |name: &str, value: String| {
        command.arg(format!("--{name}={value}"));
    };
    option("time-server", party_orders.time_server.to_string());
    option("server", party_orders.server.to_string());
    option("tests", protocol.tests.to_string());
    option("blocks", protocol.blocks.to_string());
    option("messages", protocol.messages.to_string());
    option("interval-us", protocol.interval.as_micros().to_string());
    option("queries", protocol.queries.to_string());
    option("ahead-ns", party_orders.clock.offset_ns.to_string());
    option("fast-ppb", party_orders.clock.fast_ppb.to_string());
    Ok(command)
}
