//! `stentor lab cluster`: several servers over one PostgreSQL database, and one fault after the other while they send.

use crate::cluster::{self, ClusterOptions, ClusterReport, FaultKind, RoleMix};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_stage::engines::StageQueue;
use stentor_terminal::demo_report::describe;
use stentor_terminal::failure::{CommandFailure, Exit};
use stentor_terminal::output::{Output, thousands};
use stentor_terminal::progress::on_the_terminal;

/// Kill, stop and cut off servers, their database and their queue while they send, and prove that nothing was lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab cluster
  stentor lab cluster --nodes 3 --faults 10 --devices 20000 --seed 7 --json
  stentor lab cluster --faults 100 --queue nats --devices 40000 --json
  stentor lab cluster --faults 5 --kind database-promotion --kind node-pause
  stentor lab cluster --faults 8 --kind node-version --kind node-kill --older ./stentor-0.1

Servers, PostgreSQL (15 or newer must be installed) with a standby, with --queue nats three nats-servers (lab/brokers/install), and two
emulators run on this machine; as root each in a network namespace of its own, between which packets can be made to go nowhere. One
campaign goes to all devices, slowly. Beside it, sent to any server that answers: imports, campaigns to topics and single messages;
campaigns that are put off, paused and canceled; and devices of the gateway, which get campaigns, those of a schedule that fires each
minute too, confirm them, and send to their app. The kinds of faults:

  node-kill, node-absence   kill -9 of a server, back at once or after the others declared it dead (three seconds)
  node-pause                SIGSTOP and SIGCONT of a server, longer than that
  node-clock                a server's clock is an hour wrong (libfaketime)
  node-clock-death          a server is killed (kill -9) while its clock is an hour ahead, and is back with the right time after the others
                            declared it dead
  node-version              a server ends in order and another version of it starts in its place (--older)
  node-from-database, node-from-queue, node-from-push-services
                            a server cannot reach one of these (root)
  node-from-queue-leader    a server cannot reach the nats-server that leads the stream, but the other two (root)
  node-from-standby         a server cannot reach the standby, and is killed and restarted in that state (root)
  database-kill, standby-kill
                            kill -9 of all processes of one PostgreSQL, which is started again
  database-promotion        kill -9 of the primary; the standby is promoted, and the former primary becomes its standby
  database-loss             the same, and no server is notified: the connections just fall silent (root)
  standby-partition         primary and standby cannot reach each other (root)
  database-clock            the primary's clock is five minutes wrong, and with it that of all servers (libfaketime)
  database-disk-full        the primary's disk, a small tmpfs, is full (root)
  queue-kill                kill -9 of the nats-server that leads the stream
  queue-partition           it cannot reach the other two (root)
  queue-follower-partition  one of the other two cannot reach the leader and the third (root)
  queue-pair-partition      the leader and one other cannot reach each other, but the third (root)
  queue-deletion            the stream is deleted
  queue-wipe                all nats-servers are killed and their files removed
  push-service-kill         kill -9 of an emulator

With --roles mixed the first server serves the API and devices, and the others do the rest; with --roles drawn the seed spreads the
roles. With --older one server runs an older program from the start; it must be able to use the schema of this one. `node-version` puts the
present program in its place, and then the older one in that of any server, and so on: a rolling upgrade, and one back.

Kinds, places and times follow from the seed; each round has every kind once. A kind that cannot be made here is skipped with its
reason. The next fault begins when every server has taken a message again. With --json the result is an object on the last line: `faults`,
`lost`, `stuck`, `duplicates`, `duplicate_bound`, `ledger_balanced` and `faults_by_kind` are made for scripts. The exit code is 0 only if
nothing is lost or stuck, every 202 is in the ledger and has ended, duplicates are marked and within their bound and the books balance.")]
pub(crate) struct ClusterArgs {
    /// Number of servers
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16))]
    nodes: u32,
    /// Number of faults
    #[arg(long, default_value_t = 4, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    faults: u32,
    /// Number of devices of the campaign: half through FCM, half through APNs
    #[arg(long, default_value_t = 4_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    devices: u64,
    /// Queue of the waiting chunks: postgres, nats (three servers), or memory or sqlite (each server its own)
    #[arg(long, default_value = "postgres", value_name = "QUEUE")]
    queue: StageQueue,
    /// Roles of the servers: all (each server has every role), mixed (the first one serves the API and devices, the others have the other
    /// roles) or drawn (from the seed)
    #[arg(long, default_value = "all", value_name = "MIX")]
    roles: RoleMix,
    /// Number of devices of the gateway
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1_000))]
    gateway_devices: u64,
    /// Leave the standby of the database out
    #[arg(long)]
    no_standby: bool,
    /// Inject faults of this kind; may be given more than once [default: all kinds]
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<FaultKind>,
    /// Seed of tokens, answers, and the kinds, places and times of faults
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// An older stentor program, which one of the servers runs
    #[arg(long, value_name = "PROGRAM")]
    older: Option<PathBuf>,
    /// Keep all files in this directory; it must be empty or not exist
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl ClusterArgs {
    /// Runs the cluster; the exit code shows the result of the proof.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = stentor_terminal::process::asked_to_end()?;
        stentor_terminal::process::raise_file_limit();
        let (nodes, seed, queue, roles) = (self.nodes, self.seed, self.queue.word(), self.roles);
        let older = self.older.clone();
        let options = self.options()?;
        let reporter = on_the_terminal();
        let report = tokio::select! {
            report = cluster::run(&options, &reporter) => report?,
            () = ended => {
                return Err(CommandFailure::new(Exit::Interrupted, "interrupted; every process is ended").into());
            }
        };
        let mut object = report.object();
        object["nodes"] = nodes.into();
        object["seed"] = seed.into();
        object["queue"] = queue.into();
        object["roles"] = roles.word().into();
        object["older"] = serde_json::json!(older);
        output.result(&object, || written(&report))?;
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn options(self) -> anyhow::Result<ClusterOptions> {
        let Self {
            nodes,
            faults,
            devices,
            queue,
            roles,
            gateway_devices,
            no_standby,
            kinds,
            seed,
            older,
            keep,
        } = self;
        if matches!(queue, StageQueue::NatsAt(_)) {
            return Err(CommandFailure::usage("--queue: the nats-servers are the cluster's own: nats").into());
        }
        let has_standby = !no_standby;
        let older = older.map(|program| program.canonicalize().map_err(|cause| not_there(&program, &cause)));
        let older = older.transpose()?;
        Ok(ClusterOptions {
            nodes,
            faults,
            devices,
            seed,
            queue,
            has_standby,
            kinds,
            older,
            roles,
            gateway_devices,
            keep,
        })
    }
}

fn not_there(program: &Path, cause: &std::io::Error) -> CommandFailure {
    CommandFailure::usage(format!("--older: {} cannot be run: {cause}", program.display()))
}

/// Writes the report of the campaign, of the faults, and of the activities beside it.
fn written(report: &ClusterReport) -> String {
    let faults = report.by_kind().into_iter().map(|(kind, (count, slowest))| {
        format!("{kind:<24} {count:>3}   all servers served again within {slowest:.1} s")
    });
    let faults: Vec<_> = faults.collect();
    let beside = &report.beside;
    let beside = format!(
        "beside    {} devices imported, {} messages with {} deliveries: {} lost, {} stuck, {} duplicates, the slowest answer after {:.1} s",
        thousands(beside.imported),
        thousands(beside.messages),
        thousands(beside.deliveries),
        beside.lost,
        beside.stuck,
        beside.duplicates,
        beside.slowest_seconds
    );
    let beside = [Some(beside), Some(controlled(report)), at_gateway(report)];
    let beside: Vec<_> = beside.into_iter().flatten().collect();
    [faults.join("\n"), beside.join("\n"), describe(&report.campaign)].join("\n\n")
}

fn controlled(report: &ClusterReport) -> String {
    let (found, counts) = (&report.controlled, report.controlled.counts);
    format!(
        "          {} campaigns put off, {} paused, {} canceled with {} deliveries: {} lost, {} stuck",
        counts.put_off, counts.paused, counts.canceled, found.canceled_deliveries, found.lost, found.stuck
    )
}

fn at_gateway(report: &ClusterReport) -> Option<String> {
    let found = report.gateway.as_ref()?;
    Some(format!(
        "          {} devices of the gateway, {} messages and {} minutes of a schedule for them, {} messages of theirs: {} lost, {} stuck",
        found.devices,
        thousands(found.messages),
        found.minutes,
        thousands(found.upstream_read()),
        found.lost,
        found.stuck
    ))
}
