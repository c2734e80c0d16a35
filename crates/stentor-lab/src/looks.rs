//! Looks at the results of a run, each of which can end it: rounds are added until every comparison is settled.
//!
//! Whoever looks several times has several occasions to be deceived by chance. The looks are therefore planned before the run, and each has an
//! equal share of the error rate (`results::verdicts`). Verdicts are right at that level whenever the run ends, because the probability of any
//! wrong decision is at most the sum over the looks.

/// Rounds after which results are looked at. From six on, rounds count as blocks.
const ROUNDS: [u32; 4] = [6, 10, 20, 30];

/// The planned looks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    rounds: Vec<u32>,
    /// The share by which a comparison's sides must not differ for it to be settled without a decision.
    pub effect_share: f64,
}

/// What a look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookFindings {
    /// Comparisons of all claims that can be tested.
    pub of: usize,
    /// Those that further rounds may settle.
    pub open: usize,
}

impl Looks {
    /// Plans the looks of a run with at most so many rounds.
    #[must_use]
    pub fn until(rounds_max: u32, effect_share: f64) -> Self {
        let before = ROUNDS.into_iter().filter(|round| *round < rounds_max);
        Self { rounds: before.chain([rounds_max]).collect(), effect_share }
    }

    /// Returns the rounds after which results are looked at.
    #[must_use]
    pub fn rounds(&self) -> &[u32] {
        &self.rounds
    }

    /// Returns the number of looks, among which the error rate is shared.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if a look is due after one round and before another.
    #[must_use]
    pub fn is_due(&self, after: u32, before: u32) -> bool {
        self.rounds.iter().any(|round| after <= *round && *round < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_planned_up_to_the_last_round() {
        assert_eq!(Looks::until(30, 0.1).rounds(), [6, 10, 20, 30]);
        assert_eq!(Looks::until(15, 0.1).rounds(), [6, 10, 15]);
        assert_eq!(Looks::until(6, 0.1).rounds(), [6]);
    }

    #[test]
    fn a_look_is_due_once_its_round_is_over() {
        let looks = Looks::until(30, 0.1);
        assert_eq!([looks.is_due(5, 6), looks.is_due(6, 7), looks.is_due(7, 8)], [false, true, false]);
        assert!(looks.is_due(0, 7), "of a run that goes on behind its look");
    }
}
