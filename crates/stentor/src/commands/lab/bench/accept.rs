//! `stentor lab bench accept`: how many single messages a second are on disk and answered with 202.

use super::{answers, singles};
use crate::output::Output;
use crate::progress::on_the_terminal;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use stentor_stage::stage::{Stage, StageOptions};

/// Ask for many single messages side by side and measure the 202s, each after a commit that is on disk
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench accept
  stentor lab bench accept --messages 100000 --callers 64 --json

The messages are really sent, to a sink, and each of them is looked for there afterwards; the callers share the machine with the server. `floor` is what the same
callers get from /healthz, which does nothing: no server on this machine can answer them faster.")]
pub(crate) struct Accept {
    /// How many messages, each to a token of its own
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_000_000))]
    messages: u64,
    /// Callers side by side
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    callers: u64,
}

impl Accept {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let mut stage = Stage::build(&StageOptions::with_sinks(2_100_000), &on_the_terminal()).await?;
        // Connections, plans and pages are there before the clock starts.
        let warm =
            singles::send(&stage.client, (self.messages, self.callers * 4), self.callers, None).await?;
        let start = stage.server.usage().cpu_seconds;
        let idle = singles::ask_nothing(&stage.client, self.messages, self.callers).await?;
        let before = stage.server.usage().cpu_seconds;
        let sent = singles::send(&stage.client, (0, self.messages), self.callers, None).await?;
        let usage = stage.server.usage();
        let kept = answers::kept(stage.directory(), &[&warm, &sent]).await?;
        let limits = stage.server.limits()?;
        let rate = self.messages as f64 / sent.wall.as_secs_f64();
        let at = |part: f64| sent.latency_ms.quantile(part);
        let object = json!({
            "messages": self.messages,
            "callers": self.callers,
            "ok": kept.lost == 0,
            "accepted": sent.messages.len(),
            "lost": kept.lost,
            "duplicates": kept.duplicates,
            "wall_seconds": sent.wall.as_secs_f64(),
            "server_cpu_seconds": usage.cpu_seconds - before,
            "accepted_per_second": rate,
            "latency_ms": {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)},
            "server_cpu_microseconds_per_message":
                (usage.cpu_seconds - before) * 1e6 / self.messages as f64,
            "floor": {
                "requests_per_second": self.messages as f64 / idle.as_secs_f64(),
                "server_cpu_microseconds_per_request": (before - start) * 1e6 / self.messages as f64,
            },
            "server_peak_rss_bytes": usage.peak_rss_bytes,
            "limits": limits,
        });
        output.result(&object, || {
            let (p50, p99) = (at(0.5).unwrap_or_default(), at(0.99).unwrap_or_default());
            format!("{rate:.0} messages per second on disk and answered; p50 {p50:.2} ms, p99 {p99:.2} ms")
        })?;
        Ok(if kept.lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
