//! Congestion control against simulated peers of a few parameters, in virtual time.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::latency::Latency;

/// A push service with a distance and a maximum rate of responses, in the order of the requests.
#[derive(Debug, Clone, Copy)]
struct Peer {
    distance_ms: f64,
    per_second: f64,
    /// Share by which a distance may be longer.
    jitter: f64,
    trouble: PeerTrouble,
}

/// A push service's behaviour beside regular responses.
#[derive(Debug, Clone, Copy)]
enum PeerTrouble {
    None,
    /// Resets every n-th request.
    Resets(u64),
    /// Resets the first n requests.
    Burst(u64),
    /// Rejects every n-th request with a 429.
    Refuses(u64),
    /// Rejects requests beyond this number in flight with a 429.
    Full(usize),
    /// Rejects requests beyond this number a second with a 429.
    Over(f64),
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Reset,
    Refused,
}

impl Peer {
    const fn new(distance_ms: f64, per_second: f64, jitter: f64) -> Self {
        Self { distance_ms, per_second, jitter, trouble: PeerTrouble::None }
    }

    const fn trouble(self, trouble: PeerTrouble) -> Self {
        Self { trouble, ..self }
    }
}

/// A sender that always has more to send, with its state.
struct SenderSimulation {
    congestion: CongestionControl,
    latency: Latency,
    now_ms: f64,
    /// Opening time, end time and end of each request.
    open: VecDeque<(f64, f64, End)>,
    last_end_ms: f64,
    dice: u64,
    opened: u64,
    /// Requests that a peer with a quota would accept now.
    tokens: f64,
}

impl SenderSimulation {
    fn new(max_inflight_requests: usize) -> Self {
        let congestion = CongestionControl::new(&Limits {
            initial_inflight_requests: 1_024,
            max_inflight_requests,
            ..Limits::default()
        });
        Self {
            congestion,
            latency: Latency::default(),
            now_ms: 0.0,
            open: VecDeque::new(),
            last_end_ms: 0.0,
            dice: 1,
            opened: 0,
            tokens: 0.0,
        }
    }

    /// Simulates `milliseconds` in steps of one millisecond; returns the number of responses that were not rejections.
    fn run(&mut self, peer: Peer, milliseconds: usize) -> usize {
        self.run_with(peer, milliseconds, usize::MAX)
    }

    /// Like [`Self::run`], with at most `most` new requests in each millisecond. Requests that find no room are lost.
    fn run_with(&mut self, peer: Peer, milliseconds: usize, most: usize) -> usize {
        let mut answered = 0;
        for _ in 0..milliseconds {
            self.now_ms += 1.0;
            if let PeerTrouble::Over(per_second) = peer.trouble {
                self.tokens = (self.tokens + per_second / 1_000.0).min(per_second / 20.0);
            }
            answered += self.read();
            let room = self.congestion.room().min(most);
            self.congestion.started(room);
            (0..room).for_each(|_| self.open(peer));
        }
        answered
    }

    /// Reads the outcomes that are due, as a connection does: failures first.
    fn read(&mut self) -> usize {
        let (mut reset, mut refused, mut accepted, mut youngest) = (0, 0, 0, f64::MIN);
        while let Some((opened, _, end)) = self.open.pop_front_if(|(_, end, _)| *end <= self.now_ms) {
            match end {
                End::Reset => reset += 1,
                End::Refused => refused += 1,
                End::Answered => accepted += 1,
            }
            youngest = if end == End::Reset { youngest } else { youngest.max(opened) };
        }
        if reset > 0 {
            self.congestion.failed(reset);
        }
        let answers = accepted + refused;
        self.congestion.ended(reset + answers, answers);
        if answers > 0 {
            let now = Duration::from_secs_f64(self.now_ms / 1_000.0);
            let took = Duration::from_secs_f64((self.now_ms - youngest) / 1_000.0);
            self.latency.note(took, now);
            self.congestion.observe(now, answers, took, self.latency.min_rtt());
        }
        if refused > 0 {
            self.congestion.slow_down();
        }
        accepted
    }

    fn open(&mut self, peer: Peer) {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chance = (self.dice >> 40) as f64 / f64::from(1 << 24);
        let far = self.now_ms + peer.distance_ms * (1.0 + peer.jitter * chance);
        let end = far.max(self.last_end_ms + 1_000.0 / peer.per_second);
        self.last_end_ms = end;
        let outcome = self.ending(peer.trouble);
        self.open.push_back((self.now_ms, end, outcome));
    }

    fn ending(&mut self, trouble: PeerTrouble) -> End {
        self.opened += 1;
        let (reset, refused) = match trouble {
            PeerTrouble::None => (false, false),
            PeerTrouble::Resets(each) => (self.opened.is_multiple_of(each), false),
            PeerTrouble::Burst(count) => (self.opened <= count, false),
            PeerTrouble::Refuses(each) => (false, self.opened.is_multiple_of(each)),
            PeerTrouble::Full(most) => (false, self.open.len() >= most),
            PeerTrouble::Over(_) => (false, !self.is_within_quota()),
        };
        match (reset, refused) {
            (true, _) => End::Reset,
            (_, true) => End::Refused,
            _ => End::Answered,
        }
    }

    fn is_within_quota(&mut self) -> bool {
        let is_within = self.tokens >= 1.0;
        self.tokens -= if is_within { 1.0 } else { 0.0 };
        is_within
    }

    /// Simulates `milliseconds` with one request in 20 ms: the time between two campaigns.
    fn drip(&mut self, milliseconds: usize) {
        for now in 0..milliseconds {
            self.now_ms += 1.0;
            self.read();
            if now.is_multiple_of(20) {
                self.congestion.started(1);
                self.open(Peer::new(200.0, AT_ONCE, 0.1));
            }
        }
    }

    /// Restarts the count of requests.
    fn count_anew(&mut self) {
        self.opened = 0;
    }
}

const AT_ONCE: f64 = 1e9;

#[test]
fn distance_alone_holds_nothing_back() {
    for distance_ms in [5.0, 50.0, 200.0, 1_000.0] {
        let mut sender = SenderSimulation::new(4_096);
        let far = Peer::new(distance_ms, AT_ONCE, 0.2);
        // Long enough to double twice from 1,024, and as long again until the rates that allow it are known.
        sender.run(far, (distance_ms * 9.0) as usize + 50);
        assert_eq!(sender.congestion.limit(), 4_096, "{distance_ms} ms away");
    }
}

#[test]
fn a_peer_that_can_do_no_more_is_not_given_ever_more() {
    let mut sender = SenderSimulation::new(16_384);
    let full = Peer::new(20.0, 5_000.0, 0.1);
    sender.run(full, 5_000);
    let answered = sender.run(full, 10_000);
    assert!(answered >= 45_000, "{answered} of 50000");
    // A hundred would suffice; any number is acceptable while responses come within a tenth of a second.
    assert!(sender.congestion.limit() <= 1_000, "{} in flight", sender.congestion.limit());
}

#[test]
fn a_peer_that_slows_down_is_given_less_and_one_that_recovers_gets_more_again() {
    let mut sender = SenderSimulation::new(16_384);
    let well = Peer::new(50.0, 40_000.0, 0.1);
    let slow = Peer { per_second: 2_000.0, ..well };
    sender.run(well, 5_000);
    let before = sender.congestion.limit();
    sender.run(slow, 60_000);
    let meanwhile = sender.congestion.limit();
    assert!(meanwhile < before / 2, "{before} in flight before, {meanwhile} meanwhile");
    sender.run(well, 20_000);
    let answered = sender.run(well, 5_000);
    assert!(answered >= 160_000, "{answered} of 200000, {} in flight", sender.congestion.limit());
}

#[test]
fn a_peer_that_moves_away_is_followed() {
    let mut sender = SenderSimulation::new(4_096);
    let near = Peer::new(50.0, AT_ONCE, 0.1);
    let far = Peer { distance_ms: 200.0, ..near };
    sender.run(near, 5_000);
    let most = 4_096.0 / 210.0 * 1_000.0;
    // The previous shortest latency counts for two spans of five seconds.
    sender.run(far, 12_000);
    let answered = sender.run(far, 10_000) as f64 / 10.0;
    assert!(answered >= 0.9 * most, "{answered} a second of {most}");
}

/// Returns the response rate per second of a peer that can take 300,000: before its trouble begins, and during `milliseconds` of it.
fn before_and_after(distance_ms: f64, trouble: PeerTrouble, milliseconds: usize) -> (f64, f64) {
    let mut sender = SenderSimulation::new(65_536);
    let well = Peer::new(distance_ms, 300_000.0, 0.1);
    sender.run(well, 3_000);
    let before = sender.run(well, 2_000) as f64 / 2.0;
    sender.count_anew();
    let after = sender.run(well.trouble(trouble), milliseconds) as f64 * 1_000.0 / milliseconds as f64;
    (before, after)
}

#[test]
fn a_reset_now_and_then_costs_no_throughput() {
    for distance_ms in [50.0, 200.0] {
        for each in [1_000_000, 100_000, 1_000] {
            let (before, after) = before_and_after(distance_ms, PeerTrouble::Resets(each), 8_000);
            let least = 0.9 * before;
            assert!(before >= 250_000.0, "{before} a second {distance_ms} ms away");
            assert!(after >= least, "{after} of {before} a second {distance_ms} ms away, 1 in {each} reset");
        }
    }
}

#[test]
fn a_burst_of_resets_costs_a_few_round_trips_and_not_the_rest_of_the_day() {
    for distance_ms in [50.0, 200.0] {
        let (before, after) = before_and_after(distance_ms, PeerTrouble::Burst(20_000), 15_000);
        assert!(after >= 0.9 * before, "{after} of {before} a second {distance_ms} ms away");
    }
}

#[test]
fn a_peer_with_room_for_so_many_gets_about_as_many_and_no_more() {
    for distance_ms in [50.0, 200.0] {
        let mut sender = SenderSimulation::new(65_536);
        let full = Peer::new(distance_ms, AT_ONCE, 0.1).trouble(PeerTrouble::Full(2_000));
        sender.run(full, 5_000);
        let most = 2_000.0 / (distance_ms * 1.1) * 1_000.0;
        let answered = sender.run(full, 20_000) as f64 / 20.0;
        assert!(answered >= 0.7 * most, "{answered} of {most} a second {distance_ms} ms away");
        assert!(sender.congestion.limit() <= 2_600, "{} in flight", sender.congestion.limit());
    }
}

#[test]
fn a_peer_that_goes_on_refusing_is_asked_little() {
    for (trouble, most) in
        [(PeerTrouble::Refuses(1), 48), (PeerTrouble::Refuses(2), 48), (PeerTrouble::Refuses(100), 300)]
    {
        let mut sender = SenderSimulation::new(65_536);
        let peer = Peer::new(50.0, 300_000.0, 0.1);
        sender.run(peer, 3_000);
        sender.run(peer.trouble(trouble), 10_000);
        let mut highest = 0;
        for _ in 0..50 {
            sender.run(peer.trouble(trouble), 100);
            highest = highest.max(sender.congestion.limit());
        }
        assert!(highest <= most, "{highest} in flight, {trouble:?}");
    }
}

#[test]
fn a_peer_with_a_quota_is_asked_about_as_much_as_it_allows() {
    let mut sender = SenderSimulation::new(65_536);
    let over_quota = Peer::new(50.0, AT_ONCE, 0.1).trouble(PeerTrouble::Over(10_000.0));
    sender.run(over_quota, 5_000);
    let before = sender.opened;
    let accepted = sender.run(over_quota, 20_000) as f64 / 20.0;
    let opened = (sender.opened - before) as f64 / 20.0;
    assert!(accepted >= 7_000.0 && opened <= 1.3 * 10_000.0, "{accepted} of {opened} a second");
}

#[test]
fn what_failed_once_does_not_make_the_next_campaign_slow() {
    let peer = Peer::new(200.0, 300_000.0, 0.1);
    let next_campaign = |trouble: PeerTrouble| {
        let mut sender = SenderSimulation::new(65_536);
        sender.run(peer, 3_000);
        sender.count_anew();
        sender.run(peer.trouble(trouble), 1_000);
        sender.drip(300_000);
        sender.run(peer, 6_000)
    };
    let (answered, wanted) = (next_campaign(PeerTrouble::Burst(20_000)), next_campaign(PeerTrouble::None));
    assert!(answered as f64 >= 0.9 * wanted as f64, "{answered} of {wanted}");
}

#[test]
fn a_quota_behind_a_second_of_latency_is_used_though_it_needs_more_in_flight_than_the_start_allows() {
    let mut sender = SenderSimulation::new(65_536);
    let far = Peer::new(1_000.0, AT_ONCE, 0.1);
    let start = sender.congestion.limit();
    let mut answered = 0;
    for second in 0..20 {
        let came = sender.run_with(far, 1_000, 10);
        answered += if second >= 10 { came } else { 0 };
    }
    assert!(
        answered >= 9 * 10_000,
        "{answered} of 100000 in ten seconds, {} in flight",
        sender.congestion.limit()
    );
    assert!(
        start < 2_000 && sender.congestion.limit() >= 10_000,
        "{start}, then {}",
        sender.congestion.limit()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_the_peer_is_like_it_gets_nearly_all_it_can_take(
        distance_ms in 2.0..400.0_f64,
        per_second in 500.0..40_000.0_f64,
        jitter in 0.0..0.5_f64,
    ) {
        let mut sender = SenderSimulation::new(16_384);
        let peer = Peer::new(distance_ms, per_second, jitter);
        sender.run(peer, 20_000);
        let answered = sender.run(peer, 10_000) as f64 / 10.0;
        // Responses come in the order of the requests, so the longest distance counts.
        let possible = per_second.min(16_384.0 / (distance_ms * (1.0 + jitter)) * 1_000.0);
        prop_assert!(answered >= 0.85 * possible, "{answered} of {possible} a second, {} in flight", sender.congestion.limit());
        // Excess requests wait here and not at the peer. Growth hidden by a queue is not always detected; then about as many requests stay
        // in flight as the initial limit allows.
        let enough = possible * distance_ms * (1.0 + jitter) / 1_000.0;
        let most = (8.0 * enough + 1_100.0).max(1.2 * 4_096.0);
        prop_assert!((sender.congestion.limit() as f64) <= most, "{} for {enough}", sender.congestion.limit());
        prop_assert!((4..=16_384).contains(&sender.congestion.limit()));
    }
}
