//! Messages that were refused and wait for their next attempt.

use std::collections::BTreeMap;

use stentor_core::id::UpstreamId;
use stentor_core::time::Timestamp;
use tokio::time::Instant;

/// Messages of one app that rest outside its window; further ones keep their places in it.
const BESIDE_MAX_COUNT: usize = 10_000;

/// A refused message. Its content is read again when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RestingMessage {
    pub(super) id: UpstreamId,
    /// The number of attempts.
    pub(super) attempt: u32,
    pub(super) expires_at: Timestamp,
}

/// Messages in the order of their due times.
#[derive(Debug, Default)]
pub(super) struct RestingMessages(BTreeMap<(Instant, UpstreamId), RestingMessage>);

impl RestingMessages {
    /// Adds a message until its due time. Returns true if it may rest outside the window.
    pub(super) fn add(&mut self, due: Instant, message: RestingMessage) -> bool {
        self.0.insert((due, message.id), message);
        self.0.len() <= BESIDE_MAX_COUNT
    }

    /// Returns the due time of the first message.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.keys().next().map(|(due, _)| *due)
    }

    pub(super) fn first(&self) -> Option<RestingMessage> {
        self.0.values().next().copied()
    }

    pub(super) fn remove_first(&mut self) {
        self.0.pop_first();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_whose_pause_ends_is_the_first() {
        let (mut resting, now) = (RestingMessages::default(), Instant::now());
        let message = |number| {
            let (id, expires_at) = (UpstreamId::from_raw(number), Timestamp::from_millis(0));
            RestingMessage { id, attempt: 1, expires_at }
        };
        assert!(resting.add(now + Duration::from_secs(2), message(1)));
        assert!(resting.add(now + Duration::from_secs(1), message(2)));
        assert_eq!(
            (resting.next_due(), resting.first()),
            (Some(now + Duration::from_secs(1)), Some(message(2)))
        );
        resting.remove_first();
        assert_eq!(resting.first(), Some(message(1)));
    }

    #[test]
    fn beyond_so_many_the_places_of_the_window_are_kept() {
        let (mut resting, now) = (RestingMessages::default(), Instant::now());
        let message = |number| RestingMessage {
            id: UpstreamId::from_raw(number),
            attempt: 1,
            expires_at: Timestamp::from_millis(0),
        };
        let places = (0..=BESIDE_MAX_COUNT as u64).filter(|number| resting.add(now, message(*number)));
        assert_eq!(places.count(), BESIDE_MAX_COUNT);
    }
}
