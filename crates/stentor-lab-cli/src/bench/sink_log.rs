//! The sink's log of single messages: each answered token with the time of the answer.

use super::singles::{AcceptedMessage, SentMessages};
use anyhow::Context;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::emulator::ANSWERS;

/// Longest wait for the next answer after the last one.
const ANSWERS_LIMIT: Duration = Duration::from_secs(120);
/// Interval between reads, each of which reads the whole log.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Times of the sink's answers, by token.
#[derive(Default)]
pub(super) struct SinkLog {
    first_at_us: HashMap<String, u128>,
    count: usize,
}

/// Outcomes of messages that were answered with 202.
pub(super) struct DeliveryCheck {
    /// Messages that never reached the sink, by their tokens.
    pub(super) lost: usize,
    /// Answers beyond the first of each token.
    pub(super) duplicates: usize,
}

impl SinkLog {
    /// Reads the log of the sink of this stage up to now.
    pub(super) fn read(stage: &Path) -> anyhow::Result<Self> {
        let path = stage.join(ANSWERS);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("the sink's notes in {} cannot be read", path.display()))?;
        let line = |line: &str| {
            let (token, at_us) = line.split_once(' ')?;
            Some((token.to_owned(), at_us.parse().ok()?))
        };
        let noted: Vec<(String, u128)> = text.lines().rev().filter_map(line).collect();
        let count = noted.len();
        // If a token has several answers, the first one counts.
        Ok(Self { first_at_us: noted.into_iter().collect(), count })
    }

    /// Returns the milliseconds from each 202 to the answer, for the campaigns in `counting`; negative if the answer came first.
    pub(super) fn times(&self, sent: &SentMessages, counting: &HashMap<String, f64>) -> Samples {
        let counts = |one: &&AcceptedMessage| counting.contains_key(&one.campaign);
        let time = |one: &AcceptedMessage| {
            Some((*self.first_at_us.get(&one.token)? as f64 - one.at_us as f64) / 1e3)
        };
        sent.messages.iter().filter(counts).filter_map(time).collect()
    }

    fn kept(&self, accepted: &[&AcceptedMessage]) -> DeliveryCheck {
        let is_lost = |one: &&&AcceptedMessage| !self.first_at_us.contains_key(&one.token);
        let lost = accepted.iter().filter(is_lost).count();
        DeliveryCheck { lost, duplicates: self.count - self.first_at_us.len() }
    }
}

/// Waits until the sink has answered all accepted messages, or until no answer came for two minutes.
pub(super) async fn kept(stage: &Path, sent: &[&SentMessages]) -> anyhow::Result<DeliveryCheck> {
    let accepted: Vec<&AcceptedMessage> = sent.iter().flat_map(|sent| &sent.messages).collect();
    let (mut came_at, mut missing) = (Instant::now(), accepted.len());
    loop {
        let check = SinkLog::read(stage)?.kept(&accepted);
        if check.lost == 0 || came_at.elapsed() > ANSWERS_LIMIT {
            return Ok(check);
        }
        if check.lost < missing {
            (came_at, missing) = (Instant::now(), check.lost);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sink_never_saw_is_lost_and_what_it_saw_again_is_a_duplicate() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(ANSWERS), "a 5\nb 6\na 7\n").unwrap();
        let accepted = |token: &str| AcceptedMessage { token: token.into(), campaign: "c".into(), at_us: 1 };
        let check = SinkLog::read(directory.path()).unwrap().kept(&[&accepted("a"), &accepted("x")]);
        assert_eq!((check.lost, check.duplicates), (1, 1));
    }
}
