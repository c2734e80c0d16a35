//! Words for the log that one cause may bring up thousands of times: each is said now and then, with how often it was not.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The silence after a word.
const PAUSE: Duration = Duration::from_secs(10);

/// A word that may repeat.
#[derive(Debug, Default)]
pub struct RepeatedWord(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    at: Option<Instant>,
    kept_back: u64,
}

impl RepeatedWord {
    /// Makes a word that was not said yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Said { at: None, kept_back: 0 }))
    }

    /// Returns how often it was kept back since it was said last, when it is to be said now; otherwise counts it.
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
