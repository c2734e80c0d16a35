//! Repeatable randomness: every draw is a pure function of the seed and of the subject of the draw.

use crate::clock::now_ms;

/// Mixes 64 bits so that neighbouring inputs give unrelated outputs (the SplitMix64 finalizer).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The ids of one session's messages: no two sessions of an emulator share any.
#[derive(Debug)]
pub(crate) struct SessionIds(u64);

impl SessionIds {
    /// Starts the ids of the session with this number.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        // The clock is mixed in: a restart gives no id a second time.
        Self(mix(now_ms() ^ mix(seed ^ number)))
    }

    /// Returns the next id.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }
}

/// Draws for one request: the same seed, token and attempt always draw the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRng(u64);

impl RequestRng {
    pub(crate) fn new(seed: u64, token_hash: u64, attempt: u32) -> Self {
        Self(mix(seed ^ mix(token_hash ^ mix(u64::from(attempt)))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = mix(self.0);
        self.0
    }

    /// Draws uniformly from `0..limit`; 0 when the limit is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The high half of the product is even enough for chance and takes no division.
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Draws uniformly from (0, 1].
    pub(crate) fn unit(&mut self) -> f64 {
        // Never zero: its logarithm is taken.
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
