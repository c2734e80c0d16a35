//! Repeated traffic: the exchanges of a trace, one per period, each with a random delay.

use super::super::EnergyError;
use super::super::trace::{PacketTrace, TracePacket};
use crate::order::SplitMix64;

/// Maximum of exchanges in a trace: eleven days of one every half second.
const EXCHANGES_MAX: i64 = 2_000_000;

/// An endless repetition of a trace's exchanges.
#[derive(Debug)]
pub struct RepeatedTraffic {
    /// The packets of each exchange, with times relative to its start.
    exchanges: Vec<Vec<TracePacket>>,
    period_ns: i64,
    jitter_ns: i64,
    chance: SplitMix64,
    count: u64,
    /// Packets of exchanges that extend into the next period.
    waiting: Vec<TracePacket>,
}

impl RepeatedTraffic {
    /// Divides a trace into exchanges of `captured_every_ns` from its first packet on, and starts one every `period_ns`, up to `jitter_ns`
    /// late.
    pub fn new(
        trace: &PacketTrace,
        captured_every_ns: i64,
        period_ns: i64,
        jitter_ns: i64,
        seed: u64,
    ) -> Result<Self, EnergyError> {
        if captured_every_ns <= 0 || period_ns <= 0 || jitter_ns < 0 || jitter_ns >= period_ns {
            let problem = "periods must be longer than nothing, and the jitter shorter than a period";
            return Err(EnergyError::Senseless(problem.into()));
        }
        let nothing = || EnergyError::Missing("there is no packet that could be repeated".into());
        let (first, last) = trace.span_ns().ok_or_else(nothing)?;
        let count = (last - first) / captured_every_ns + 1;
        if count > EXCHANGES_MAX {
            return Err(EnergyError::Senseless(format!("more than {EXCHANGES_MAX} exchanges in the trace")));
        }
        let mut exchanges = vec![Vec::new(); count as usize];
        for packet in trace.packets() {
            let since = packet.at_ns - first;
            let place = since / captured_every_ns;
            exchanges[place as usize].push(TracePacket { at_ns: since % captured_every_ns, ..*packet });
        }
        Ok(Self {
            exchanges,
            period_ns,
            jitter_ns,
            chance: SplitMix64::new(seed),
            count: 0,
            waiting: Vec::new(),
        })
    }

    /// Appends the packets of the next period in the order of time; all are later than the previous ones.
    pub fn next_period(&mut self, packets: &mut Vec<TracePacket>) {
        let begin = self.now_ns() + self.chance.below(self.jitter_ns as u64 + 1) as i64;
        let place = (self.count % self.exchanges.len() as u64) as usize;
        let moved =
            self.exchanges[place].iter().map(|packet| TracePacket { at_ns: packet.at_ns + begin, ..*packet });
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
