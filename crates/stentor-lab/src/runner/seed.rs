//! The seed of a fork, so that no two forks share the chance on their links or their contents.

use aws_lc_rs::digest::{Context, SHA256};

/// The least seed. All seeds have ten digits, so that requests that name their seed have one size, and fit in 31 bits together with the
/// number of any exchange.
const LEAST: u64 = 1_000_000_000;
/// The count of seeds.
const COUNT: u64 = 1_000_000_000;

/// The parts that tell a fork from every other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkIdentity<'a> {
    /// The study.
    pub study: &'a str,
    /// The seed of the run (`--seed`).
    pub run: u64,
    /// The round, from 1.
    pub round: u32,
    /// The cell: variant, experiment, subject, halves and levels.
    pub cell: &'a str,
    /// The number of the fork within its cell, from 1.
    pub fork: u32,
}

impl ForkIdentity<'_> {
    /// Returns the seed of the fork, which every attempt at it has.
    ///
    /// It is made from the first eight bytes of a SHA-256 digest of all parts, each behind its length, and must never change: with it, a
    /// record names the contents and the chance of its fork.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let numbers = [self.run, u64::from(self.round), u64::from(self.fork)].map(u64::to_le_bytes);
        let mut context = Context::new(&SHA256);
        for text in [self.study, self.cell] {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        }
        numbers.iter().for_each(|number| context.update(number));
        let digest = context.finish();
        let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
        LEAST + u64::from_le_bytes(first) % COUNT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FORK: ForkIdentity<'_> = ForkIdentity {
        study: "albertengo-2020",
        run: 1,
        round: 1,
        cell: "paper|RTT|REST|a|b|payload=64 B",
        fork: 1,
    };

    #[test]
    fn every_part_of_a_fork_changes_its_seed() {
        let others = [
            ForkIdentity { study: "cai-2009", ..FORK },
            ForkIdentity { run: 2, ..FORK },
            ForkIdentity { round: 2, ..FORK },
            ForkIdentity { cell: "paper|RTT|REST|a|b|payload=256 B", ..FORK },
            ForkIdentity { fork: 2, ..FORK },
            // The end of one part is not the beginning of the next.
            ForkIdentity { study: "albertengo-2020p", cell: "aper|RTT|REST|a|b|payload=64 B", ..FORK },
        ];
        let seeds: BTreeSet<u64> = others.iter().chain([&FORK]).map(ForkIdentity::seed).collect();
        assert_eq!(seeds.len(), 7);
    }

    #[test]
    fn a_seed_is_the_same_in_every_version_of_the_laboratory() {
        assert_eq!(FORK.seed(), 1_877_147_857);
        assert_eq!(ForkIdentity { fork: 2, round: 2, ..FORK }.seed(), 1_063_452_500);
    }

    #[test]
    fn all_seeds_have_ten_digits_and_the_forks_of_a_study_have_no_seed_in_common() {
        let cells: Vec<String> =
            (0..200).map(|number| format!("paper|RTT|REST|a|b|payload={number} B")).collect();
        let forks = cells
            .iter()
            .flat_map(|cell| (1..=10).map(move |fork| ForkIdentity { cell, round: fork, fork, ..FORK }));
        let seeds: BTreeSet<u64> = forks.map(|fork| fork.seed()).collect();
        assert_eq!(seeds.len(), 2_000);
        assert!(seeds.iter().all(|seed| seed.to_string().len() == 10 && *seed < 1 << 31));
    }
}
