//! The limit of messages that a sender may send in a minute, such as Chrome's for sites that few people engage with.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const MAX_REMEMBERED_SENDERS: usize = 10_000;

/// The limit, and the senders in their minutes.
pub(super) struct SenderLimit {
    per_minute: Option<u64>,
    started: Instant,
    minutes: Mutex<HashMap<Vec<u8>, SenderMinute>>,
}

/// The messages of a sender in its latest minute.
#[derive(Clone, Copy, Debug)]
struct SenderMinute {
    began: Duration,
    taken: u64,
}

impl SenderLimit {
    pub(super) fn new(per_minute: Option<u64>) -> Self {
        Self { per_minute, started: Instant::now(), minutes: Mutex::default() }
    }

    /// Counts a message of the sender with this key; senders without a key share one count. The error is the rest of the minute in whole
    /// seconds, at least 1.
    pub(super) fn take(&self, key: &[u8]) -> Result<(), u32> {
        let Some(per_minute) = self.per_minute else { return Ok(()) };
        let mut minutes = self.minutes.lock();
        // Read under the lock: a later reader must not bring an earlier time.
        let now = self.started.elapsed();
        take(&mut minutes, key, per_minute, now)
    }
}

/// A minute begins with the first message after the one before it has ended.
fn take(
    minutes: &mut HashMap<Vec<u8>, SenderMinute>,
    key: &[u8],
    per_minute: u64,
    now: Duration,
) -> Result<(), u32> {
    let over = |minute: &SenderMinute| now.saturating_sub(minute.began) >= MINUTE;
    if minutes.len() >= MAX_REMEMBERED_SENDERS && !minutes.contains_key(key) {
        minutes.retain(|_, minute| !over(minute));
    }
    let minute = minutes.entry(key.to_vec()).or_insert(SenderMinute { began: now, taken: 0 });
    if over(minute) {
        *minute = SenderMinute { began: now, taken: 0 };
    }
    if minute.taken < per_minute {
        minute.taken += 1;
        return Ok(());
    }
    let rest_ms = (MINUTE + minute.began).saturating_sub(now).as_millis();
    Err(rest_ms.div_ceil(1000).clamp(1, 60) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_its_own_minute_which_begins_with_its_first_message() {
        let mut minutes = HashMap::new();
        let mut take = |key: &[u8], seconds| take(&mut minutes, key, 2, Duration::from_secs(seconds));
        assert_eq!([take(b"a", 10), take(b"a", 20), take(b"a", 30)], [Ok(()), Ok(()), Err(40)]);
        assert_eq!([take(b"b", 30), take(b"a", 69), take(b"a", 70)], [Ok(()), Err(1), Ok(())]);
        assert_eq!([take(b"a", 71), take(b"a", 72)], [Ok(()), Err(58)]);
    }

    #[test]
    fn without_a_limit_any_number_is_taken() {
        let limit = SenderLimit::new(None);
        assert!((0..10_000).all(|_| limit.take(b"a").is_ok()));
    }
}
