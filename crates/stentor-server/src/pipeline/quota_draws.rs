//! Draws from quotas that all nodes share: at most once a second per node, and at once if the last draw was longer ago.

use std::sync::Arc;
use std::time::Duration;

use stentor_core::chunk::Lane;
use tokio::time::Instant;

use super::shared::PipelineContext;

/// Time between two draws of a node.
const DRAW_INTERVAL: Duration = Duration::from_secs(1);
/// Time after a draw that gave nothing. Nodes that start together, for example when a campaign is announced, would otherwise draw in step,
/// and each would find only the tokens that the first left. A fraction of a second that is not simple moves their draws through all
/// offsets.
const EMPTY_INTERVAL: Duration = Duration::from_millis(1_382);

/// Draws whenever tokens are missing, until the pipeline stops.
pub(crate) async fn run(shared: Arc<PipelineContext>) {
    while shared.stop.run_until_cancelled(shared.wakeups.quotas.notified()).await.is_some() {
        let began = Instant::now();
        // Claims are collected after the wake-up; one that arises later leaves a permit for the next draw.
        let rest = interval(draw(&shared).await).saturating_sub(began.elapsed());
        let _ = shared.stop.run_until_cancelled(tokio::time::sleep(rest)).await;
    }
}

/// Returns the time between a draw and the next one.
const fn interval(drawn: Option<u64>) -> Duration {
    match drawn {
        Some(0) => EMPTY_INTERVAL,
        _ => DRAW_INTERVAL,
    }
}

/// Draws the missing tokens. Returns their number, or `None` if there were no claims or the store failed.
async fn draw(shared: &PipelineContext) -> Option<u64> {
    let claims = shared.providers.claims();
    if claims.is_empty() {
        return None;
    }
    let counts = match shared.store.draw(claims.clone()).await {
        Ok(counts) => counts,
        Err(error) => {
            tracing::warn!(%error, "nothing can be drawn from the quotas that all servers share");
            return None;
        }
    };
    let (now, drawn) = (shared.now(), counts.iter().sum());
    for (claim, count) in claims.iter().zip(counts) {
        // Before the dispatcher is woken, which uses the tokens at once.
        shared.providers.add(claim, count, now);
        if count > 0 {
            let lane = Lane { provider: claim.provider, app: claim.app, class: claim.class };
            shared.due_index.insert(lane, now);
            shared.due_index.wake((claim.provider, claim.class));
        }
    }
    Some(drawn)
}

#[cfg(test)]
mod tests {
    use stentor_core::chunk::TrafficClass;
    use stentor_core::quota::{Bucket, Quota};
    use stentor_core::time::Timestamp;

    use super::*;

    #[test]
    fn nodes_that_begin_to_draw_together_all_get_something_soon() {
        let quota = Quota { per_minute: 6_000, ramp: Duration::ZERO, urgent_share_percent: 20 };
        let mut bucket = Bucket::new(quota.shared(), Timestamp::default());
        let mut nodes = [0, 55, 60, 62].map(|at| (Timestamp::from_millis(at), 0));
        let end = Timestamp::from_millis(20_000);
        while let Some((at, drawn)) = nodes.iter_mut().filter(|(at, _)| *at < end).min_by_key(|(at, _)| *at) {
            let count = bucket.draw(TrafficClass::Bulk, (10, 100), *at);
            *drawn += count;
            *at = at.plus(interval(Some(count)));
        }
        assert!(nodes.iter().all(|(_, drawn)| *drawn >= 100), "{nodes:?}");
    }
}
