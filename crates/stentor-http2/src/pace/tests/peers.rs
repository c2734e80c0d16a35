//! The pace against peers that are no more than a few numbers, in virtual time.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::latency::Latency;

/// A push service: so far away, and so many answers a second at most, in the order of the requests.
#[derive(Debug, Clone, Copy)]
struct Peer {
    distance_ms: f64,
    per_second: f64,
    /// By how much, as a share, a distance may be longer.
    jitter: f64,
}

/// A sender that always has more to send, and what it saw.
struct Play {
    pace: Pace,
    latency: Latency,
    now_ms: f64,
    /// When each was opened and is answered.
    open: VecDeque<(f64, f64)>,
    last_end_ms: f64,
    dice: u64,
}

impl Play {
    fn new(max_inflight_requests: usize) -> Self {
        let pace = Pace::new(&Limits {
            initial_inflight_requests: 1_024,
            max_inflight_requests,
            ..Limits::default()
        });
        Self {
            pace,
            latency: Latency::default(),
            now_ms: 0.0,
            open: VecDeque::new(),
            last_end_ms: 0.0,
            dice: 1,
        }
    }

    /// Plays on for so long, in steps of a millisecond; gives the answers.
    fn run(&mut self, peer: Peer, milliseconds: usize) -> usize {
        let mut answered = 0;
        for _ in 0..milliseconds {
            self.now_ms += 1.0;
            let (mut count, mut youngest) = (0, f64::MIN);
            while let Some((opened, _)) = self.open.pop_front_if(|(_, end)| *end <= self.now_ms) {
                count += 1;
                youngest = youngest.max(opened);
            }
            if count > 0 {
                let now = Duration::from_secs_f64(self.now_ms / 1_000.0);
                self.pace.ended(count, count);
                self.latency.note(Duration::from_secs_f64((self.now_ms - youngest) / 1_000.0), now);
                let took = Duration::from_secs_f64((self.now_ms - youngest) / 1_000.0);
                self.pace.observe(now, count, took, self.latency.floor());
                answered += count;
            }
            let room = self.pace.room();
            self.pace.started(room);
            (0..room).for_each(|_| self.open(peer));
        }
        answered
    }

    fn open(&mut self, peer: Peer) {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chance = (self.dice >> 40) as f64 / f64::from(1 << 24);
        let far = self.now_ms + peer.distance_ms * (1.0 + peer.jitter * chance);
        let end = far.max(self.last_end_ms + 1_000.0 / peer.per_second);
        self.last_end_ms = end;
        self.open.push_back((self.now_ms, end));
    }
}

const AT_ONCE: f64 = 1e9;

#[test]
fn distance_alone_holds_nothing_back() {
    for distance_ms in [5.0, 50.0, 200.0, 1_000.0] {
        let mut play = Play::new(4_096);
        let far = Peer { distance_ms, per_second: AT_ONCE, jitter: 0.2 };
        // Twice doubled from 1,024, and as long again for the rates that allow it to be known.
        play.run(far, (distance_ms * 9.0) as usize + 50);
        assert_eq!(play.pace.limit(), 4_096, "{distance_ms} ms away");
    }
}

#[test]
fn a_peer_that_can_do_no_more_is_not_given_ever_more() {
    let mut play = Play::new(16_384);
    let full = Peer { distance_ms: 20.0, per_second: 5_000.0, jitter: 0.1 };
    play.run(full, 5_000);
    let answered = play.run(full, 10_000);
    assert!(answered >= 45_000, "{answered} of 50000");
    // A hundred would do; as long as answers come within a tenth of a second nobody is hurt.
    assert!(play.pace.limit() <= 1_000, "{} in flight", play.pace.limit());
}

#[test]
fn a_peer_that_slows_down_is_given_less_and_one_that_recovers_gets_more_again() {
    let mut play = Play::new(16_384);
    let well = Peer { distance_ms: 50.0, per_second: 40_000.0, jitter: 0.1 };
    let ill = Peer { per_second: 2_000.0, ..well };
    play.run(well, 5_000);
    let before = play.pace.limit();
    play.run(ill, 60_000);
    let meanwhile = play.pace.limit();
    assert!(meanwhile < before / 2, "{before} in flight before, {meanwhile} meanwhile");
    play.run(well, 20_000);
    let answered = play.run(well, 5_000);
    assert!(answered >= 160_000, "{answered} of 200000, {} in flight", play.pace.limit());
}

#[test]
fn a_peer_that_moves_away_is_followed() {
    let mut play = Play::new(4_096);
    let near = Peer { distance_ms: 50.0, per_second: AT_ONCE, jitter: 0.1 };
    let far = Peer { distance_ms: 200.0, ..near };
    play.run(near, 5_000);
    let most = 4_096.0 / 210.0 * 1_000.0;
    // The shortest latency of before is believed for two spans of five seconds.
    play.run(far, 12_000);
    let answered = play.run(far, 10_000) as f64 / 10.0;
    assert!(answered >= 0.9 * most, "{answered} a second of {most}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_the_peer_is_like_it_gets_nearly_all_it_can_take(
        distance_ms in 2.0..400.0_f64,
        per_second in 500.0..40_000.0_f64,
        jitter in 0.0..0.5_f64,
    ) {
        let mut play = Play::new(16_384);
        let peer = Peer { distance_ms, per_second, jitter };
        play.run(peer, 20_000);
        let answered = play.run(peer, 10_000) as f64 / 10.0;
        // In the order of the requests, so the longest distance counts.
        let possible = per_second.min(16_384.0 / (distance_ms * (1.0 + jitter)) * 1_000.0);
        prop_assert!(answered >= 0.85 * possible, "{answered} of {possible} a second, {} in flight", play.pace.limit());
        // What it cannot take waits here and not there. Growth that a queue hid is not always found out: then about as many
        // stay in flight as may be at the start.
        let enough = possible * distance_ms * (1.0 + jitter) / 1_000.0;
        let most = (8.0 * enough + 1_100.0).max(1.2 * 4_096.0);
        prop_assert!((play.pace.limit() as f64) <= most, "{} for {enough}", play.pace.limit());
        prop_assert!((4..=16_384).contains(&play.pace.limit()));
    }
}
