//! The liveness of other nodes, measured by this process's monotonic clock.
//!
//! The sign of a heartbeat is only compared with the one before. Therefore a jump of the database's clock declares no node dead, and a
//! dead node is found in the usual time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A node and the sign of its last heartbeat.
pub(super) type LifeSign = (u64, i64);

/// The observed heartbeats of the other nodes.
#[derive(Debug, Default)]
pub(super) struct SeenNodes {
    nodes: HashMap<u64, SeenNode>,
}

#[derive(Debug, Clone, Copy)]
struct SeenNode {
    sign: i64,
    /// When this sign was first seen.
    since: Instant,
}

impl SeenNodes {
    /// Records the signs of all other present nodes.
    pub(super) fn look(&mut self, signs: &[LifeSign], looked: Instant) {
        let seen = signs.iter().map(|(instance, sign)| {
            let known = self.nodes.get(instance).filter(|known| known.sign == *sign);
            // Silence counts from the first look at a sign: a sign that stays the same keeps its instant.
            (*instance, known.copied().unwrap_or(SeenNode { sign: *sign, since: looked }))
        });
        // Nodes without a sign are removed: no node returns under the same instance.
        self.nodes = seen.collect();
    }

    /// Lists the nodes without a new sign for `patience`, with their last sign.
    pub(super) fn silent(&self, patience: Duration, now: Instant) -> Vec<LifeSign> {
        let is_silent = |seen: &SeenNode| now.saturating_duration_since(seen.since) >= patience;
        let silent = self.nodes.iter().filter(|(_, seen)| is_silent(seen));
        silent.map(|(instance, seen)| (*instance, seen.sign)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    #[test]
    fn who_gives_no_other_sign_is_silent_whatever_the_signs_show() {
        let (mut seen, begun) = (SeenNodes::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        seen.look(&[(1, 100), (2, 100)], at(0));
        // The clock by which the signs are made jumps ahead and back.
        seen.look(&[(1, 9_000), (2, 100)], at(2));
        seen.look(&[(1, 50), (2, 100)], at(4));
        assert_eq!(seen.silent(PATIENCE, at(4)), [(2, 100)]);
        assert!(seen.silent(PATIENCE, at(2)).is_empty());
    }

    #[test]
    fn who_was_away_and_is_back_is_looked_at_anew() {
        let (mut seen, begun) = (SeenNodes::default(), Instant::now());
        seen.look(&[(1, 100)], begun);
        seen.look(&[], begun + PATIENCE);
        seen.look(&[(1, 100)], begun + 2 * PATIENCE);
        assert!(seen.silent(PATIENCE, begun + 2 * PATIENCE).is_empty());
    }
}
