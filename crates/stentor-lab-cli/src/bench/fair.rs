//! The delay that nine hostile apps cause to a tenth one.

mod apps;
mod hostility;
mod setting;
mod sockets;
mod tenth;

pub(crate) use apps::{HostileAppCounts, HostileBehaviour};
use hostility::Attack;
use serde_json::{Value, json};
use setting::FairStage;
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::reporter::Reporter;
pub(crate) use tenth::TenthAppTimes;

/// Largest ratio of the tenth app's times beside hostile apps to those on an idle server.
const TIMES: f64 = 3.0;
/// Permitted further time, if the ratio is less than the noise of a machine.
const MARGIN_MS: f64 = 50.0;

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct FairOptions {
    /// Behaviours of the hostile apps.
    pub(crate) behaviours: Vec<HostileBehaviour>,
    /// Duration of the hostile behaviour.
    pub(crate) span: Duration,
    /// Duration of the measurement of the tenth app alone.
    pub(crate) idle_span: Duration,
    /// Devices in the large audiences of the hostile apps.
    pub(crate) devices: u64,
}

/// Times of the tenth app alone and beside the others, and counts of the others.
pub(crate) struct FairReport {
    /// Times of the tenth app alone.
    pub(crate) idle: TenthAppTimes,
    /// Times of the tenth app beside the others.
    pub(crate) hostile: TenthAppTimes,
    /// Outcomes of the others' requests.
    pub(crate) counts: Vec<HostileAppCounts>,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(options: &FairOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<FairReport> {
    let mut stage = FairStage::build(options.devices, &options.behaviours, reporter).await?;
    reporter.line("the tenth app alone");
    let idle = stage.measure(options.idle_span).await?;
    reporter.line("the tenth app beside hostile ones");
    let attack = Attack::begin(stage.apps())?;
    let hostile = stage.measure(options.span).await?;
    let counts = attack.end();
    stage.check_alive()?;
    Ok(FairReport { idle, hostile, counts })
}

impl FairReport {
    /// Returns true if the tenth app was never refused and both its times are within the limits.
    pub(crate) fn holds(&self) -> bool {
        let refused = self.idle.refused + self.hostile.refused;
        let pairs = [self.accept_ms(), self.first_push_ms()];
        refused == 0 && pairs.iter().all(|[idle, hostile]| is_within(*idle, *hostile))
    }

    /// The 99th percentiles of the time from the request to the 202, in milliseconds: idle, and beside hostile apps.
    pub(crate) fn accept_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.accept_ms.quantile(0.99).unwrap_or(f64::NAN))
    }

    /// The medians of the time from the request for a campaign to its first push, in milliseconds: idle, and beside hostile apps.
    pub(crate) fn first_push_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.first_push_ms.quantile(0.5).unwrap_or(f64::NAN))
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let ([idle_accept, hostile_accept], [idle_push, hostile_push]) =
            (self.accept_ms(), self.first_push_ms());
        let most = |felt: &TenthAppTimes| {
            json!({
                "accept_max_ms": felt.accept_ms.quantile(1.0),
                "first_push_max_ms": felt.first_push_ms.quantile(1.0),
                "messages": felt.accept_ms.values().len(),
                "campaigns": felt.first_push_ms.values().len(),
                "refused": felt.refused,
            })
        };
        json!({
            "idle_202_p99_ms": idle_accept,
            "hostile_202_p99_ms": hostile_accept,
            "idle_first_push_ms": idle_push,
            "hostile_first_push_ms": hostile_push,
            "idle": most(&self.idle),
            "hostile": most(&self.hostile),
            "hostile_apps": self.counts.iter().map(HostileAppCounts::object).collect::<Vec<_>>(),
            "ok": self.holds(),
        })
    }
}

/// Returns true if a time beside hostile apps is within the limits for that of an idle server; false if a time is missing (NaN).
pub(crate) fn is_within(idle_ms: f64, hostile_ms: f64) -> bool {
    hostile_ms <= (TIMES * idle_ms).max(idle_ms + MARGIN_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_or_fifty_milliseconds_more_are_near_enough_and_a_missing_time_is_not() {
        assert!(is_within(2.0, 52.0) && !is_within(2.0, 52.1));
        assert!(is_within(40.0, 120.0) && !is_within(40.0, 120.1));
        assert!(!is_within(2.0, f64::NAN) && !is_within(f64::NAN, 2.0));
    }
}
