use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn due(outcome: PacketOutcome) -> u64 {
    match outcome {
        PacketOutcome::Due { at_ns, .. } => at_ns,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_leave_one_after_the_other_and_then_travel() {
    // 1500 bytes at 12 Mbit/s take 1 ms.
    let path = Path { delay_ns: 10 * MS, rate: Rate::BitsPerSecond(12_000_000), ..Path::open() };
    let mut shaper = Shaper::new(path, 1);
    assert_eq!(shaper.offer(0, 1500), PacketOutcome::Due { at_ns: 11 * MS, queued_ns: 0 });
    assert_eq!(shaper.offer(0, 1500), PacketOutcome::Due { at_ns: 12 * MS, queued_ns: MS });
    assert_eq!(shaper.offer(5 * MS, 750), PacketOutcome::Due { at_ns: 15 * MS + MS / 2, queued_ns: 0 });
}

#[test]
fn a_full_queue_drops_until_a_packet_has_left() {
    let path = Path { rate: Rate::BitsPerSecond(12_000_000), queue_packets: 2, ..Path::open() };
    let mut shaper = Shaper::new(path, 1);
    due(shaper.offer(0, 1500));
    due(shaper.offer(0, 1500));
    assert_eq!(shaper.offer(0, 1500), PacketOutcome::Overflowed);
    assert_eq!(due(shaper.offer(MS, 1500)), 3 * MS);
}

#[test]
fn a_recorded_link_lets_packets_leave_at_its_milliseconds_only() {
    let trace = Arc::new(Trace::parse("2\n2\n5\n").unwrap());
    let mut shaper = Shaper::new(Path { rate: Rate::Trace(trace), ..Path::open() }, 1);
    let dues = [1500, 1000, 500, 1500].map(|bytes| due(shaper.offer(7 * MS, bytes)) - 7 * MS);
    assert_eq!(dues, [2 * MS, 2 * MS, 2 * MS, 5 * MS]);
    // No packet was waiting at 7 (5 + 2): the next opportunity is 10.
    assert_eq!(due(shaper.offer((7 + 8) * MS, 100)) - 7 * MS, 10 * MS);
}

#[test]
fn the_share_of_lost_packets_is_what_was_asked_for() {
    let mut shaper = Shaper::new(Path { loss: 0.1, ..Path::open() }, 7);
    let lost = (0..10_000).filter(|at| shaper.offer(*at, 100) == PacketOutcome::Lost).count();
    // Four standard deviations of a binomial with n = 10,000 and p = 0.1.
    assert!((880..=1120).contains(&lost), "{lost}");
}

#[test]
fn one_seed_gives_one_story_and_two_seeds_two() {
    let story = |seed| {
        let path = Path { loss: 0.5, jitter_ns: MS, ..Path::open() };
        let mut shaper = Shaper::new(path, seed);
        (0..50).map(|at| shaper.offer(at * MS, 100)).collect::<Vec<_>>()
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

prop_compose! {
    fn path()(
        delay_ns in 0..100 * MS,
        jitter_ns in 0..50 * MS,
        rate in prop_oneof![Just(Rate::Unlimited), (1_000..1_000_000_000_u64).prop_map(Rate::BitsPerSecond)],
        loss in 0.0..1.0,
        queue_packets in 0..50_usize,
    ) -> Path {
        Path { delay_ns, jitter_ns, rate, loss, queue_packets }
    }
}

proptest! {
    #[test]
    fn no_packet_overtakes_another_or_is_faster_than_the_link(
        path in path(),
        seed: u64,
        packets in prop::collection::vec((0..5 * MS, 20..1500_usize), 1..200),
    ) {
        let mut shaper = Shaper::new(path.clone(), seed);
        let (mut now, mut last, mut sent_bits) = (0, 0, 0);
        for (pause, bytes) in packets {
            now += pause;
            if let PacketOutcome::Due { at_ns, .. } = shaper.offer(now, bytes) {
                sent_bits += bytes as u128 * 8;
                prop_assert!(at_ns >= last && at_ns >= now + path.delay_ns);
                if let Rate::BitsPerSecond(rate) = path.rate {
                    let least = sent_bits * SECOND_NS / u128::from(rate);
                    // Rounding down costs less than a nanosecond a packet.
                    prop_assert!(u128::from(at_ns - path.delay_ns) + 200 >= least);
                }
                last = at_ns;
            }
        }
    }
}
