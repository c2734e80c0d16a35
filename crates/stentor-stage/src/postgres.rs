//! A PostgreSQL server of the stage's own: its files lie in a temporary directory, it listens on a socket there alone, and it ends
//! with the stage. The system's server is not used.

use anyhow::{Context, bail, ensure};
use procfs::process::{Process, all_processes};
use std::ffi::OsString;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The directory where Debian installs the programs of each major version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// The user that the server runs as where we are root: it refuses root.
const USER: &str = "postgres";
const OLDEST_VERSION: u32 = 15;
const START_LIMIT: Duration = Duration::from_secs(60);
/// Each table is counted: the server's statistics are estimates.
const COUNT_ROWS: &str = "SELECT coalesce(sum((xpath('//rows/text()', query_to_xml(
    format('SELECT count(*) AS rows FROM %I.%I', schemaname, relname), false, true, '')))[1]::text::bigint), 0)
    FROM pg_stat_user_tables";
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running server with an empty database.
pub struct PrivatePostgres {
    folder: TempDir,
    programs: PathBuf,
    server: Child,
}

impl PrivatePostgres {
    /// Creates a cluster with the server's own defaults and starts it.
    pub fn start() -> anyhow::Result<Self> {
        let programs = programs().context("no PostgreSQL 15 or newer is installed (Debian: postgresql)")?;
        let folder = tempfile::Builder::new().prefix("stentor-postgres-").tempdir()?;
        hand_over(folder.path())?;
        let data = folder.path().join("data");
        let mut initdb = as_user(&programs.join("initdb"));
        initdb
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=postgres", "-D"])
            .arg(&data);
        finish(initdb)?;
        let mut command = as_user(&programs.join("postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(folder.path()).args(["-c", "listen_addresses="]);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let started = Self { folder, programs, server };
        started.until_ready()?;
        Ok(started)
    }

    /// Returns where its database is.
    pub fn url(&self) -> String {
        format!("postgres://postgres@/postgres?host={}", self.folder.path().display())
    }

    /// Returns the environment variables that make a server use this store.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![("STENTOR__STORE__ENGINE", "postgres".into()), ("STENTOR__STORE__URL", self.url().into())]
    }

    /// Returns the processor time of all its processes so far, including those that have ended.
    pub fn cpu_seconds(&self) -> f64 {
        let server = self.server.id().cast_signed();
        let of_server = Process::new(server).and_then(|process| process.stat());
        let ended =
            of_server.map_or(0, |stat| stat.utime + stat.stime + (stat.cutime + stat.cstime).cast_unsigned());
        let stats = all_processes().into_iter().flatten().flatten().filter_map(|process| process.stat().ok());
        let alive: u64 = stats.filter(|stat| stat.ppid == server).map(|stat| stat.utime + stat.stime).sum();
        (ended + alive) as f64 / procfs::ticks_per_second() as f64
    }

    /// Returns the size of the tables and indexes of all its databases, without the write-ahead log.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        bytes_below(&self.folder.path().join("data").join("base"))
    }

    /// Counts the rows of all tables of its database.
    pub fn rows(&self) -> anyhow::Result<u64> {
        let mut command = as_user(&self.programs.join("psql"));
        command.args([
            "--no-psqlrc",
            "--tuples-only",
            "--no-align",
            "--username=postgres",
            "--dbname=postgres",
            "--host",
        ]);
        let output = command.arg(self.folder.path()).args(["--command", COUNT_ROWS]).output()?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    }

    fn until_ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let mut command = as_user(&self.programs.join("pg_isready"));
            if command.arg("-h").arg(self.folder.path()).stdout(Stdio::null()).status()?.success() {
                return Ok(());
            }
            ensure!(begun.elapsed() < START_LIMIT, "PostgreSQL does not answer");
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        let mut stop = as_user(&self.programs.join("pg_ctl"));
        stop.args(["stop", "-m", "immediate", "-D"]).arg(self.folder.path().join("data"));
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns the size of all files below a directory.
pub fn bytes_below(directory: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { bytes_below(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

/// Finds the programs of the newest installed server.
pub fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PROGRAMS).ok()?.flatten();
    let version = |path: PathBuf| Some((path.file_name()?.to_str()?.parse::<u32>().ok()?, path));
    let versions = versions.filter_map(|entry| version(entry.path()));
    let newest = versions.filter(|(version, _)| *version >= OLDEST_VERSION).max()?;
    Some(newest.1.join("bin")).filter(|programs| programs.join("initdb").exists())
}

/// Returns a command that runs as the server's user.
pub fn as_user(program: &Path) -> Command {
    as_user_behind(&[], program)
}

/// Returns a command that runs as the server's user, behind commands that replace themselves by it.
pub fn as_user_behind(before: &[OsString], program: &Path) -> Command {
    let mut words = before.to_vec();
    if rustix::process::geteuid().is_root() {
        words.extend(["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"].map(OsString::from));
    }
    words.push(program.as_os_str().to_owned());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/").stdin(Stdio::null());
    command
}

/// Lets the server's user have a folder.
pub fn hand_over(folder: &Path) -> std::io::Result<()> {
    if rustix::process::geteuid().is_root() { chown(folder, id("-u"), id("-g")) } else { Ok(()) }
}

fn id(flag: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, USER]).output().ok()?.stdout;
    String::from_utf8_lossy(&output).trim().parse().ok()
}

/// Runs a command to its end.
pub fn finish(mut command: Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))
}
