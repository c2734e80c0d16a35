//! Processes of devices, from the side of the bench.

use super::arrivals::ArrivalRow;
use super::orders::{DeviceAnswer, DeviceLogin, DeviceOrder, DeviceSettings, DeviceStatus};
use anyhow::Context;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stentor_stage::child_process::{ChildProcess, ResourceUsage};
use stentor_stage::failure::CommandFailure;
use stentor_stage::programs::Program;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Time without progress after which missing deliveries count as lost.
const PROGRESS_LIMIT: Duration = Duration::from_secs(20);
/// Interval between reads of the status. The measured times come from the devices, so that this pause is in none of them, but each read
/// costs time of a measured core.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Limit of connections that one process makes at the same time.
const CONNECTING_MAX_COUNT: usize = 128;

/// The server of the devices.
#[derive(Debug, Clone)]
pub(crate) struct DeviceServer {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Its certificate authority; without it there is no TLS.
    pub(crate) authority: Option<PathBuf>,
}

/// Processes that share the devices, each with its own source address: one address has some 28,000 ports.
pub(crate) struct DeviceProcesses {
    processes: Vec<DeviceProcess>,
    devices: usize,
}

struct DeviceProcess {
    child: ChildProcess,
    control: BufReader<TcpStream>,
    /// Index of its first device among all.
    first: usize,
}

impl DeviceProcesses {
    /// Starts `count` processes with their files in a directory; no device is connected yet.
    pub(crate) async fn start(
        directory: &Path,
        name: &str,
        server: &DeviceServer,
        logins: &[DeviceLogin],
        count: usize,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let program = [Program::Laboratory.find()?.into()];
        let mut processes = Vec::new();
        for (place, devices) in logins.chunks(logins.len().div_ceil(count).max(1)).enumerate() {
            let settings = DeviceSettings {
                control: listener.local_addr()?,
                server: server.address,
                source: source_of(server.address.ip(), place),
                authority: server.authority.clone(),
                connecting_max_count: CONNECTING_MAX_COUNT,
                devices: devices.to_vec(),
            };
            let file = directory.join(format!("{name}-devices-{place}.json"));
            stentor_stage::files::publish(&file, &serde_json::to_string(&settings)?)?;
            let arguments = ["mqtt-devices".into(), "--settings".into(), file.clone().into_os_string()];
            let child = ChildProcess::start_behind(
                "devices",
                &program,
                &arguments,
                &[],
                &file.with_extension("log"),
            )?;
            let first = processes.iter().map(|process: &(usize, DeviceProcess)| process.0).sum();
            let process = DeviceProcess::accept(child, &listener, first).await?;
            processes.push((devices.len(), process));
        }
        let processes = processes.into_iter().map(|(_, process)| process).collect();
        Ok(Self { processes, devices: logins.len() })
    }

    /// Returns the number of devices.
    pub(crate) const fn devices(&self) -> usize {
        self.devices
    }

    /// Connects all devices, and reconnects them whenever a connection breaks.
    pub(crate) async fn connect(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            process.ask(DeviceOrder::Connect).await?;
        }
        Ok(())
    }

    /// Queries the status of all processes together.
    pub(crate) async fn status(&mut self) -> anyhow::Result<DeviceStatus> {
        let mut all = DeviceStatus::default();
        for process in &mut self.processes {
            let DeviceAnswer::Status(status) = process.ask(DeviceOrder::Status).await? else {
                anyhow::bail!("the devices do not say how far they are");
            };
            all.add(&status);
        }
        Ok(all)
    }

    /// Waits until the condition holds, or until nothing has changed for a long time; returns the status at that time.
    pub(crate) async fn until(
        &mut self,
        is_over: impl Fn(&DeviceStatus) -> bool,
    ) -> anyhow::Result<DeviceStatus> {
        let (mut before, mut changed) = (self.status().await?, Instant::now());
        loop {
            let status = self.status().await?;
            if is_over(&status) {
                return Ok(status);
            }
            if (status.ready, status.distinct) != (before.ready, before.distinct) {
                changed = Instant::now();
            }
            if changed.elapsed() > PROGRESS_LIMIT {
                return Ok(status);
            }
            before = status;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until all devices are connected and subscribed, and returns the status. Fails if there is no progress for a long time.
    pub(crate) async fn until_ready(&mut self) -> anyhow::Result<DeviceStatus> {
        let wanted = self.devices as u64;
        let status = self.until(|status| status.ready == wanted).await?;
        if status.ready == wanted {
            return Ok(status);
        }
        let DeviceStatus { ready, broken, refused, .. } = status;
        let sentence =
            format!("of {wanted} devices {ready} are connected; {refused} attempts failed, {broken} broke");
        Err(CommandFailure::not_done(sentence).into())
    }

    /// Queries the receptions of the messages with these numbers, at all devices together.
    pub(crate) async fn arrivals(&mut self, first: u64, last: u64) -> anyhow::Result<Vec<ArrivalRow>> {
        let mut all: Vec<ArrivalRow> = Vec::new();
        for process in &mut self.processes {
            let DeviceAnswer::Arrivals(rows) = process.ask(DeviceOrder::Arrivals { first, last }).await?
            else {
                anyhow::bail!("the devices do not report their arrivals");
            };
            for row in rows {
                let first_device = process.first + row.first_device;
                all.push(ArrivalRow { first_device, ..row });
            }
        }
        Ok(together(all))
    }

    /// Returns the processes' usage of the machine so far.
    pub(crate) fn usage(&mut self) -> ResourceUsage {
        self.processes.iter_mut().map(|process| process.child.usage()).fold(
            ResourceUsage::default(),
            |all, one| ResourceUsage {
                cpu_seconds: all.cpu_seconds + one.cpu_seconds,
                peak_rss_bytes: all.peak_rss_bytes + one.peak_rss_bytes,
            },
        )
    }
}

impl DeviceProcess {
    async fn accept(mut child: ChildProcess, listener: &TcpListener, first: usize) -> anyhow::Result<Self> {
        let accepted = tokio::time::timeout(PROGRESS_LIMIT, listener.accept()).await;
        let Ok(accepted) = accepted else {
            child.check_alive()?;
            anyhow::bail!("the devices do not start; their log ends with:\n{}", child.log_end());
        };
        let (control, _) = accepted?;
        control.set_nodelay(true)?;
        Ok(Self { child, control: BufReader::new(control), first })
    }

    async fn ask(&mut self, order: DeviceOrder) -> anyhow::Result<DeviceAnswer> {
        let mut line = serde_json::to_string(&order)?;
        line.push('\n');
        self.control.get_mut().write_all(line.as_bytes()).await?;
        line.clear();
        if self.control.read_line(&mut line).await? == 0 {
            self.child.check_alive()?;
            anyhow::bail!("the devices have gone; their log ends with:\n{}", self.child.log_end());
        }
        serde_json::from_str(&line).context("the devices answer something else")
    }
}

impl DeviceStatus {
    fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.ready_us = self.ready_us.max(other.ready_us);
        self.broken += other.broken;
        self.refused += other.refused;
        self.distinct += other.distinct;
        self.repeats += other.repeats;
        self.unnumbered += other.unnumbered;
    }
}

/// Returns the address of this machine from which the devices of a process connect.
fn source_of(server: IpAddr, process: usize) -> IpAddr {
    match server {
        IpAddr::V4(_) => Ipv4Addr::new(127, 0, 1, u8::try_from(process % 250).unwrap_or(0) + 1).into(),
        IpAddr::V6(_) => server,
    }
}

/// Merges the rows of the same message from different processes.
fn together(mut rows: Vec<ArrivalRow>) -> Vec<ArrivalRow> {
    rows.sort_by_key(|row| row.number);
    let mut all: Vec<ArrivalRow> = Vec::new();
    for row in rows {
        match all.last_mut().filter(|last| last.number == row.number) {
            Some(last) => {
                last.devices += row.devices;
                last.repeats += row.repeats;
                last.last_us = last.last_us.max(row.last_us);
            }
            None => all.push(row),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, devices: u64, first_device: usize, last_us: u64) -> ArrivalRow {
        ArrivalRow { number, devices, repeats: 1, first_device, last_us }
    }

    #[test]
    fn what_two_processes_have_of_one_message_is_added_up() {
        let rows = together(vec![row(1, 5, 0, 30), row(2, 1, 3, 9), row(1, 4, 10, 20)]);
        let both = ArrivalRow { repeats: 2, ..row(1, 9, 0, 30) };
        assert_eq!(rows, [both, row(2, 1, 3, 9)]);
    }

    #[test]
    fn each_process_has_a_source_of_its_own() {
        let server = IpAddr::from(Ipv4Addr::LOCALHOST);
        let sources = [0, 1, 249].map(|process| source_of(server, process).to_string());
        assert_eq!(sources, ["127.0.1.1", "127.0.1.2", "127.0.1.250"]);
    }
}
