//! Single messages while the server is killed again and again: each that was answered with 202 must reach the push service.

use super::singles::{self, LoadEnd, MessageLoad};
use super::sink_log::{self, DeliveryCheck};
use serde_json::{Value, json};
use std::time::Duration;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::Stage;

/// Shortest time between two kills, and the range of what is added to it.
const BETWEEN: Duration = Duration::from_millis(800);
const RANGE_MS: u64 = 1_500;
/// Expected duration of a kill with its restart.
const PER_KILL: Duration = Duration::from_secs(3);

/// Results of the load.
pub(super) struct KilledReport {
    kills: u32,
    accepted: usize,
    kept: DeliveryCheck,
}

/// Sends with all callers at once, and kills the server so many times meanwhile.
pub(super) async fn measure(
    stage: &mut Stage,
    load: MessageLoad,
    kills: u32,
    reporter: &dyn Reporter,
) -> anyhow::Result<KilledReport> {
    let client = stage.client.clone();
    let load = MessageLoad { end: LoadEnd::After(PER_KILL * kills), outlives_kills: true, ..load };
    let sending = tokio::spawn(async move { singles::send(&[client], load).await });
    for kill in 0..u64::from(kills) {
        // Different moments of the server's work, and the same ones in every run.
        let more = kill.wrapping_mul(7_919) % RANGE_MS;
        tokio::time::sleep(BETWEEN + Duration::from_millis(more)).await;
        stage.server.kill_and_restart().await?;
    }
    let sent = sending.await??;
    let kept = sink_log::kept(stage.directory(), &[&sent]).await?;
    let (accepted, lost) = (sent.messages.len(), kept.lost);
    reporter.line(&format!("{kills} kills: {accepted} messages accepted, {lost} lost"));
    Ok(KilledReport { kills, accepted, kept })
}

impl KilledReport {
    /// Returns true if nothing is lost.
    pub(super) const fn holds(&self) -> bool {
        self.kept.lost == 0
    }

    /// Returns the number of messages that were accepted.
    pub(super) const fn accepted(&self) -> usize {
        self.accepted
    }

    /// Returns the report as one object.
    pub(super) fn object(&self) -> Value {
        let Self { kills, accepted, kept } = self;
        json!({"kills": kills, "accepted": accepted, "lost": kept.lost, "duplicates": kept.duplicates})
    }
}
