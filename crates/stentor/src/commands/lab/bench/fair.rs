//! `stentor lab bench fair`: what nine hostile apps cost a tenth one.

mod hostility;
mod sockets;
mod stage;
mod tenth;

use crate::output::{Output, note, table};
use clap::{Args, ValueEnum};
use hostility::{Attack, Kind};
use serde_json::{Value, json};
use stage::FairStage;
use std::process::ExitCode;
use std::time::Duration;
use tenth::Felt;

/// How many times as long as on an idle server the tenth app may wait.
const TIMES: f64 = 3.0;
/// Or so much longer, where three times is less than a machine's own noise.
const MARGIN_MS: f64 = 50.0;

/// Let nine hostile apps do what their keys allow, and measure a tenth app beside an idle server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench fair
  stentor lab bench fair --kind dry-run,slow-upload --seconds 15 --json

The tenth app sends single messages and campaigns to a topic of 100 devices, first alone and then beside the hostile apps.
Two times are told: from asking to the 202 (p99), and from asking for a campaign to its first push at the push service
(median). The bench is ok when the tenth app is never refused, and both are at most three times those of the idle server, or
50 ms above them where that is more. The hostile apps act for over a minute, so that their schedules fire. Their callers run
in this program with a low priority: what they do is limited by what the server lets them, not by the machine.")]
pub(crate) struct Fair {
    /// What the hostile apps do; several with commas; without it everything
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// How long the hostile apps act
    #[arg(long, default_value_t = 75, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// How long the tenth app is measured alone
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    idle_seconds: u64,
    /// Devices in the large audiences of the hostile apps
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    devices: u64,
}

impl Fair {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let kinds = if self.kind.is_empty() { Kind::value_variants() } else { &self.kind };
        let mut stage = FairStage::build(self.devices, kinds).await?;
        note("the tenth app alone");
        let idle = stage.measure(Duration::from_secs(self.idle_seconds)).await?;
        note("the tenth app beside hostile ones");
        let attack = Attack::begin(stage.tenants())?;
        let hostile = stage.measure(Duration::from_secs(self.seconds)).await?;
        let counts = attack.end();
        stage.check_alive()?;
        let compared = Compared { idle, hostile, counts };
        let ok = compared.holds();
        output.result(&compared.object(), || compared.told())?;
        Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The tenth app alone and beside the others, and what these did.
struct Compared {
    idle: Felt,
    hostile: Felt,
    counts: Vec<hostility::Count>,
}

impl Compared {
    fn holds(&self) -> bool {
        let refused = self.idle.refused + self.hostile.refused;
        let pairs = [self.accept_ms(), self.first_push_ms()];
        refused == 0 && pairs.iter().all(|[idle, hostile]| is_within(*idle, *hostile))
    }

    fn accept_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.accept_ms.quantile(0.99).unwrap_or(f64::NAN))
    }

    fn first_push_ms(&self) -> [f64; 2] {
        [&self.idle, &self.hostile].map(|felt| felt.first_push_ms.quantile(0.5).unwrap_or(f64::NAN))
    }

    fn object(&self) -> Value {
        let ([idle_accept, hostile_accept], [idle_push, hostile_push]) =
            (self.accept_ms(), self.first_push_ms());
        let most = |felt: &Felt| {
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
            "hostile_apps": self.counts.iter().map(hostility::Count::object).collect::<Vec<_>>(),
            "ok": self.holds(),
        })
    }

    fn told(&self) -> String {
        let row = |name: &str, [idle, hostile]: [f64; 2]| {
            let verdict = if is_within(idle, hostile) { "yes" } else { "no" };
            [name.to_owned(), format!("{idle:.1}"), format!("{hostile:.1}"), verdict.to_owned()]
        };
        let times = table(
            ["the tenth app", "alone, ms", "beside, ms", "ok"],
            [row("202, p99", self.accept_ms()), row("first push, median", self.first_push_ms())],
        );
        let counts = table(
            ["hostile app", "asked", "done", "refused", "broken"],
            self.counts.iter().map(hostility::Count::row),
        );
        format!("{times}\n{counts}\nrefused to the tenth app: {}", self.hostile.refused)
    }
}

/// Whether a time beside hostile apps is near enough to that of an idle server; a time that is missing is not.
fn is_within(idle_ms: f64, hostile_ms: f64) -> bool {
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
