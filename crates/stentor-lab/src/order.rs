//! The order of runs: randomized, so that drift (heat, neighbours, a growing database) affects all cells alike.

/// Returns `repetitions` rounds over `cells`. Each round holds every cell once, in its own order derived from the seed. Each pair is the
/// cell's index and the round, from 1.
#[must_use]
pub fn rounds(cells: usize, repetitions: u32, seed: u64) -> Vec<(usize, u32)> {
    let mut chance = SplitMix64::new(seed);
    let rounds = (1..=repetitions).flat_map(|round| {
        let mut places: Vec<usize> = (0..cells).collect();
        for last in (1..cells).rev() {
            places.swap(last, chance.below(last as u64 + 1) as usize);
        }
        places.into_iter().map(move |place| (place, round))
    });
    rounds.collect()
}

/// A reproducible random number generator.
#[derive(Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 up to but without `bound`, which is not 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns a number from 0 up to but without 1.
    pub(crate) const fn share(&mut self) -> f64 {
        // As many bits as the mantissa of double precision holds.
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_rounds_and_two_seeds_differ_in_their_order() {
        let first = rounds(13, 2, 1);
        let places = |round: &[(usize, u32)]| round.iter().map(|(place, _)| *place).collect::<Vec<_>>();
        assert_ne!(places(&first[..13]), places(&first[13..]));
        assert_ne!(first, rounds(13, 2, 2));
        assert_eq!(first, rounds(13, 2, 1));
    }

    proptest! {
        #[test]
        fn every_round_holds_every_cell_once(cells in 0..40_usize, repetitions in 0..6_u32, seed: u64) {
            let order = rounds(cells, repetitions, seed);
            for round in 1..=repetitions {
                let mut places: Vec<usize> =
                    order.iter().filter(|(_, at)| *at == round).map(|(place, _)| *place).collect();
                places.sort_unstable();
                prop_assert_eq!(places, (0..cells).collect::<Vec<_>>());
            }
            prop_assert_eq!(order.len(), cells * repetitions as usize);
        }
    }
}
