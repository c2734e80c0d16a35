//! What became of a message of Web Push, for a sender who asked to be told (RFC 8030, 6).

use std::time::Duration;

use stentor_core::delivery::DeliveryState;
use stentor_core::id::MessageId;
use stentor_core::ports::store::{AttemptRecord, StoreError};
use stentor_gateway::{DeviceIdentity, Gateway};
use tokio::time::{Instant, timeout_at};

/// Longest time that a request for a receipt waits: below the time of any request.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Between two looks at the ledger for what nobody tells.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How long after its time a device may confirm what was to be given to it at once or never.
const NOW_OR_NEVER: Duration = Duration::from_secs(60);

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushResult {
    /// The device has confirmed it.
    Delivered,
    /// The device will not get it any more.
    Over,
    /// It waits.
    Open,
}

/// Reads how long a request may wait: `Prefer: wait=10` (RFC 7240, 4.3).
pub(super) fn wait_of(prefer: Option<&str>) -> Duration {
    let preferences = prefer.unwrap_or_default().split([',', ';']);
    let seconds = preferences.filter_map(|one| one.trim().strip_prefix("wait=")?.trim().parse::<u64>().ok());
    seconds.map(Duration::from_secs).next().unwrap_or_default().min(WAIT_MAX)
}

/// Finds out what became of a message, waiting so long for something to become of it. Whoever finds no place among those who wait for
/// the same is told at once what is known.
pub(super) async fn result(
    gateway: &Gateway,
    identity: DeviceIdentity,
    message: MessageId,
    wait: Duration,
) -> Result<PushResult, StoreError> {
    let end = Instant::now() + wait;
    // Before the first look: a word that comes between is not missed.
    let waiting = gateway.wait_for_receipt(identity, message).filter(|_| !wait.is_zero());
    loop {
        let result = look(gateway, identity, message).await?;
        let now = Instant::now();
        let (PushResult::Open, Some(waiting)) = (result, &waiting) else { return Ok(result) };
        if now >= end {
            return Ok(result);
        }
        // What another server writes, and what only time brings, is found by looking.
        let _written_or_time_to_look = timeout_at(end.min(now + LOOK_INTERVAL), waiting.notified()).await;
    }
}

async fn look(
    gateway: &Gateway,
    DeviceIdentity { app, device }: DeviceIdentity,
    id: MessageId,
) -> Result<PushResult, StoreError> {
    let (store, now) = (gateway.store(), gateway.clock().now());
    let attempts = store.delivery(app, id, device).await?;
    match attempts.last().map_or(PushResult::Open, result_of) {
        PushResult::Open => {
            let message = store.message(app, id).await?;
            let is_over = message.is_expired(now) || now >= message.expires_at().plus(NOW_OR_NEVER);
            Ok(if is_over { PushResult::Over } else { PushResult::Open })
        }
        result => Ok(result),
    }
}

fn result_of(attempt: &AttemptRecord) -> PushResult {
    let record = attempt.record;
    match record.state() {
        DeliveryState::Queued | DeliveryState::Sending => PushResult::Open,
        DeliveryState::Accepted if record.is_delivered() => PushResult::Delivered,
        DeliveryState::Accepted if record.awaits_receipt() => PushResult::Open,
        _ => PushResult::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_as_long_as_it_says_and_not_longer_than_allowed() {
        assert_eq!(wait_of(None), Duration::ZERO);
        assert_eq!(wait_of(Some("respond-async, wait=3")), Duration::from_secs(3));
        assert_eq!(wait_of(Some("wait=86400")), WAIT_MAX);
        assert_eq!(wait_of(Some("wait=soon")), Duration::ZERO);
    }
}
