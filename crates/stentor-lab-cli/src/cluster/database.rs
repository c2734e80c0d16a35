//! A PostgreSQL server of a cluster, which may be killed, and its standby, which may be promoted.
//!
//! Every commit that the primary acknowledges is on the standby's disk too (`synchronous_standby_names`): a promoted standby has all
//! acknowledged commits.

use super::network::ClusterHost;
use anyhow::{Context, ensure};
use procfs::process::all_processes;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::postgres::{as_user_behind, finish, hand_over, programs};
use stentor_stage::reporter::Reporter;
use stentor_stage::troubles::clock::ShiftedClock;
use stentor_stage::troubles::disk::SmallDisk;

const START_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Size of a disk that is to be filled.
const DISK_BYTES: u64 = 448 << 20;
/// Access rules: everyone on our networks may do everything, since there are no other hosts.
const ACCESS: &str = "host all all all trust\nhost replication all all trust\n";
/// Name by which the primary knows its synchronous standby.
const STANDBY: &str = "standby";

/// One server, alive or not.
pub(crate) struct DatabaseServer {
    /// Host of the server.
    pub(crate) host: ClusterHost,
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    connections_max: u32,
    /// Settings beside the common ones.
    settings: Vec<String>,
    process: Option<Child>,
    disk: Option<SmallDisk>,
    /// The server's clock, if it can be shifted.
    clock: Option<ShiftedClock>,
}

/// Common options of both servers of a pair.
pub(crate) struct DatabaseOptions {
    /// Limit of connections.
    pub(crate) connections_max: u32,
    /// True if commits wait for a standby.
    pub(crate) has_standby: bool,
    /// True if the disk is small enough to be filled.
    pub(crate) is_small: bool,
    /// True if the clock can be shifted.
    pub(crate) has_clock: bool,
}

impl DatabaseServer {
    /// Prepares a server in a folder of its own.
    pub(crate) fn prepare(
        folder: &Path,
        host: ClusterHost,
        options: &DatabaseOptions,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let programs = programs().context("no PostgreSQL 15 or newer is installed (Debian: postgresql)")?;
        std::fs::create_dir_all(folder)?;
        let disk =
            options.is_small.then(|| SmallDisk::mount_bytes(folder, DISK_BYTES, reporter)).transpose()?;
        hand_over(folder)?;
        let clock = options.has_clock.then(|| ShiftedClock::set_up(&folder.with_extension("clock")));
        let clock = clock.transpose()?;
        let settings = options.has_standby.then(|| format!("synchronous_standby_names={STANDBY}"));
        let port = host.free_port()?;
        Ok(Self {
            host,
            folder: folder.to_owned(),
            programs,
            port,
            connections_max: options.connections_max,
            settings: settings.into_iter().collect(),
            process: None,
            disk,
            clock,
        })
    }

    /// Creates an empty database.
    pub(crate) fn init(&self) -> anyhow::Result<()> {
        let mut initdb = self.as_user("initdb");
        initdb.args(["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=postgres", "-D"]);
        initdb.arg(self.data());
        finish(initdb)?;
        let access = std::fs::File::options().append(true).open(self.data().join("pg_hba.conf"));
        Ok(access?.write_all(ACCESS.as_bytes())?)
    }

    /// Makes it the standby of another server, with a copy of its data.
    pub(crate) fn copy_from(&self, primary: &Self) -> anyhow::Result<()> {
        if self.data().exists() {
            std::fs::remove_dir_all(self.data())?;
        }
        let mut copy = self.as_user("pg_basebackup");
        copy.args(["-X", "stream", "-c", "fast", "-U", "postgres", "-h", &primary.host.ip.to_string()]);
        copy.args(["-p", &primary.port.to_string(), "-D"]).arg(self.data());
        finish(copy)?;
        let signal = self.data().join("standby.signal");
        std::fs::write(&signal, "")?;
        Ok(hand_over(&signal)?)
    }

    /// Starts the server and waits until it answers; it follows `primary`, if given.
    pub(crate) fn start(&mut self, primary: Option<&Self>) -> anyhow::Result<()> {
        let mut command = self.server_command();
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
        command.args(["-p", &self.port.to_string()]);
        let mut settings = vec![
            format!("listen_addresses={}", self.host.ip),
            format!("max_connections={}", self.connections_max),
            // A cut connection is dropped soon, and a returning standby finds all changes that it missed.
            "wal_sender_timeout=4s".to_owned(),
            "wal_receiver_timeout=4s".to_owned(),
            "wal_retrieve_retry_interval=500ms".to_owned(),
            "wal_keep_size=96MB".to_owned(),
            "min_wal_size=32MB".to_owned(),
            "max_wal_size=64MB".to_owned(),
        ];
        settings.extend(self.settings.iter().cloned());
        settings.extend(primary.map(|primary| {
            let (ip, port) = (primary.host.ip, primary.port);
            format!("primary_conninfo=host={ip} port={port} user=postgres application_name={STANDBY} connect_timeout=2")
        }));
        for setting in settings {
            command.args(["-c", &setting]);
        }
        let log = std::fs::File::options().create(true).append(true).open(self.log())?;
        self.process = Some(command.stdout(log.try_clone()?).stderr(log).spawn()?);
        self.until_ready()
    }

    /// Kills all its processes (kill -9).
    pub(crate) fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let server = process.id().cast_signed();
        // Listed before the kill, with which they get another parent.
        let stats = all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok());
        let children: Vec<i32> = stats.filter(|stat| stat.ppid == server).map(|stat| stat.pid).collect();
        let _ = process.kill();
        // They notice by themselves, but each in its own time.
        for child in children.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(child, Signal::KILL);
        }
        let _ = process.wait();
    }

    /// Returns true if it runs: on a full disk it may end by itself.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) -> anyhow::Result<()> {
        let mut promote = self.as_user("pg_ctl");
        promote.args(["promote", "-w", "-t", "60", "-D"]).arg(self.data());
        finish(promote)
    }

    /// Runs an SQL statement through psql and returns its output.
    pub(crate) fn ask(&self, sql: &str) -> anyhow::Result<String> {
        let mut ask = Command::new(self.programs.join("psql"));
        ask.args(["-X", "-A", "-t", "-U", "postgres", "-h", &self.host.ip.to_string()]);
        ask.args(["-p", &self.port.to_string(), "-c", sql]).stdin(Stdio::null());
        let output = ask.output()?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Returns its host and port in the form of a URL.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host.ip, self.port)
    }

    /// Its disk, if it can be filled.
    pub(crate) const fn disk(&self) -> Option<&SmallDisk> {
        self.disk.as_ref()
    }

    /// Returns a command that runs the server by its own clock.
    fn server_command(&self) -> Command {
        let Some(clock) = &self.clock else { return self.as_user("postgres") };
        // Set only after the change to the server's user: the library that fakes the clock shares memory among processes of one user.
        let mut command = as_user_behind(&self.host.before(), Path::new("env"));
        for (variable, value) in clock.environment() {
            let mut word = OsString::from(format!("{variable}="));
            word.push(value);
            command.arg(word);
        }
        command.arg(self.programs.join("postgres"));
        command
    }

    /// Its clock, if it can be shifted.
    pub(crate) const fn clock(&self) -> Option<&ShiftedClock> {
        self.clock.as_ref()
    }

    fn until_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let mut command = self.as_user("pg_isready");
            command.args(["-h", &self.host.ip.to_string(), "-p", &self.port.to_string()]);
            if command.stdout(Stdio::null()).status()?.success() {
                return Ok(());
            }
            ensure!(self.is_alive(), "PostgreSQL ended by itself; its log ends with:\n{}", self.log_end());
            ensure!(begun.elapsed() < START_LIMIT, "PostgreSQL does not answer:\n{}", self.log_end());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn as_user(&self, program: &str) -> Command {
        as_user_behind(&self.host.before(), &self.programs.join(program))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The path of the log, beside the folder, because the folder's disk may be full.
    fn log(&self) -> PathBuf {
        self.folder.with_extension("log")
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.kill();
    }
}
