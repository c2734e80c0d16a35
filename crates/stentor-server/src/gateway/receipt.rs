//! What became of a message of Web Push, for a sender who asked to be told (RFC 8030, 6).

use std::time::Duration;

use stentor_core::delivery::DeliveryState;
use stentor_core::id::MessageId;
use stentor_core::ports::store::{AttemptRecord, StoreError};
use stentor_gateway::{DeviceIdentity, Gateway};
use tokio::time::{Instant, sleep};

/// Longest time that a request for a receipt waits: below the time of any request.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Between two looks at the ledger.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

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

/// Finds out what became of a message, waiting so long for something to become of it.
pub(super) async fn result(
    gateway: &Gateway,
    identity: DeviceIdentity,
    message: MessageId,
    wait: Duration,
) -> Result<PushResult, StoreError> {
    let end = Instant::now() + wait;
    loop {
        let result = look(gateway, identity, message).await?;
        if result != PushResult::Open || Instant::now() + LOOK_INTERVAL > end {
            return Ok(result);
        }
        sleep(LOOK_INTERVAL).await;
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
