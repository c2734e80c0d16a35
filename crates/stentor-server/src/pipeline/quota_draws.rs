//! Draws from quotas that all nodes share: at most once a second, and at once when nothing was drawn for so long.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::chunk::Lane;
use tokio::time::Instant;

use super::shared::PipelineContext;

/// Time between two draws of a node.
const DRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Draws whenever something is missing, until told to stop.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    while shared.stop.run_until_cancelled(shared.wakeups.quotas.notified()).await.is_some() {
        let began = Instant::now();
        // Claims are gathered after the wake-up: whoever misses something later leaves a permit for the next draw.
        draw(&shared).await;
        let rest = DRAW_INTERVAL.saturating_sub(began.elapsed());
        let _ = shared.stop.run_until_cancelled(tokio::time::sleep(rest)).await;
    }
}

async fn draw(shared: &PipelineContext) {
    let claims = shared.providers.claims();
    if claims.is_empty() {
        return;
    }
    let counts = match shared.store.draw(claims.clone()).await {
        Ok(counts) => counts,
        Err(error) => {
            return tracing::warn!(%error, "nothing can be drawn from the quotas that all servers share");
        }
    };
    let now = shared.now();
    for (claim, count) in claims.iter().zip(counts) {
        // Before the dispatcher is woken, which takes from it at once.
        shared.providers.add(claim, count, now);
        if count > 0 {
            let lane = Lane { provider: claim.provider, app: claim.app, class: claim.class };
            shared.due_index.insert(lane, now);
            shared.due_index.wake((claim.provider, claim.class));
        }
    }
}
