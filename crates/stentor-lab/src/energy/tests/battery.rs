//! Battery discharge.

use super::super::battery::{BatteryCell, Discharge, LOG_EVERY_S, MAH_OF_NEXUS_7, RepeatedTraffic};
use super::super::coefficients::{Bound, RadioModel};
use super::super::exchanges::TraceExchanges;
use super::super::trace::PacketTrace;
use super::super::{EnergyError, EnergySide, processor::Processor};
use super::{MS, assert_near, down, exchanges, up};

fn exchange(round_trip_ms: i64) -> TraceExchanges {
    every(500, &PacketTrace::new(vec![up(0, 400), down(round_trip_ms, 400)])).expect("an exchange")
}

/// The exchanges of a trace that is repeated each 500 ms.
fn every(captured_every_ms: i64, trace: &PacketTrace) -> Result<TraceExchanges, EnergyError> {
    TraceExchanges::recognised(trace, captured_every_ms * MS, 500 * MS)
}

fn discharge<'a>(model: &'a RadioModel, exchanges: &'a TraceExchanges, mah: f64) -> Discharge<'a> {
    Discharge {
        model,
        exchanges,
        period_ns: 500 * MS,
        jitter_ns: 20 * MS,
        cell: BatteryCell::full(mah).expect("a cell"),
        base_w: 0.0,
    }
}

fn model(id: &str) -> RadioModel {
    RadioModel::built_in(id).expect("coefficients")
}

#[test]
fn a_cell_gives_its_charge_and_its_voltage_falls() {
    let mut cell = BatteryCell::full(MAH_OF_NEXUS_7).expect("a cell");
    // About 16 watt hours, as expected of 4.325 Ah at 3.7 V nominal.
    assert_near(cell.joules_of_full() / 3600.0, 16.6, 0.3);
    let (mut seconds, mut volt, mut joules) = (0.0, f64::INFINITY, 0.0);
    while !cell.is_empty() {
        cell.take(1.0, 10.0);
        assert!(cell.volt() <= volt);
        volt = cell.volt();
        seconds += 10.0;
        joules += 10.0;
    }
    assert!(volt > 3.2 && volt < 3.4, "{volt}");
    // One watt through a tenth of an ohm: less than a percent is lost inside.
    assert!(
        joules < cell.joules_of_full() && joules > 0.99 * cell.joules_of_full(),
        "{joules} in {seconds} s"
    );
    assert!(BatteryCell::full(-1.0).is_err() && BatteryCell::full(f64::NAN).is_err());
}

#[test]
fn a_radio_that_its_packets_never_let_rest_empties_the_cell_all_the_same() {
    for id in ["3g", "3g-energybox", "lte", "wifi", "wifi-s2"] {
        let (model, trace) = (model(id), exchange(100));
        let discharge = discharge(&model, &trace, 20.0);
        let run = discharge.run(1, Bound::Value, |_| {}).expect("emptied");
        let full = discharge.cell.joules_of_full();
        assert_near(run.radio_joule, full, 0.02 * full);
        assert!(run.hours > 0.05 && run.hours < 2.0, "{id}: {} hours", run.hours);
    }
}

#[test]
fn hours_follow_from_the_mean_power_and_the_log_has_a_line_each_three_minutes() {
    let (model, trace) = (model("wifi-s2"), exchange(100));
    let discharge = discharge(&model, &trace, 100.0);
    let run = discharge.run(1, Bound::Value, |_| {}).expect("emptied");
    let full = discharge.cell.joules_of_full();
    // Awake for 64 % of the time: 0.1708 W. Jitter does not change the share.
    assert_near(run.hours, full / 0.1708 / 3600.0, 0.02 * run.hours);
    assert_near(run.radio_joule, full, 0.02 * full);
    assert_eq!(run.log.len(), (run.hours * 3600.0 / LOG_EVERY_S).ceil() as usize + 1);
    assert!(run.log[0].percent == 100.0 && run.log.last().is_some_and(|line| line.percent == 0.0));
    assert!(
        run.log
            .windows(2)
            .all(|pair| pair[1].percent <= pair[0].percent && pair[1].seconds >= pair[0].seconds)
    );
    assert_near(run.log[1].seconds, 180.0, 1e-9);
}

#[test]
fn four_runs_differ_by_their_seeds_and_the_band_encloses_them() {
    let (model, trace) = (model("wifi-s2"), exchange(177));
    let answer = discharge(&model, &trace, 20.0).answer(7, 4, |_| {}).expect("an answer");
    assert_eq!(answer.runs.len(), 6);
    let (short, long) = answer.hours_of_runs;
    assert!(short < long && long / short < 1.01, "{short} {long}");
    assert!(answer.hours_band.0 < short && answer.hours_band.1 > long, "{:?}", answer.hours_band);
    let again = discharge(&model, &trace, 20.0).answer(7, 4, |_| {}).expect("an answer");
    assert_eq!(again.runs, answer.runs);
}

#[test]
fn the_rest_of_the_phone_shortens_the_hours() {
    let (model, trace) = (model("wifi-s2"), exchange(100));
    let mut discharge = discharge(&model, &trace, 20.0);
    let alone = discharge.run(1, Bound::Value, |_| {}).expect("emptied").hours;
    discharge.base_w = 0.1708;
    let run = discharge.run(1, Bound::Value, |_| {}).expect("emptied");
    assert_near(run.hours, alone / 2.0, 0.02 * alone);
    assert_near(run.base_joule, run.radio_joule, 0.02 * run.base_joule);
}

#[test]
fn traffic_repeats_a_trace_in_order_and_keeps_its_rate() {
    // Captured with 50 ms between exchanges.
    let trace = PacketTrace::new(vec![up(0, 1), down(40, 2), up(50, 3), down(90, 4), up(100, 5)]);
    let cut = every(50, &trace).expect("exchanges");
    let mut traffic = RepeatedTraffic::new(&cut, 500 * MS, 30 * MS, 3).expect("traffic");
    let mut packets = Vec::new();
    (0..7).for_each(|_| traffic.next_period(&mut packets));
    assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
    let bytes: Vec<u32> = packets.iter().map(|packet| packet.bytes).collect();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]);
    let late: Vec<i64> = packets
        .iter()
        .filter(|packet| packet.bytes % 2 == 1)
        .map(|packet| packet.at_ns % (500 * MS))
        .collect();
    assert!(
        late.iter().all(|late| *late <= 30 * MS) && late.iter().any(|other| *other != late[0]),
        "{late:?}"
    );
    assert!(every(50, &PacketTrace::default()).is_err() && every(0, &exchanges(2, &[up(0, 1)])).is_err());
    assert!(RepeatedTraffic::new(&cut, MS, MS, 1).is_err());
}

#[test]
fn what_uses_nothing_is_given_up() {
    let text = toml::to_string(&model("wifi")).expect("text").replace("0.403", "0").replace("0.02", "0");
    let nothing = RadioModel::parse(&text).expect("coefficients");
    let trace = exchange(100);
    let mut seldom = discharge(&nothing, &trace, 1.0);
    seldom.period_ns = 60_000 * MS;
    let error = seldom.run(1, Bound::Value, |_| {}).expect_err("full for ever");
    assert!(error.to_string().contains("--base-watt"), "{error}");
}

#[test]
fn cpu_seconds_cost_what_their_processor_does() {
    let processors = Processor::all();
    let board = processors.iter().find(|processor| processor.id == "raspberry-pi-b").expect("known");
    let value = board.energy(EnergySide::Server, 10.0);
    assert_near(value.joule.expect("modelled"), 19.0, 1e-9);
    assert!(value.coefficients_ref.contains("nunes-2014"));
    let stated = Processor::stated(0.5).expect("a power").energy(EnergySide::Client, 4.0);
    assert_eq!((stated.joule, stated.watt), (Some(2.0), Some(0.5)));
    assert!(Processor::stated(f64::NAN).is_err());
}
