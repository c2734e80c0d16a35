//! A kill of the server while a message is on its way to all devices, and the reconnection of all devices at once.

use super::messages_to_all::{DeviceTrial, now_us, since};
use super::report::StormRow;
use super::setting::GatewaySetting;
use anyhow::Context;
use stentor_stage::reporter::Reporter;

impl DeviceTrial {
    /// Kills the server as soon as it has accepted a message for all, restarts it, and waits for the devices and for their missing
    /// deliveries.
    pub(super) async fn storm(
        &mut self,
        setting: &mut GatewaySetting,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<StormRow> {
        let (before, wanted) = (self.devices.status().await?, self.devices.devices() as u64);
        self.number += 1;
        let campaign = self.publisher.publish(self.number).await?.context("a storm is of the gateway's")?;
        let killed_us = now_us();
        setting.server.kill_and_restart().await?;
        let started_us = now_us();
        self.look_at(setting.server.process().context("the server does not run")?.id());
        let is_back = |broken: u64, ready: u64| broken >= before.broken + wanted && ready == wanted;
        let status = self.devices.until(|status| is_back(status.broken, status.ready)).await?;
        let came = self.devices.until(|status| status.distinct >= before.distinct + wanted).await?;
        let row = self.devices.arrivals(self.number, self.number).await?.into_iter().next();
        let (devices, repeats) = row.as_ref().map_or((0, 0), |row| (row.devices, row.repeats));
        let receipts = self.publisher.receipts(&campaign, wanted).await?;
        let row = StormRow {
            seconds_from_kill: since(killed_us, status.ready_us),
            seconds_from_start: since(started_us, status.ready_us),
            is_complete: is_back(status.broken, status.ready),
            failed_attempts: came.refused - before.refused,
            lost: wanted - devices.min(wanted),
            repeats,
            receipts_missing: wanted - receipts.min(wanted),
        };
        let (seconds, lost) = (row.seconds_from_start, row.lost);
        reporter.line(&format!("after a kill all are back {seconds:.2} s after the start; {lost} lost"));
        Ok(row)
    }
}
