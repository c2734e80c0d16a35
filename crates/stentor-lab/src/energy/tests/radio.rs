//! Radios: values computed by hand from the coefficients, and invariants of any trace.

use super::super::coefficients::{Bound, RADIOS, RadioModel};
use super::super::radio::RadioState::{
    self, Active, Awake, Dch, Fach, High, Idle, LongDrx, Promotion, ShortDrx, Tail,
};
use super::super::radio::{RadioTimeline, simulate, simulate_between};
use super::super::trace::{Direction, PacketTrace, TracePacket};
use super::super::{EnergyKind, EnergySource};
use super::{MS, all_joules, assert_near, down, exchanges, up};
use proptest::prelude::*;

fn model(id: &str) -> RadioModel {
    RadioModel::built_in(id).expect("coefficients")
}

fn timeline(id: &str, trace: &PacketTrace) -> RadioTimeline {
    simulate(&model(id), Bound::Value, trace).expect("a timeline")
}

fn states(timeline: &RadioTimeline) -> Vec<(RadioState, i64)> {
    timeline
        .stretches()
        .iter()
        .map(|stretch| (stretch.state, (stretch.to_ns - stretch.from_ns) / MS))
        .collect()
}

/// Mean power between the 10th and the 110th exchange, and the share of that time in the given states.
fn settled(id: &str, packets: &[TracePacket], busy: &[RadioState]) -> (f64, f64) {
    let timeline = timeline(id, &exchanges(120, packets));
    let (from, to) = (5_000 * MS, 55_000 * MS);
    let inside = timeline.stretches().iter().filter(|stretch| busy.contains(&stretch.state));
    let lasted: i64 = inside.map(|stretch| (stretch.to_ns.min(to) - stretch.from_ns.max(from)).max(0)).sum();
    (timeline.joules(from, to).expect("within") / 50.0, lasted as f64 / (to - from) as f64)
}

/// An exchange that keeps the radio awake: packets at most 200 ms apart until the response.
fn busy_exchange(round_trip_ms: i64) -> Vec<TracePacket> {
    let mut packets: Vec<TracePacket> = (0..round_trip_ms).step_by(200).map(|at| up(at, 60)).collect();
    packets.push(down(round_trip_ms, 400));
    packets
}

const WIFI_BUSY: [RadioState; 2] = [Awake, High];

#[test]
fn wifi_of_the_galaxy_s2_is_awake_for_the_round_trip_and_220_ms() {
    // The published mean round trips; with one exchange each 500 ms the sleep timer decides.
    for (round_trip_ms, watt, duty) in
        [(100, 0.171, 0.64), (177, 0.205, 0.79), (531, 0.250, 1.0), (697, 0.250, 1.0)]
    {
        let (mean, awake) = settled("wifi-s2", &busy_exchange(round_trip_ms), &WIFI_BUSY);
        assert_near(mean, watt, 0.0006);
        assert_near(awake, duty, 0.005);
    }
}

#[test]
fn wifi_of_the_galaxy_s2_sleeps_in_a_long_wait_when_nothing_keeps_it_awake() {
    // Request and response alone: 531 ms keep the radio awake from 0 to 251 ms of each half second, 697 ms from 0 to 417.
    for (round_trip_ms, awake) in [(177, 0.397 / 0.5), (531, 0.251 / 0.5), (697, 0.417 / 0.5)] {
        let (mean, duty) = settled("wifi-s2", &[up(0, 400), down(round_trip_ms, 400)], &WIFI_BUSY);
        assert_near(duty, awake, 1e-3);
        assert_near(mean, awake * 0.25 + (1.0 - awake) * 0.03, 1e-3);
    }
}

#[test]
fn lte_never_leaves_its_tail_at_one_exchange_each_half_second() {
    let means = [100, 177, 531, 697].map(|round_trip_ms| {
        let packets = [up(0, 400), down(round_trip_ms, 400)];
        let (mean, idle) = settled("lte", &packets, &[Idle, Promotion]);
        assert_near(idle, 0.0, 0.0);
        mean
    });
    let (least, greatest) =
        (means.iter().fold(9.0, |a: f64, b| a.min(*b)), means.iter().fold(0.0, |a: f64, b| a.max(*b)));
    assert!(least > 1.05 && greatest < 1.25 && greatest / least < 1.07, "{means:?}");
}

#[test]
fn wifi_has_its_higher_power_in_windows_with_many_bytes() {
    let timeline = timeline("wifi-s2", &PacketTrace::new((0..10).map(|packet| down(packet, 1500)).collect()));
    assert_eq!(states(&timeline), [(High, 50), (Awake, 179)]);
    assert_near(all_joules(&timeline), 0.05 * 0.45 + 0.179 * 0.25, 1e-9);
}

#[test]
fn lte_goes_through_promotion_reception_and_a_tail() {
    let timeline = timeline("lte", &PacketTrace::new(vec![up(0, 1_000_000), down(80, 1_000_000)]));
    let expected = [(Promotion, 260), (Active, 80), (Tail, 100), (ShortDrx, 20), (LongDrx, 10_000)];
    assert_eq!(states(&timeline), expected);
    // 8 Mbit in each direction at 438.39 and 51.97 mJ, promotion, reception and tail at 1.2 W, and DRX by its pings.
    let bytes = 8.0 * (0.43839 + 0.05197);
    let drx = 0.02 * (0.1 * 1.68 + 0.9 * 1.06) + 10.0 * (0.05 * 1.68 + 0.95 * 1.06);
    assert_near(all_joules(&timeline), 0.26 * 1.21 + 0.18 * 1.2 + drx + bytes, 1e-9);
    let shares: f64 = timeline.shares().iter().map(|share| share.joule).sum();
    assert_near(shares, all_joules(&timeline), 1e-9);
    assert_eq!((timeline.origin().kind, timeline.period_ns()), (EnergyKind::Modelled, 0));
}

#[test]
fn lte_is_idle_between_distant_packets_and_pages() {
    let trace = PacketTrace::new(vec![up(0, 0), up(60_000, 0)]);
    let timeline = simulate_between(&model("lte"), Bound::Value, &trace, 0, 60_000 * MS).expect("a timeline");
    let idle = timeline.shares().into_iter().find(|share| share.state == Idle).expect("idle");
    assert_near(idle.seconds, 60.0 - 10.12 - 0.26, 1e-9);
    assert_near(idle.joule / idle.seconds, 0.043 / 1.28 * 0.594, 1e-9);
}

#[test]
fn plain_wifi_is_active_until_a_tail_ends() {
    let trace = PacketTrace::new(vec![up(0, 100), down(100, 100), up(1_000, 100)]);
    let expected = [(Active, 100), (Tail, 250), (Idle, 650), (Tail, 250)];
    let timeline = timeline("wifi", &trace);
    assert_eq!(states(&timeline), expected);
    assert_near(all_joules(&timeline), 0.6 * 0.403 + 0.65 * 0.02, 1e-9);
}

#[test]
fn three_g_promotes_after_a_packet_of_the_device_and_before_one_to_it() {
    let sent = timeline("3g", &PacketTrace::new(vec![up(0, 100)]));
    let expected = [(Idle, 2_000), (Promotion, 2_000), (Dch, 4_000), (Fach, 10_000)];
    assert_eq!(states(&sent), expected);
    assert_near(all_joules(&sent), 2.0 * 0.51 + 4.0 * 1.02 + 10.0 * 0.40, 1e-9);
    let received = timeline("3g", &PacketTrace::new(vec![down(0, 100)]));
    let expected = [(Promotion, 2_000), (Dch, 4_000), (Fach, 10_000), (Idle, 2_000)];
    assert_eq!(states(&received), expected);
}

#[test]
fn three_g_lets_small_packets_pass_on_the_shared_channel_and_does_not_reset_its_timer_for_them() {
    // DCH from 2 s. At 4 s, 100 B do not restart its timer of 4 s; 400 B would.
    let small = timeline("3g", &PacketTrace::new(vec![up(0, 1000), up(4_000, 100)]));
    let large = timeline("3g", &PacketTrace::new(vec![up(0, 1000), up(4_000, 400)]));
    let dch = |timeline: &RadioTimeline| {
        timeline.shares().iter().find(|share| share.state == Dch).expect("dch").seconds
    };
    assert_near(dch(&small), 4.0, 1e-9);
    assert_near(dch(&large), 6.0, 1e-9);
    // On the shared channel 300 B stay there; 600 B cause a promotion to the dedicated one.
    let stays = timeline("3g", &PacketTrace::new(vec![up(0, 1000), up(8_000, 300)]));
    let leaves = timeline("3g", &PacketTrace::new(vec![up(0, 1000), up(8_000, 600)]));
    assert_near(dch(&stays), 4.0, 1e-9);
    assert_near(dch(&leaves), 8.0, 1e-9);
}

#[test]
fn three_g_of_energybox_takes_the_shared_channel_for_little() {
    let little = timeline("3g-energybox", &PacketTrace::new(vec![up(0, 200)]));
    assert_eq!(states(&little)[0], (Fach, 5_600));
    let more = timeline("3g-energybox", &PacketTrace::new(vec![up(0, 200), up(50, 200), up(60, 200)]));
    assert_eq!(states(&more)[..3], [(Fach, 60), (Dch, 4_100), (Fach, 5_600)]);
    let much = timeline("3g-energybox", &PacketTrace::new(vec![up(0, 1400)]));
    assert_eq!(states(&much)[..3], [(Promotion, 1_700), (Dch, 2_400), (Fach, 5_600)]);
    assert_near(all_joules(&much), 2.4 * 0.6 + 5.6 * 0.45, 1e-9);
}

#[test]
fn coefficients_keep_their_order_and_unknown_ones_are_refused() {
    for id in RADIOS {
        let model = model(id);
        assert!(model.id == id && model.source.contains("github"), "{id}");
        let trace = exchanges(5, &[up(0, 400), down(150, 400)]);
        let joules = [Bound::Low, Bound::Value, Bound::High]
            .map(|bound| all_joules(&simulate(&model, bound, &trace).expect("a timeline")));
        assert!(joules[0] < joules[2] && joules.is_sorted(), "{id}: {joules:?}");
    }
    let own = toml::to_string(&model("wifi")).expect("text").replace("tail_s", "tale_s");
    let unknown = RadioModel::parse(&own).expect("coefficients");
    let error = simulate(&unknown, Bound::Value, &PacketTrace::default())
        .expect_err("no such coefficient")
        .to_string();
    assert!(error.contains("tale_s"), "{error}");
    let own = toml::to_string(&model("wifi")).expect("text").replace("0.403", "-0.403");
    assert!(RadioModel::parse(&own).expect_err("less than nothing").to_string().contains("active_w"));
}

fn packets() -> impl Strategy<Value = Vec<TracePacket>> {
    let packet = (0..40_000_i64, any::<bool>(), 0..1500_u32).prop_map(|(at_ms, is_up, bytes)| {
        let direction = if is_up { Direction::Up } else { Direction::Down };
        TracePacket::new(at_ms * MS, direction, bytes)
    });
    prop::collection::vec(packet, 0..40)
}

proptest! {
    #[test]
    fn states_follow_each_other_and_spans_of_a_course_add_up(packets in packets(), cuts in prop::collection::vec(0.0..1.0_f64, 1..5)) {
        let trace = PacketTrace::new(packets);
        for id in RADIOS {
            let timeline = timeline(id, &trace);
            let Some((from, to)) = timeline.span_ns() else { continue };
            prop_assert!(timeline.stretches().windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns), "{}", id);
            prop_assert!(timeline.stretches().iter().all(|stretch| stretch.watt >= 0.0 && stretch.to_ns > stretch.from_ns));
            let mut instants: Vec<i64> = cuts.iter().map(|cut| from + ((to - from) as f64 * cut) as i64).collect();
            instants.extend([from, to]);
            instants.sort_unstable();
            let parts: Vec<f64> = instants.windows(2).map(|pair| timeline.joules(pair[0], pair[1]).expect("within")).collect();
            prop_assert!(parts.iter().all(|part| *part >= 0.0));
            prop_assert!((parts.iter().sum::<f64>() - all_joules(&timeline)).abs() < 1e-6, "{}", id);
            let shares: f64 = timeline.shares().iter().map(|share| share.joule).sum();
            prop_assert!((shares - all_joules(&timeline)).abs() < 1e-6, "{}", id);
        }
    }

    #[test]
    fn two_traces_with_a_rest_between_them_cost_as_much_as_one(first in packets(), second in packets()) {
        // 40 s of packets, a rest that is longer than every tail, and the rest of the packets.
        let apart = 100_000 * MS;
        let moved = second.iter().map(|packet| TracePacket { at_ns: packet.at_ns + apart, ..*packet });
        let whole = PacketTrace::new(first.into_iter().chain(moved).collect());
        let middle = 80_000 * MS;
        let (before, after) = whole.split_at(middle);
        let (from, to) = (-5_000 * MS, 200_000 * MS);
        for id in RADIOS {
            let between = |trace: &PacketTrace, from, to| {
                all_joules(&simulate_between(&model(id), Bound::Value, trace, from, to).expect("a timeline"))
            };
            let parts = between(&before, from, middle) + between(&after, middle, to);
            prop_assert!((parts - between(&whole, from, to)).abs() < 1e-6, "{}", id);
        }
    }
}
