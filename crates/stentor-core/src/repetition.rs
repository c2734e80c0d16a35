//! Rate limiting of log messages that one cause may trigger thousands of times: each is logged at intervals, with the number of suppressed
//! ones.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Shortest interval between two logged messages.
const PAUSE: Duration = Duration::from_secs(10);

/// The state of a log message that may repeat.
#[derive(Debug, Default)]
pub struct RepeatedWord(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    at: Option<Instant>,
    kept_back: u64,
}

impl RepeatedWord {
    /// Creates the state of a message that was not logged yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Said { at: None, kept_back: 0 }))
    }

    /// Returns the number of messages suppressed since the last logged one if the message is to be logged now; otherwise counts it and
    /// returns `None`.
    pub fn may_say(&self, now: Instant) -> Option<u64> {
        let mut said = self.0.lock();
        if said.at.is_some_and(|at| now.saturating_duration_since(at) < PAUSE) {
            said.kept_back += 1;
            return None;
        }
        said.at = Some(now);
        Some(std::mem::take(&mut said.kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_said_once_in_a_while_with_how_often_it_was_not() {
        let (word, begun) = (RepeatedWord::new(), Instant::now());
        assert_eq!(word.may_say(begun), Some(0));
        for second in 1..10 {
            assert_eq!(word.may_say(begun + Duration::from_secs(second)), None);
        }
        assert_eq!(word.may_say(begun + PAUSE), Some(9));
        assert_eq!(word.may_say(begun + 2 * PAUSE), Some(0));
    }
}
