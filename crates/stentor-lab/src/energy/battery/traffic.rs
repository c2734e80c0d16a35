//! Repeated traffic: the exchanges of a trace, one per period, each with a random delay.

use super::super::EnergyError;
use super::super::exchanges::TraceExchanges;
use super::super::trace::TracePacket;
use crate::order::SplitMix64;

/// An endless repetition of a trace's exchanges.
#[derive(Debug)]
pub struct RepeatedTraffic<'a> {
    exchanges: &'a TraceExchanges,
    period_ns: i64,
    jitter_ns: i64,
    chance: SplitMix64,
    count: u64,
    /// Packets of exchanges that extend into the next period.
    waiting: Vec<TracePacket>,
}

impl<'a> RepeatedTraffic<'a> {
    /// Starts an exchange every `period_ns`, up to `jitter_ns` late.
    pub fn new(
        exchanges: &'a TraceExchanges,
        period_ns: i64,
        jitter_ns: i64,
        seed: u64,
    ) -> Result<Self, EnergyError> {
        if period_ns <= 0 || jitter_ns < 0 || jitter_ns >= period_ns {
            let problem = "the period must be longer than nothing, and the jitter shorter than the period";
            return Err(EnergyError::Senseless(problem.into()));
        }
        let chance = SplitMix64::new(seed);
        Ok(Self { exchanges, period_ns, jitter_ns, chance, count: 0, waiting: Vec::new() })
    }

    /// Appends the packets of the next period in the order of time; all are later than the previous ones.
    pub fn next_period(&mut self, packets: &mut Vec<TracePacket>) {
        let begin = self.now_ns() + self.chance.below(self.jitter_ns as u64 + 1) as i64;
        let all = self.exchanges.all();
        let place = (self.count % all.len() as u64) as usize;
        let moved = all[place].iter().map(|packet| TracePacket { at_ns: packet.at_ns + begin, ..*packet });
        self.waiting.extend(moved);
        self.waiting.sort_by_key(|packet| packet.at_ns);
        self.count += 1;
        let due = self.waiting.partition_point(|packet| packet.at_ns < self.now_ns());
        packets.extend(self.waiting.drain(..due));
    }

    /// Returns the start of the next period.
    #[must_use]
    pub const fn now_ns(&self) -> i64 {
        self.count as i64 * self.period_ns
    }

    /// Returns the number of exchanges started.
    #[must_use]
    pub const fn exchanges(&self) -> u64 {
        self.count
    }
}
