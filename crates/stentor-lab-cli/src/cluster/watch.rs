//! Watches the campaign through any server that answers.

use super::faults_state::FaultsState;
use super::writing::ANSWER_LIMIT;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_stage::client::ApiClient;
use stentor_stage::ledger::CampaignLedger;
use stentor_stage::reporter::Phase;

const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time without a change after which to stop although deliveries are open.
const GIVE_UP_AFTER: Duration = Duration::from_secs(150);

/// A watch over a campaign.
pub(crate) struct CampaignWatch {
    /// All servers.
    pub(crate) clients: Vec<ApiClient>,
    /// The campaign.
    pub(crate) campaign: String,
    /// Shows the progress.
    pub(crate) progress: Box<dyn Phase>,
    /// The latest ledger.
    pub(crate) latest: Arc<Mutex<CampaignLedger>>,
    /// Progress of the faults.
    pub(crate) state: Arc<FaultsState>,
}

/// Result of the watch.
pub(crate) struct WatchedCampaign {
    /// The books at the end.
    pub(crate) ledger: CampaignLedger,
    /// True if the books balanced at every read.
    pub(crate) always_balanced: bool,
}

impl CampaignWatch {
    /// Reads the ledger until the campaign has ended or has not moved for too long.
    pub(crate) async fn run(mut self) -> WatchedCampaign {
        let (mut ledger, mut always_balanced) = (CampaignLedger::default(), true);
        let (mut moved_at, mut requests) = (Instant::now(), 0);
        while !ledger.is_ended() && moved_at.elapsed() < GIVE_UP_AFTER {
            // Deliveries postponed by a clock that was ahead do not move before they are due.
            moved_at = self.state.all_due_at().map_or(moved_at, |at| moved_at.max(at));
            let client = &self.clients[requests % self.clients.len()];
            let look = CampaignLedger::fetch(client, &self.campaign);
            if let Ok(Ok((_, seen))) = tokio::time::timeout(ANSWER_LIMIT, look).await {
                always_balanced &= seen.balanced && seen.sums_up();
                if (seen.totals, seen.attempts) != (ledger.totals, ledger.attempts) {
                    moved_at = Instant::now();
                }
                self.progress.update(seen.totals.ended());
                ledger = seen;
                self.latest.lock().clone_from(&ledger);
            } else {
                requests += 1;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.progress.finish(ledger.totals.ended());
        WatchedCampaign { ledger, always_balanced }
    }
}
