//! The sink's log of single messages: each answered token with the time of the answer.

use super::singles::{AcceptedMessage, SentMessages};
use anyhow::Context;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::emulator::ANSWERS;

/// Longest wait for the next answer after the last one.
const ANSWERS_LIMIT: Duration = Duration::from_secs(120);
/// Interval between reads.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Times of the sink's answers, by token.
pub(super) struct SinkLog {
    file: BufReader<File>,
    /// The beginning of a line that the sink has not written to its end.
    line: String,
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
        let file = File::open(&path)
            .with_context(|| format!("the sink's notes in {} cannot be read", path.display()))?;
        let (line, first_at_us) = (String::new(), HashMap::new());
        let mut log = Self { file: BufReader::new(file), line, first_at_us, count: 0 };
        log.read_on()?;
        Ok(log)
    }

    /// Reads the lines that were written since.
    fn read_on(&mut self) -> anyhow::Result<()> {
        while self.file.read_line(&mut self.line)? > 0 && self.line.ends_with('\n') {
            let noted = self.line.trim_end().split_once(' ');
            if let Some((token, at_us)) = noted.and_then(|(token, at_us)| Some((token, at_us.parse().ok()?)))
            {
                self.count += 1;
                // If a token has several answers, the first one counts.
                self.first_at_us.entry(token.to_owned()).or_insert(at_us);
            }
            self.line.clear();
        }
        Ok(())
    }

    /// Returns the milliseconds from each 202 to the answer, for the campaigns in `counting`; negative if the answer came first.
    pub(super) fn times(&self, sent: &SentMessages, counting: &HashMap<String, f64>) -> Samples {
        let counts = |one: &&AcceptedMessage| counting.contains_key(&one.campaign);
        let time = |one: &AcceptedMessage| {
            Some((*self.first_at_us.get(&one.token)? as f64 - one.at_us as f64) / 1e3)
        };
        sent.messages.iter().filter(counts).filter_map(time).collect()
    }

    /// Returns the milliseconds from each request to the answer.
    pub(super) fn times_from_requests(&self, sent: &SentMessages) -> Samples {
        let time = |one: &AcceptedMessage| {
            Some((*self.first_at_us.get(&one.token)? as f64 - one.asked_us as f64) / 1e3)
        };
        sent.messages.iter().filter_map(time).collect()
    }

    /// Returns true if the sink has not answered a message.
    fn lacks(&self, message: &AcceptedMessage) -> bool {
        !self.first_at_us.contains_key(&message.token)
    }

    fn duplicates(&self) -> usize {
        self.count - self.first_at_us.len()
    }
}

/// Waits until the sink has answered all accepted messages, or until no answer came for two minutes.
pub(super) async fn kept(stage: &Path, sent: &[&SentMessages]) -> anyhow::Result<DeliveryCheck> {
    let mut missing: Vec<&AcceptedMessage> = sent.iter().flat_map(|sent| &sent.messages).collect();
    let mut log = SinkLog::read(stage)?;
    let mut came_at = Instant::now();
    loop {
        let before = missing.len();
        missing.retain(|one| log.lacks(one));
        if missing.is_empty() || came_at.elapsed() > ANSWERS_LIMIT {
            return Ok(DeliveryCheck { lost: missing.len(), duplicates: log.duplicates() });
        }
        if missing.len() < before {
            came_at = Instant::now();
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        log.read_on()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_the_sink_never_saw_is_lost_what_it_saw_again_is_a_duplicate_and_half_a_line_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = File::create(directory.path().join(ANSWERS)).unwrap();
        file.write_all(b"a 5\nb 6\na 7\nx").unwrap();
        let mut log = SinkLog::read(directory.path()).unwrap();
        let accepted = |token: &str| AcceptedMessage {
            token: token.into(),
            campaign: "c".into(),
            asked_us: 0,
            at_us: 1,
        };
        let lacks = |log: &SinkLog| ["a", "x", "xy"].map(|token| log.lacks(&accepted(token)));
        assert_eq!((log.first_at_us["a"], lacks(&log), log.duplicates()), (5, [false, true, true], 1));
        file.write_all(b"y 8\n").unwrap();
        log.read_on().unwrap();
        assert_eq!((log.first_at_us["xy"], lacks(&log)), (8, [false, true, false]));
    }
}
