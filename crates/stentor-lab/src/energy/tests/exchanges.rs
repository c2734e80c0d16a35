//! The exchanges of a trace: lateness of the first, replies later than the interval, and acknowledgements.

use super::super::battery::{BatteryCell, Discharge, MAH_OF_NEXUS_7};
use super::super::coefficients::{Bound, RadioModel};
use super::super::exchanges::{ExchangeTimes, ReplyTimes, TraceExchanges};
use super::super::trace::{Direction, PacketTrace, TracePacket};
use super::{MS, assert_near, down, up};
use proptest::prelude::*;

/// Exchanges, and the interval between their starts: the standard profile of albertengo-2020.
const COUNT: i64 = 30;
const EVERY: i64 = 50 * MS;
/// The interval at which the paper's client repeats them.
const REPEATED: i64 = 500 * MS;
/// The time from a client's start until its first packet, and from the last packet of a reply until the client has noted it.
const SENT: i64 = MS / 10;
const NOTED: i64 = MS / 5;

/// The delay of an acknowledgement by Linux, which puts it behind the next start.
const CONFIRMED: i64 = 40 * MS;

/// A capture, with the times that its client noted. Exchange `late.0` begins `late.1` nanoseconds late.
fn captured(round_trip: i64, late: (i64, i64)) -> (PacketTrace, Vec<ExchangeTimes>) {
    let start = |number: i64| 7 * MS + number * EVERY + if number == late.0 { late.1 } else { 0 };
    let packets = (0..COUNT).flat_map(|number| {
        let (request, reply) = (start(number) + SENT, start(number) + round_trip);
        let bare = |at_ns, confirmed, packet: TracePacket| TracePacket {
            at_ns,
            confirms_ns: Some(confirmed),
            ..packet
        };
        [
            TracePacket { at_ns: request, ..up(0, 240) },
            bare(request + 4 * MS, request, down(0, 52)),
            TracePacket { at_ns: reply, ..down(0, 260) },
            bare(reply + CONFIRMED, reply, up(0, 52)),
        ]
    });
    let times = (0..COUNT).map(|number| {
        let noted = start(number) + round_trip + NOTED;
        let reply = Some(ReplyTimes { first_ns: noted, last_ns: noted });
        ExchangeTimes { start_ns: start(number), reply }
    });
    (PacketTrace::new(packets.collect()), times.collect())
}

fn timed(round_trip: i64, late: (i64, i64)) -> TraceExchanges {
    let (trace, times) = captured(round_trip, late);
    TraceExchanges::timed(&trace, &times).expect("exchanges")
}

fn recognised(round_trip: i64, late: (i64, i64)) -> TraceExchanges {
    TraceExchanges::recognised(&captured(round_trip, late).0, EVERY, REPEATED).expect("exchanges")
}

/// Returns the hours of the paper's phone, by a cell of a hundredth of its charge.
fn hours(exchanges: &TraceExchanges) -> f64 {
    const PART: f64 = 100.0;
    let model = RadioModel::built_in("wifi-s2").expect("coefficients");
    let cell = BatteryCell::full(MAH_OF_NEXUS_7 / PART).expect("a cell");
    let discharge =
        Discharge { model: &model, exchanges, period_ns: REPEATED, jitter_ns: 20 * MS, cell, base_w: 0.0 };
    discharge.run(1, Bound::Value, |_| {}).expect("emptied").hours * PART
}

fn offsets(exchange: &[TracePacket]) -> Vec<i64> {
    exchange.iter().map(|packet| packet.at_ns).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn hours_do_not_depend_on_how_late_the_first_exchange_began(
        late in prop_oneof![0..=MS, MS..12 * MS],
        round_trip in 5 * MS..9 * MS,
    ) {
        let on_time = hours(&timed(round_trip, (0, 0)));
        for cut in [timed(round_trip, (0, late)), recognised(round_trip, (0, late))] {
            prop_assert_eq!(cut.all().len() as i64, COUNT);
            prop_assert!(cut.all().iter().all(|exchange| exchange.len() == 4));
            prop_assert!((hours(&cut) - on_time).abs() < 1e-3 * on_time, "{} and {on_time}", hours(&cut));
        }
    }

    #[test]
    fn an_exchange_that_begins_late_is_repeated_with_all_its_packets(
        number in 0..COUNT,
        late in 0..=MS,
        round_trip in 5 * MS..9 * MS,
    ) {
        prop_assert_eq!(timed(round_trip, (number, late)), timed(round_trip, (0, 0)));
        prop_assert_eq!(recognised(round_trip, (number, late)), recognised(round_trip, (0, 0)));
    }

    #[test]
    fn a_reply_later_than_the_interval_keeps_its_distance(round_trip in 51..2_000_i64) {
        // Two packets of one instant would belong to one exchange; a reply does not come with the next request.
        prop_assume!(round_trip % 50 != 0);
        let round_trip = round_trip * MS;
        let cut = timed(round_trip, (0, MS));
        for exchange in cut.all() {
            let expected = [SENT, SENT + 4 * MS, round_trip, round_trip + CONFIRMED];
            prop_assert_eq!(offsets(exchange), expected);
        }
    }
}

#[test]
fn with_the_delay_of_the_paper_the_hours_have_the_order_of_the_paper() {
    // Without the acknowledgement of the reply, which keeps the radio awake for a while of its own.
    let of = |round_trip_ms: i64| {
        let (trace, times) = captured(round_trip_ms * MS, (0, MS));
        let is_of_reply = |packet: &&TracePacket| packet.bytes != 52 || packet.direction == Direction::Down;
        let trace = PacketTrace::new(trace.packets().iter().filter(is_of_reply).copied().collect());
        hours(&TraceExchanges::timed(&trace, &times).expect("exchanges"))
    };
    for (round_trip_ms, expected) in [(6, 129.0), (442, 108.0), (607, 96.0)] {
        assert_near(of(round_trip_ms), expected, 1.5);
    }
}

#[test]
fn a_trace_alone_does_not_tell_whose_reply_came_later_than_the_interval() {
    let late = captured(442 * MS, (0, 0)).0;
    let error = TraceExchanges::recognised(&late, EVERY, REPEATED).expect_err("not told");
    assert!(error.to_string().contains("takes longer than the interval"), "{error}");
    // At the pace of the capture every packet keeps its place.
    let same = TraceExchanges::recognised(&late, EVERY, EVERY).expect("exchanges");
    assert_eq!(same.all().len() as i64, COUNT);
}

#[test]
fn periods_without_an_exchange_stay_empty_and_what_came_before_the_first_start_is_dropped() {
    let trace = PacketTrace::new(vec![up(0, 1), down(5, 2), up(151, 3)]);
    let cut = TraceExchanges::recognised(&trace, EVERY, REPEATED).expect("exchanges");
    let counts: Vec<usize> = cut.all().iter().map(Vec::len).collect();
    assert_eq!(counts, [2, 0, 0, 1]);
    let times = [ExchangeTimes { start_ns: 4 * MS, reply: None }];
    let cut = TraceExchanges::timed(&trace, &times).expect("exchanges");
    assert_eq!(offsets(&cut.all()[0]), [MS, 147 * MS]);
    assert!(TraceExchanges::timed(&trace, &[]).is_err());
    let after = [ExchangeTimes { start_ns: 200 * MS, reply: None }];
    assert!(TraceExchanges::timed(&trace, &after).is_err());
}
