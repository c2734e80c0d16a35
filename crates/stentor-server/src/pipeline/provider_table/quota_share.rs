//! A node's share of a quota that all nodes draw from: tokens drawn from the store and not spent yet.

use std::time::Duration;

use stentor_core::chunk::TrafficClass;
use stentor_core::quota::Quota;
use stentor_core::time::Timestamp;

/// Tokens that are not spent within this time are dropped: another node may have lacked them, and a minute later they would exceed the
/// quota.
const KEPT: Duration = Duration::from_secs(2);
/// Longest wait until the next try after a draw without tokens.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A node's tokens of one credential's quota; negative if it spent more than it had.
#[derive(Debug, Default)]
pub(super) struct QuotaShare {
    urgent: i64,
    common: i64,
    urgent_at: Timestamp,
    common_at: Timestamp,
    /// Missing tokens by class; 0 for none.
    wanted_urgent: u64,
    wanted_common: u64,
}

impl QuotaShare {
    /// Takes tokens, or records them as missing and returns the time of the next try.
    pub(super) fn take(&mut self, class: TrafficClass, count: u64, now: Timestamp) -> Result<u64, Timestamp> {
        // Before counting: tokens that are too old may have been drawn by others.
        self.give_up(now);
        let requested = i64::try_from(count).unwrap_or(i64::MAX);
        let there = self.tokens(class);
        if there >= requested {
            self.spend(class, requested);
            return Ok(count);
        }
        let missing = requested.saturating_sub(there).max(1).unsigned_abs();
        let wanted = match class {
            TrafficClass::Urgent => &mut self.wanted_urgent,
            TrafficClass::Bulk => &mut self.wanted_common,
        };
        // The largest, not the sum, because lanes try repeatedly while they wait.
        *wanted = (*wanted).max(missing);
        Err(now.plus(ASK_AGAIN))
    }

    /// Returns the number of tokens available to a class.
    pub(super) fn tokens(&self, class: TrafficClass) -> i64 {
        match class {
            TrafficClass::Urgent => self.urgent + self.common.max(0),
            TrafficClass::Bulk => self.common,
        }
    }

    /// Corrects the number of tokens taken to the number used.
    pub(super) fn correct(&mut self, class: TrafficClass, taken: u64, used: u64) {
        let more = i64::try_from(used).unwrap_or(i64::MAX) - i64::try_from(taken).unwrap_or(i64::MAX);
        self.spend(class, more);
    }

    /// Returns the draws to request from the store: class, least and most.
    pub(super) fn wanted(&self, quota: Quota) -> Vec<(TrafficClass, u64, u64)> {
        let second = u64::from(quota.per_minute).div_ceil(60);
        let urgent_second = second * u64::from(quota.urgent_share_percent) / 100;
        let both = [
            (TrafficClass::Urgent, self.wanted_urgent, urgent_second),
            (TrafficClass::Bulk, self.wanted_common, second),
        ];
        let wanted = both.into_iter().filter(|(_, least, _)| *least > 0);
        wanted.map(|(class, least, second)| (class, least, second.max(least))).collect()
    }

    /// Adds tokens granted by the store.
    pub(super) fn add(&mut self, class: TrafficClass, count: u64, now: Timestamp) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        match class {
            TrafficClass::Urgent => {
                (self.urgent, self.wanted_urgent, self.urgent_at) = (self.urgent + count, 0, now)
            }
            TrafficClass::Bulk => {
                (self.common, self.wanted_common, self.common_at) = (self.common + count, 0, now)
            }
        }
    }

    /// Drops tokens drawn too long ago, separately by class, since one class may be drawn repeatedly while the other is unused.
    fn give_up(&mut self, now: Timestamp) {
        let is_old = |drawn_at: Timestamp| now.since(drawn_at) > KEPT || now < drawn_at;
        if is_old(self.urgent_at) {
            self.urgent = self.urgent.min(0);
        }
        if is_old(self.common_at) {
            self.common = self.common.min(0);
        }
    }

    fn spend(&mut self, class: TrafficClass, count: i64) {
        if class == TrafficClass::Bulk {
            self.common -= count;
            return;
        }
        // Its own part first, because audiences have only the common part.
        let own = count.min(self.urgent.max(0));
        let shared = (count - own).min(self.common.max(0));
        self.common -= shared;
        self.urgent -= count - shared;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: Quota = Quota { per_minute: 6_000, ramp: Duration::ZERO, urgent_share_percent: 20 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_is_missing_is_asked_for_by_the_second_and_spent_once() {
        let mut share = QuotaShare::default();
        assert_eq!(share.take(TrafficClass::Bulk, 50, at(0)), Err(at(1_000)));
        assert_eq!(share.take(TrafficClass::Urgent, 1, at(0)), Err(at(1_000)));
        assert_eq!(share.wanted(QUOTA), [(TrafficClass::Urgent, 1, 20), (TrafficClass::Bulk, 50, 100)]);
        share.add(TrafficClass::Bulk, 100, at(10));
        share.add(TrafficClass::Urgent, 0, at(10));
        assert_eq!(share.wanted(QUOTA), []);
        assert_eq!(share.take(TrafficClass::Bulk, 50, at(20)), Ok(50));
        share.correct(TrafficClass::Bulk, 50, 40);
        assert_eq!(share.tokens(TrafficClass::Bulk), 60);
        assert_eq!(share.take(TrafficClass::Urgent, 5, at(30)), Ok(5), "single messages may use both parts");
        assert_eq!(share.take(TrafficClass::Bulk, 50, at(40)), Ok(50));
    }

    #[test]
    fn what_one_class_does_not_spend_is_given_up_while_the_other_is_drawn() {
        let mut share = QuotaShare::default();
        share.add(TrafficClass::Urgent, 20, at(0));
        share.add(TrafficClass::Bulk, 100, at(1_500));
        assert_eq!(share.take(TrafficClass::Bulk, 100, at(2_500)), Ok(100));
        assert_eq!(share.tokens(TrafficClass::Urgent), 0);
    }

    #[test]
    fn what_is_not_spent_is_given_up_and_debts_stay() {
        let mut share = QuotaShare::default();
        share.add(TrafficClass::Bulk, 100, at(0));
        assert_eq!(share.take(TrafficClass::Bulk, 50, at(3_000)), Err(at(4_000)));
        share.correct(TrafficClass::Bulk, 10, 60);
        assert_eq!(share.take(TrafficClass::Bulk, 50, at(3_000)), Err(at(4_000)));
        assert_eq!(share.wanted(QUOTA), [(TrafficClass::Bulk, 100, 100)]);
    }
}
