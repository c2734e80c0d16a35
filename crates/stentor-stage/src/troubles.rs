//! Trouble below the server while a campaign runs: a full disk, a failing disk, a jumping clock. Each is injected into the real process by
//! means of the operating system. If those means are missing, the trouble is skipped and the reason reported.

mod acceptance;
pub mod clock;
pub mod disk;
mod sync;

use crate::child_process::ChildProcess;
use crate::client::ApiClient;
use crate::reporter::Reporter;
pub use acceptance::AcceptanceCheck;
use anyhow::Context;
use clock::ShiftedClock;
use disk::SmallDisk;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of times that the trouble is injected in one campaign.
pub const TIMES: u32 = 2;
/// The minimum duration of the trouble.
const LASTS: Duration = Duration::from_millis(1_500);
/// By when it must have been noticed, and by when it must be over.
const LIMIT: Duration = Duration::from_secs(60);
/// Refusals that are enough to believe that it was noticed.
const ENOUGH_REFUSALS: u64 = 3;

/// The settings of a server in trouble: small chunks, and few of them at a time, so that its campaign lasts.
pub fn settings(devices: u64) -> String {
    let chunk = (devices / 100).clamp(10, 1_000);
    let unsettled = 10 * chunk;
    // A credential refused for the clock's sake is tried again soon, or the campaign would wait for that and show nothing.
    format!(
        "[pipeline]\nchunk_max_devices = {chunk}\nmax_unsettled_deliveries = {unsettled}\ncredential_probe_ms = 2_000\n"
    )
}

/// A fault below the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The file system of the data directory has no room left.
    DiskFull,
    /// Every fsync of the server fails.
    FsyncError,
    /// The server's clock goes an hour ahead, an hour behind, and back.
    ClockJump,
}

impl Trouble {
    /// Returns the reason why the trouble cannot be injected here, with a remedy; `None` if it can.
    pub fn obstacle(self, reporter: &Arc<dyn Reporter>) -> Option<String> {
        match self {
            Self::DiskFull => disk::obstacle(reporter),
            Self::FsyncError => sync::obstacle(),
            Self::ClockJump => clock::obstacle(),
        }
    }

    /// Returns true if a server in this trouble must refuse new messages.
    pub const fn refuses(self) -> bool {
        matches!(self, Self::DiskFull | Self::FsyncError)
    }
}

/// The means to inject the trouble of one server.
#[derive(Default)]
pub struct TroubleInjector {
    trouble: Option<Trouble>,
    disk: Option<SmallDisk>,
    clock: Option<ShiftedClock>,
}

impl TroubleInjector {
    /// Prepares it for a server that will keep `devices` in `data_dir`.
    pub fn prepare(
        trouble: Option<Trouble>,
        directory: &Path,
        data_dir: &Path,
        devices: u64,
        reporter: &Arc<dyn Reporter>,
    ) -> anyhow::Result<Self> {
        let disk = match trouble {
            Some(Trouble::DiskFull) => Some(SmallDisk::mount(data_dir, devices, reporter)?),
            _ => None,
        };
        let clock = match trouble {
            Some(Trouble::ClockJump) => Some(ShiftedClock::set_up(&directory.join("clock"))?),
            _ => None,
        };
        Ok(Self { trouble, disk, clock })
    }

    /// The environment variables that the server needs.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        self.clock.as_ref().map(ShiftedClock::environment).unwrap_or_default()
    }

    /// Injects the trouble, sends messages to the server during it, ends it, and sends messages until the server accepts them again.
    pub async fn inject(
        &mut self,
        server: &mut ChildProcess,
        client: &ApiClient,
        acceptance: &mut AcceptanceCheck,
    ) -> anyhow::Result<()> {
        match self.trouble {
            None => return Ok(()),
            Some(Trouble::DiskFull) => self.fill_the_disk(server, client, acceptance).await?,
            Some(Trouble::FsyncError) => fail_to_sync(server, client, acceptance).await?,
            Some(Trouble::ClockJump) => self.shift_the_clock(server, client, acceptance).await?,
        }
        server.check_alive()?;
        let mended = acceptance.until_kept(client, LIMIT).await;
        mended.with_context(|| format!("the server's log ends with:\n{}", server.log_end()))
    }

    async fn fill_the_disk(
        &self,
        server: &mut ChildProcess,
        client: &ApiClient,
        acceptance: &mut AcceptanceCheck,
    ) -> anyhow::Result<()> {
        let Some(disk) = &self.disk else { return Ok(()) };
        let (began, before) = (Instant::now(), acceptance.refused());
        while began.elapsed() < LASTS || acceptance.refused() < before + ENOUGH_REFUSALS {
            // Space that the server frees in the meantime is filled again.
            disk.fill()?;
            acceptance.ask(client).await?;
            server.check_alive()?;
            if began.elapsed() > LIMIT {
                break;
            }
        }
        disk.empty()
    }

    async fn shift_the_clock(
        &self,
        server: &mut ChildProcess,
        client: &ApiClient,
        acceptance: &mut AcceptanceCheck,
    ) -> anyhow::Result<()> {
        let Some(clock) = &self.clock else { return Ok(()) };
        for offset_seconds in clock::JUMPS_SECONDS {
            clock.shift(offset_seconds)?;
            let shifted = acceptance.until_it_is(offset_seconds, client, LIMIT).await;
            shifted.with_context(|| format!("the server's log ends with:\n{}", server.log_end()))?;
            let began = Instant::now();
            while began.elapsed() < LASTS {
                acceptance.ask(client).await?;
            }
        }
        Ok(())
    }
}

/// Makes syncs fail. From the first failed sync until the last, no message may be accepted.
async fn fail_to_sync(
    server: &mut ChildProcess,
    client: &ApiClient,
    acceptance: &mut AcceptanceCheck,
) -> anyhow::Result<()> {
    let mut failures = sync::SyncFailures::attach(server.id())?;
    let (began, mut requests) = (Instant::now(), 0);
    while !failures.has_failed_one() && began.elapsed() < LIMIT {
        acceptance.ask(client).await?;
        server.check_alive()?;
    }
    let (kept_before, began) = (acceptance.kept(), Instant::now());
    while began.elapsed() < LASTS || requests < ENOUGH_REFUSALS {
        acceptance.ask(client).await?;
        requests += 1;
        server.check_alive()?;
    }
    acceptance.note_lies(acceptance.kept() - kept_before);
    failures.detach()
}
