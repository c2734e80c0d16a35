//! One-way delays of blocks of messages, from the records of both parties.

use super::{ClockTrial, MS_NS};
use crate::clock::Drifting;
use crate::clock::estimate::{Anchor, DriftEstimate, by_shortest, mean, papers_mean_ns};
use crate::clock::party::PartyRecord;
use crate::clock::sntp::Stamps;
use crate::lateness::Lateness;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// The messages of one block, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrialBlock {
    /// The index of the test, from 0.
    pub test: u32,
    /// The index of the block in its test, from 0.
    pub block: u32,
    /// The mean one-way delay, by one clock that sees both ends.
    pub true_ms: f64,
    /// The same by both clocks, compared by the shortest round trips before and after the block.
    pub shortest_ms: f64,
    /// The error bound of `shortest_ms`.
    pub bound_ms: f64,
    /// The largest error of a single message.
    pub worst_error_ms: f64,
    /// The same by both clocks, compared by the paper's mean before the block.
    pub paper_ms: f64,
    /// The drift between both clocks, by their known speeds, from the paper's queries to the mean message.
    pub aged_ms: f64,
    /// The mean round trip of the messages.
    pub round_trip_ms: f64,
}

/// The findings of a trial.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Every block, in order.
    pub blocks: Vec<TrialBlock>,
    /// The measured rate by which the server's clock is too fast, in parts per million.
    pub drift_ppm: f64,
    /// The error bound of `drift_ppm`.
    pub drift_bound_ppm: f64,
    /// True if time namespaces set the clocks ahead; without them the parties add the offsets themselves.
    pub in_time_namespaces: bool,
    /// The lateness of the link. It does not affect the estimates, because a late packet has a longer true delay as well.
    pub lateness: Lateness,
}

impl Findings {
    /// Returns the block with the worst error in proportion to its bound.
    #[must_use]
    pub fn worst(&self) -> TrialBlock {
        let part = |block: &&TrialBlock| block.worst_error_ms / block.bound_ms.max(f64::MIN_POSITIVE);
        self.blocks.iter().max_by(|one, other| part(one).total_cmp(&part(other))).copied().unwrap_or_default()
    }

    /// The mean of something over all blocks.
    #[must_use]
    pub fn mean(&self, of: impl Fn(&TrialBlock) -> f64) -> f64 {
        mean(self.blocks.iter().map(of)).unwrap_or(f64::NAN)
    }
}

/// The records of one party, in order.
#[derive(Default)]
struct Notes {
    clock: Drifting,
    queries: BTreeMap<u32, Vec<Stamps>>,
    sent: BTreeMap<u32, (i64, i64)>,
    arrived: BTreeMap<u32, i64>,
}

impl Notes {
    fn of(records: &[PartyRecord], fast_ppb: i64) -> Self {
        let mut notes = Self::default();
        for record in records {
            match *record {
                PartyRecord::Clock(since_ns) => notes.clock = Drifting { offset_ns: 0, fast_ppb, since_ns },
                PartyRecord::Query(round, stamps) => notes.queries.entry(round).or_default().push(stamps),
                PartyRecord::Sent { number, sent_ns, back_ns } => {
                    notes.sent.insert(number, (sent_ns, back_ns));
                }
                PartyRecord::Arrived { number, at_ns } => {
                    notes.arrived.entry(number).or_insert(at_ns);
                }
            }
        }
        notes
    }

    /// Returns the offset by which the time server is ahead of this party, around a round of queries.
    fn anchor(&self, round: u32) -> io::Result<Anchor> {
        self.queries.get(&round).and_then(|queries| by_shortest(queries)).ok_or_else(incomplete)
    }

    fn line(&self, round: u32) -> io::Result<DriftEstimate> {
        Ok(DriftEstimate { before: self.anchor(round)?, after: self.anchor(round + 1)? })
    }

    /// Returns the gain of this party's clock, by its known speed, from a round of queries to one of its readings.
    fn aged_ns(&self, round: u32, shown_ns: f64) -> io::Result<f64> {
        let queries = self.queries.get(&round).ok_or_else(incomplete)?;
        let middle = |stamps: &Stamps| (stamps.asked_ns as f64 + stamps.known_ns as f64) / 2.0;
        let asked_ns = mean(queries.iter().map(middle)).ok_or_else(incomplete)?;
        Ok((shown_ns - asked_ns) * self.clock.fast_ppb as f64 / 1e9)
    }

    fn papers_mean_ns(&self, round: u32) -> io::Result<f64> {
        self.queries.get(&round).and_then(|queries| papers_mean_ns(queries)).ok_or_else(incomplete)
    }
}

/// Computes the findings from the records of both parties.
pub(super) fn work_out(
    setup: &ClockTrial,
    phone: &[PartyRecord],
    server: &[PartyRecord],
    in_time_namespaces: bool,
    lateness: Lateness,
) -> io::Result<Findings> {
    let parties = [Notes::of(phone, 0), Notes::of(server, setup.server_fast_ppb)];
    let mut blocks = Vec::new();
    for test in 0..setup.protocol.tests {
        for block in 0..setup.protocol.blocks {
            blocks.push(block_of(setup, &parties, test, block)?);
        }
    }
    let [_, server] = &parties;
    let whole =
        DriftEstimate { before: server.anchor(0)?, after: server.anchor(setup.protocol.syncs() - 1)? };
    let span_ns = (whole.after.at_ns - whole.before.at_ns).max(1.0);
    Ok(Findings {
        blocks,
        // The time server's clock is steady: its loss is the gain of the server's clock.
        drift_ppm: -whole.drift_ppb() / 1e3,
        drift_bound_ppm: (whole.before.bound_ns + whole.after.bound_ns) / span_ns * 1e6,
        in_time_namespaces,
        lateness,
    })
}

fn block_of(
    setup: &ClockTrial,
    [phone, server]: &[Notes; 2],
    test: u32,
    block: u32,
) -> io::Result<TrialBlock> {
    let protocol = &setup.protocol;
    let round = test * (protocol.blocks + 1) + block;
    let (phone_line, server_line) = (phone.line(round)?, server.line(round)?);
    let papers_ns = server.papers_mean_ns(round)? - phone.papers_mean_ns(round)?;
    let first = (test * protocol.blocks + block) * protocol.messages;
    let (mut truth, mut shortest, mut paper, mut trips) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut aged = Vec::new();
    for number in first..first + protocol.messages {
        let (sent_ns, back_ns) = *phone.sent.get(&number).ok_or_else(incomplete)?;
        let at_ns = *server.arrived.get(&number).ok_or_else(incomplete)?;
        let sent_truly = phone.clock.instant(sent_ns) - setup.phone_offset_ns;
        let arrived_truly = server.clock.instant(at_ns) - setup.server_offset_ns;
        truth.push((arrived_truly - sent_truly) as f64);
        let apart = (at_ns - sent_ns) as f64;
        let moved = server_line.offset_ns(at_ns as f64) - phone_line.offset_ns(sent_ns as f64);
        shortest.push(apart + moved);
        paper.push(apart + papers_ns);
        aged.push(server.aged_ns(round, at_ns as f64)? - phone.aged_ns(round, sent_ns as f64)?);
        trips.push((back_ns - sent_ns) as f64);
    }
    let errors = truth.iter().zip(&shortest).map(|(truth, estimate)| (truth - estimate).abs());
    let ms = |ns: f64| ns / MS_NS as f64;
    let mean_ms = |values: &[f64]| ms(mean(values.iter().copied()).unwrap_or(f64::NAN));
    Ok(TrialBlock {
        test,
        block,
        true_ms: mean_ms(&truth),
        shortest_ms: mean_ms(&shortest),
        bound_ms: ms(phone_line.bound_ns() + server_line.bound_ns()),
        worst_error_ms: ms(errors.fold(0.0, f64::max)),
        paper_ms: mean_ms(&paper),
        aged_ms: mean_ms(&aged),
        round_trip_ms: mean_ms(&trips),
    })
}

fn incomplete() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a party wrote down too little")
}
