use super::*;
use crate::clock::sntp::Stamps;
use crate::lateness::Lateness;
use std::time::Duration;

const PROTOCOL: Protocol =
    Protocol { tests: 2, blocks: 3, messages: 4, interval: Duration::from_millis(1), queries: 20 };

/// A world in which both parties' clocks, and both ways, are known.
struct World {
    setup: ClockTrial,
    clocks: [Drifting; 2],
    offset_ns: [i64; 2],
    phone: Vec<PartyRecord>,
    server: Vec<PartyRecord>,
    /// Our own time.
    now_ns: i64,
    chance: u64,
}

impl World {
    fn new(setup: ClockTrial) -> Self {
        let start_ns = 1_000_000_000_000;
        let offset_ns = [setup.phone_offset_ns, setup.server_offset_ns];
        let clock = |ahead: i64, fast_ppb| Drifting {
            offset_ns: 0,
            fast_ppb,
            since_ns: (start_ns + ahead).cast_unsigned(),
        };
        let clocks = [clock(offset_ns[0], 0), clock(offset_ns[1], setup.server_fast_ppb)];
        let [phone, server] = clocks.map(|clock| vec![PartyRecord::Clock(clock.since_ns)]);
        Self { setup, clocks, offset_ns, phone, server, now_ns: start_ns, chance: 1 }
    }

    /// Returns the reading of a party's clock at an instant of ours.
    fn reading(&self, party: usize, at_ns: i64) -> i64 {
        self.clocks[party].reading((at_ns + self.offset_ns[party]).cast_unsigned())
    }

    /// Draws the delay of a packet, with uniform jitter.
    fn way_ns(&mut self, path: &Path) -> i64 {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (self.chance >> 33) as f64 / (1_u64 << 31) as f64;
        (path.delay_ns as f64 + share * path.jitter_ns as f64) as i64
    }

    fn query(&mut self, party: usize, round: u32) {
        let (up, down) = match party {
            0 => (self.setup.link.up.clone(), self.setup.link.down.clone()),
            _ => (Path { delay_ns: 30_000, ..Path::open() }, Path { delay_ns: 30_000, ..Path::open() }),
        };
        let asked_at = self.now_ns;
        let heard = asked_at + self.way_ns(&up);
        self.now_ns = heard + self.way_ns(&down);
        let stamps = Stamps {
            asked_ns: self.reading(party, asked_at),
            received_ns: heard,
            answered_ns: heard,
            known_ns: self.reading(party, self.now_ns),
        };
        let records = if party == 0 { &mut self.phone } else { &mut self.server };
        records.push(PartyRecord::Query(round, stamps));
    }

    fn message(&mut self, number: u32) {
        let (up, down) = (self.setup.link.up.clone(), self.setup.link.down.clone());
        let sent = self.now_ns;
        let arrived = sent + self.way_ns(&up);
        self.now_ns = arrived + self.way_ns(&down);
        let (sent_ns, back_ns) = (self.reading(0, sent), self.reading(0, self.now_ns));
        self.phone.push(PartyRecord::Sent { number, sent_ns, back_ns });
        self.server.push(PartyRecord::Arrived { number, at_ns: self.reading(1, arrived) });
        self.now_ns += 500 * MS_NS as i64;
    }

    fn live(mut self) -> (ClockTrial, Findings) {
        let (mut round, mut number) = (0, 0);
        let protocol = self.setup.protocol;
        for _ in 0..protocol.tests {
            for block in 0..=protocol.blocks {
                for party in [0, 1] {
                    (0..protocol.queries).for_each(|_| self.query(party, round));
                }
                round += 1;
                for _ in 0..if block < protocol.blocks { protocol.messages } else { 0 } {
                    self.message(number);
                    number += 1;
                }
            }
        }
        let found =
            blocks::work_out(&self.setup, &self.phone, &self.server, true, Lateness::default()).unwrap();
        (self.setup, found)
    }
}

#[test]
fn in_a_known_world_every_check_of_both_setups_holds() {
    for setup in [ClockTrial::symmetric(PROTOCOL, 1), ClockTrial::asymmetric(PROTOCOL, 1)] {
        let (setup, findings) = World::new(setup).live();
        assert_eq!(findings.blocks.len(), 6);
        let failed: Vec<Check> = setup.checks(&findings).into_iter().filter(|check| !check.ok).collect();
        assert!(failed.is_empty(), "{failed:?}");
    }
}

#[test]
fn a_slower_way_back_makes_the_papers_mean_miss_by_half_of_it() {
    let (setup, findings) = World::new(ClockTrial::asymmetric(PROTOCOL, 1)).live();
    assert!((setup.papers_bias_ms() - 7.5).abs() < 1e-9);
    let bias = findings.mean(|block| block.paper_ms - block.true_ms);
    assert!((6.0..9.0).contains(&bias), "{bias}");
    let ours = findings.mean(|block| block.shortest_ms - block.true_ms);
    // Of so few queries the five shortest are not all short.
    assert!(ours.abs() < bias / 2.0, "{ours} of {bias}");
}

#[test]
fn a_mean_that_is_not_taken_again_grows_old_with_the_drift() {
    let long = Protocol { messages: 100, ..PROTOCOL };
    let (setup, findings) = World::new(ClockTrial::symmetric(long, 1)).live();
    // 100 messages each 500 ms at 50 millionths: at their mean the clocks are 25 s older.
    let aged = findings.mean(|block| block.aged_ms);
    assert!((1.2..1.4).contains(&aged), "{aged}");
    let bias = findings.mean(|block| block.paper_ms - block.true_ms);
    assert!(bias > 0.5, "{bias}");
    let failed: Vec<Check> = setup.checks(&findings).into_iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_clock_that_drifts_otherwise_than_stated_is_found_out() {
    let mut world = World::new(ClockTrial::asymmetric(PROTOCOL, 1));
    // The clock is fast by 400 parts per million, while 50 are stated.
    world.clocks[1].fast_ppb = 400_000;
    let (setup, findings) = world.live();
    assert!(setup.checks(&findings).iter().any(|check| !check.ok), "{findings:?}");
}

#[test]
fn a_record_that_is_missing_is_told() {
    let world = World::new(ClockTrial::symmetric(PROTOCOL, 1));
    let found = blocks::work_out(&world.setup, &world.phone, &world.server, true, Lateness::default());
    assert!(found.is_err());
}

#[test]
fn records_survive_being_written_and_hostile_lines_are_none() {
    for line in ["clock 5", "query 1 2 3 4 5", "sent 1 -2 3", "arrived 9 1"] {
        assert!(PartyRecord::read(line).is_some(), "{line}");
    }
    for line in ["", "clock", "clock x", "clock -1", "query 1 2 3 4", "sent 4294967296 1 1", "else 1"] {
        assert_eq!(PartyRecord::read(line), None, "{line}");
    }
}
