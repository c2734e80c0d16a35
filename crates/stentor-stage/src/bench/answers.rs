//! What the sink noted of single messages: which token it answered, and when.

use super::singles::{Promised, Sent};
use crate::emulator::ANSWERS;
use anyhow::Context;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;

/// How long answers are waited for after the last 202.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// When the sink answered, by token.
#[derive(Default)]
pub(super) struct Answers {
    first_at_us: HashMap<String, u128>,
    count: usize,
}

/// What became of messages that a 202 promised.
pub(super) struct Kept {
    /// Messages whose token never reached the sink.
    pub(super) lost: usize,
    /// Answers beyond the first of each token.
    pub(super) duplicates: usize,
}

impl Answers {
    /// Reads what the sink of this stage noted so far.
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
        // The first answer counts, should there be several.
        Ok(Self { first_at_us: noted.into_iter().collect(), count })
    }

    /// Returns milliseconds from each 202 to the answer, of the campaigns that count; below zero where the answer was first.
    pub(super) fn times(&self, sent: &Sent, counting: &HashMap<String, f64>) -> Samples {
        let counts = |one: &&Promised| counting.contains_key(&one.campaign);
        let time =
            |one: &Promised| Some((*self.first_at_us.get(&one.token)? as f64 - one.at_us as f64) / 1e3);
        sent.messages.iter().filter(counts).filter_map(time).collect()
    }

    fn kept(&self, promised: &[&Promised]) -> Kept {
        let is_lost = |one: &&&Promised| !self.first_at_us.contains_key(&one.token);
        let lost = promised.iter().filter(is_lost).count();
        Kept { lost, duplicates: self.count - self.first_at_us.len() }
    }
}

/// Waits until the sink answered all that was promised, or for as long as anybody would.
pub(super) async fn kept(stage: &Path, sent: &[&Sent]) -> anyhow::Result<Kept> {
    let promised: Vec<&Promised> = sent.iter().flat_map(|sent| &sent.messages).collect();
    let began = Instant::now();
    loop {
        let kept = Answers::read(stage)?.kept(&promised);
        if kept.lost == 0 || began.elapsed() > PATIENCE {
            return Ok(kept);
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
        let promised = |token: &str| Promised { token: token.into(), campaign: "c".into(), at_us: 1 };
        let kept = Answers::read(directory.path()).unwrap().kept(&[&promised("a"), &promised("x")]);
        assert_eq!((kept.lost, kept.duplicates), (1, 1));
    }
}
