//! What nine hostile apps cost a tenth one.

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

/// How many times as long as on an idle server the tenth app may wait.
const TIMES: f64 = 3.0;
/// Or so much longer, where three times is less than a machine's own noise.
const MARGIN_MS: f64 = 50.0;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct FairOptions {
    /// What the hostile apps do.
    pub(crate) behaviours: Vec<HostileBehaviour>,
    /// How long they act.
    pub(crate) span: Duration,
    /// How long the tenth app is measured alone.
    pub(crate) idle_span: Duration,
    /// Devices in the large audiences of the hostile apps.
    pub(crate) devices: u64,
}

/// The tenth app alone and beside the others, and what these did.
pub(crate) struct FairReport {
    /// How long it waited alone.
    pub(crate) idle: TenthAppTimes,
    /// How long it waited beside the others.
    pub(crate) hostile: TenthAppTimes,
    /// What became of the others' requests.
    pub(crate) counts: Vec<HostileAppCounts>,
}

/// Measures it and returns the report.
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
    /// Returns whether the tenth app was never refused and both its times are near enough.
    pub(crate) fn holds(&self) -> bool {
        let refused = self.idle.refused + self.hostile.refused;
        let pairs = [self.accept_ms(), self.first_push_ms()];
        refused == 0 && pairs.iter().all(|[idle, hostile]| is_within(*idle, *hostile))
    }

    /// The 99th percentiles from asking to the 202, in milliseconds: idle, and beside hostile apps.
    pub(crate) fn accept_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.accept_ms.quantile(0.99).unwrap_or(f64::NAN))
    }

    /// The medians from asking for a campaign to its first push, in milliseconds: idle, and beside hostile apps.
    pub(crate) fn first_push_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.first_push_ms.quantile(0.5).unwrap_or(f64::NAN))
    }

    /// The report as one object.
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

/// Whether a time beside hostile apps is near enough to that of an idle server; a time that is missing is not.
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
