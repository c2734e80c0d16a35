//! The result of a Web Push message, for a sender that requested a receipt (RFC 8030, 6).

use std::time::Duration;

use stentor_core::delivery::DeliveryState;
use stentor_core::id::MessageId;
use stentor_core::ports::store::{AttemptFilter, AttemptRecord, StoreError};
use stentor_gateway::{DeviceIdentity, Gateway};
use tokio::time::{Instant, timeout_at};

/// Longest wait of a request for a receipt; shorter than the timeout of any request.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Interval between reads of the ledger, for changes without a notification.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Time after expiry during which a device may still confirm a message with a TTL of 0.
const NOW_OR_NEVER: Duration = Duration::from_secs(60);

/// The result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushResult {
    /// Confirmed by the device.
    Delivered,
    /// Ended without delivery.
    Over,
    /// Still waiting.
    Open,
}

/// Parses the wait of a request: `Prefer: wait=10` (RFC 7240, 4.3).
pub(super) fn wait_of(prefer: Option<&str>) -> Duration {
    let preferences = prefer.unwrap_or_default().split([',', ';']);
    let seconds = preferences.filter_map(|one| one.trim().strip_prefix("wait=")?.trim().parse::<u64>().ok());
    seconds.map(Duration::from_secs).next().unwrap_or_default().min(WAIT_MAX)
}

/// Returns the result of a message. Waits up to `wait` while it is open, unless no place for waiting is left for this message.
pub(super) async fn result(
    gateway: &Gateway,
    identity: DeviceIdentity,
    message: MessageId,
    wait: Duration,
) -> Result<PushResult, StoreError> {
    let end = Instant::now() + wait;
    // Before the first read, so that no notification is missed in between.
    let waiting = gateway.wait_for_receipt(identity, message).filter(|_| !wait.is_zero());
    loop {
        let result = look(gateway, identity, message).await?;
        let now = Instant::now();
        let (PushResult::Open, Some(waiting)) = (result, &waiting) else { return Ok(result) };
        if now >= end {
            return Ok(result);
        }
        // Changes by other servers, and expiry, come without a notification; the next read finds them.
        let _written_or_time_to_look = timeout_at(end.min(now + LOOK_INTERVAL), waiting.notified()).await;
    }
}

async fn look(
    gateway: &Gateway,
    DeviceIdentity { app, device }: DeviceIdentity,
    id: MessageId,
) -> Result<PushResult, StoreError> {
    let (store, now) = (gateway.store(), gateway.clock().now());
    let attempts = store.attempts(app, device, AttemptFilter::Message(id)).await?;
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
