//! Connected devices, and messages to all of them.

use super::GatewayOptions;
use super::publisher::Publisher;
use super::report::{ConnectionRow, MessagesToAllRow};
use super::setting::GatewaySetting;
use crate::device_load::process::DeviceProcesses;
use anyhow::Context;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stentor_stage::child_process::{cpu_seconds, rss_bytes};
use stentor_stage::reporter::Reporter;

/// Time after which a connection is idle and the memory of its login is released.
const IDLE: Duration = Duration::from_secs(2);

/// Devices at one server.
pub(super) struct DeviceTrial {
    pub(super) devices: DeviceProcesses,
    pub(super) publisher: Publisher,
    /// Number of the last message.
    pub(super) number: u64,
    process: u32,
}

/// Processor seconds so far, of the server and of the devices.
#[derive(Clone, Copy)]
struct UsedSeconds {
    server: f64,
    devices: f64,
}

impl DeviceTrial {
    /// Prepares devices at the gateway.
    pub(super) async fn of_gateway(
        setting: &mut GatewaySetting,
        directory: &Path,
        name: &str,
        options: &GatewayOptions,
    ) -> anyhow::Result<Self> {
        let (at, logins) = (&setting.devices_at, &setting.logins);
        let devices = DeviceProcesses::start(directory, name, at, logins, options.processes).await?;
        let process = setting.server.process().context("the server does not run")?.id();
        Ok(Self::new(devices, Publisher::Api(setting.client.clone()), process))
    }

    /// Takes over devices at a server with this process id.
    pub(super) const fn new(devices: DeviceProcesses, publisher: Publisher, process: u32) -> Self {
        Self { devices, publisher, number: 0, process }
    }

    /// Connects all devices, and measures their cost while they are idle.
    pub(super) async fn connections(&mut self, reporter: &dyn Reporter) -> anyhow::Result<ConnectionRow> {
        let (rss_before, used_before) = (rss_bytes(self.process)?, self.used()?);
        let began = now_us();
        self.devices.connect().await?;
        let status = self.devices.until_ready().await?;
        let seconds = since(began, status.ready_us);
        tokio::time::sleep(IDLE).await;
        let connections = self.devices.devices();
        let grown = rss_bytes(self.process)?.saturating_sub(rss_before);
        let row = ConnectionRow {
            connections,
            idle_bytes: grown as f64 / connections as f64,
            per_second: connections as f64 / seconds,
            server_cpu_us_each: (self.used()?.server - used_before.server) * 1e6 / connections as f64,
            to_all: None,
        };
        let (rate, bytes) = (row.per_second, row.idle_bytes);
        reporter.line(&format!(
            "{connections} connections, {rate:.0} a second; {bytes:.0} bytes for each while idle"
        ));
        Ok(row)
    }

    /// Measures messages to all devices, one after the other and then several at once.
    pub(super) async fn messages_to_all(
        &mut self,
        options: &GatewayOptions,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<MessagesToAllRow> {
        let mut row = MessagesToAllRow::default();
        // The first message warms caches and buffers before the clock starts; its losses count all the same.
        let mut first = MessagesToAllRow::default();
        self.send_to_all(1, &mut first).await?;
        let before = self.used()?;
        for _ in 0..options.rounds {
            self.send_to_all(1, &mut row).await?;
        }
        let used = self.used()?;
        let deliveries = f64::from(options.rounds) * self.devices.devices() as f64;
        row.server_cpu_per_thousand = (used.server - before.server) * 1e3 / deliveries;
        row.devices_cpu_per_thousand = (used.devices - before.devices) * 1e3 / deliveries;
        let mut burst = MessagesToAllRow::default();
        if options.burst > 0 {
            let before = self.used()?;
            self.send_to_all(options.burst, &mut burst).await?;
            let deliveries = f64::from(options.burst) * self.devices.devices() as f64;
            row.burst_cpu_per_thousand = (self.used()?.server - before.server) * 1e3 / deliveries;
            row.burst_rates = burst.rates.clone();
        }
        for other in [&first, &burst] {
            row.lost += other.lost;
            row.repeats += other.repeats;
            row.receipts_missing += other.receipts_missing;
        }
        let rate = row.rates.quantile(0.5).unwrap_or_default();
        reporter.line(&format!("{rate:.0} deliveries a second, {} lost", row.lost));
        Ok(row)
    }

    /// Sends `messages` messages to all at once, and counts their deliveries at the devices.
    async fn send_to_all(&mut self, messages: u32, row: &mut MessagesToAllRow) -> anyhow::Result<()> {
        let (first, wanted) = (self.number + 1, u64::from(messages) * self.devices.devices() as u64);
        let before = self.devices.status().await?.distinct;
        let mut campaigns = Vec::new();
        let sent_at_us = now_us();
        for _ in 0..messages {
            self.number += 1;
            campaigns.extend(self.publisher.publish(self.number).await?);
        }
        self.devices.until(|status| status.distinct >= before + wanted).await?;
        let rows = self.devices.arrivals(first, self.number).await?;
        let came: u64 = rows.iter().map(|row| row.devices).sum();
        let seconds = since(sent_at_us, rows.iter().map(|row| row.last_us).max().unwrap_or(sent_at_us));
        row.lost += wanted - came.min(wanted);
        row.repeats += rows.iter().map(|row| row.repeats).sum::<u64>();
        row.rates.push(came as f64 / seconds);
        row.last_ms.push(seconds * 1e3);
        let each = self.devices.devices() as u64;
        for campaign in campaigns {
            row.receipts_missing += each - self.publisher.receipts(&campaign, each).await?.min(each);
        }
        row.receipts_ms.push(since(sent_at_us, now_us()) * 1e3);
        Ok(())
    }

    fn used(&mut self) -> anyhow::Result<UsedSeconds> {
        Ok(UsedSeconds { server: cpu_seconds(self.process)?, devices: self.devices.usage().cpu_seconds })
    }

    /// Measures another process from now on, because the server was restarted.
    pub(super) const fn look_at(&mut self, process: u32) {
        self.process = process;
    }
}

/// Returns the time in microseconds since 1970.
pub(super) fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the seconds between two times, a microsecond at least.
pub(super) fn since(began_us: u64, ended_us: u64) -> f64 {
    ended_us.saturating_sub(began_us).max(1) as f64 / 1e6
}
