//! Phases joined with a meter's readings.

use super::super::imported::read;
use super::super::phases::{ExchangePhases, PhaseEnergy, energy};
use super::super::series::EnergySeries;
use super::super::{EnergySide, PhaseName};
use super::{MS, assert_near};
use crate::subject::sample::{ClientSample, ServerSample};

/// A meter of 170 readings a second that shows 2 W, and 5 W between 400 and 600 ms.
fn meter() -> EnergySeries {
    let lines: Vec<String> = (0..=340)
        .map(|reading| {
            let time = f64::from(reading) / 170.0;
            let ampere = if (0.4..0.6).contains(&time) { 1.0 } else { 0.4 };
            format!("{time},5,{ampere}")
        })
        .collect();
    read(&lines.join("\n"), "meter").expect("a meter's file").series
}

/// Two exchanges with a gap of 100 ms between them: 100 ms of serialization, 300 ms of service, then `deserialize_ms`.
fn samples(deserialize_ms: i64) -> Vec<ClientSample> {
    let at = |begin: i64| ClientSample {
        t_start: begin * MS,
        t_ser_end: (begin + 100) * MS,
        t_first_byte: (begin + 300) * MS,
        t_end: (begin + 400) * MS,
        t_deser_end: (begin + 400 + deserialize_ms) * MS,
        ..ClientSample::default()
    };
    vec![at(100), at(1000 - 500 + 400 + deserialize_ms - 300)]
}

fn of(all: &[PhaseEnergy], name: PhaseName) -> &PhaseEnergy {
    all.iter().find(|phase| phase.value.component == name.word()).expect("the phase")
}

#[test]
fn the_joules_of_each_phase_are_those_of_its_time() {
    let samples = samples(100);
    assert_eq!(samples[1].t_start - samples[0].t_deser_end, 100 * MS);
    let exchanges: Vec<ExchangePhases> = samples.iter().map(ExchangePhases::from).collect();
    let all = energy(&meter(), EnergySide::Client, &exchanges).expect("joined");
    let joule = |name| of(&all, name).value.joule.expect("resolved");
    // 2 W everywhere, and 3 W more between 400 and 600 ms; a reading's width is the error.
    let off = 3.0 * 2.0 / 170.0;
    assert_near(joule(PhaseName::Serialize), 0.4, off);
    assert_near(joule(PhaseName::Service), 1.2 + 0.3, off);
    assert_near(joule(PhaseName::Deserialize), 0.4 + 0.3, off);
    assert_near(joule(PhaseName::Others), 0.2, off);
    let parts =
        [PhaseName::Serialize, PhaseName::Service, PhaseName::Deserialize, PhaseName::Others].map(joule);
    assert_near(parts.iter().sum(), joule(PhaseName::Total), 1e-9);
    let service = of(&all, PhaseName::Service);
    assert_eq!((service.times, service.times_unresolved, service.value.side), (2, 0, EnergySide::Client));
    assert_near(service.value.watt.expect("resolved"), joule(PhaseName::Service) / 0.6, 1e-9);
}

#[test]
fn a_phase_shorter_than_the_meters_period_gets_no_number() {
    let period = super::super::EnergySource::period_ns(&meter());
    assert_near(period as f64 / MS as f64, 5.88, 0.01);
    assert!((period - 1_000_000_000 / 170).abs() < 1000);
    let exchanges: Vec<ExchangePhases> = samples(5).iter().map(ExchangePhases::from).collect();
    let all = energy(&meter(), EnergySide::Client, &exchanges).expect("joined");
    let short = of(&all, PhaseName::Deserialize);
    assert!(short.value.unresolved && short.value.joule.is_none() && short.value.watt.is_none());
    assert_eq!((short.times_unresolved, short.reason), (2, "shorter than the meter's period"));
    assert!(!of(&all, PhaseName::Serialize).value.unresolved);
}

#[test]
fn a_servers_phases_have_the_same_names() {
    let sample = ServerSample {
        t_recv: 100 * MS,
        t_deser_end: 200 * MS,
        t_work_end: 350 * MS,
        t_ser_end: 400 * MS,
        ..ServerSample::default()
    };
    let all = energy(&meter(), EnergySide::Server, &[ExchangePhases::from(&sample)]).expect("joined");
    assert_near(of(&all, PhaseName::Deserialize).value.joule.expect("resolved"), 0.2, 1e-3);
    assert_near(of(&all, PhaseName::Service).value.joule.expect("resolved"), 0.3, 1e-3);
    let others = of(&all, PhaseName::Others);
    assert_eq!((others.value.joule, others.value.watt, others.times), (Some(0.0), None, 0));
}

#[test]
fn exchanges_that_overlap_share_no_energy_among_themselves() {
    let mut samples = samples(100);
    samples[1].t_start = samples[0].t_end;
    samples[1].t_ser_end = samples[1].t_start;
    let exchanges: Vec<ExchangePhases> = samples.iter().map(ExchangePhases::from).collect();
    let all = energy(&meter(), EnergySide::Client, &exchanges).expect("joined");
    assert!(of(&all, PhaseName::Service).reason.contains("overlap"));
    assert!(of(&all, PhaseName::Total).value.joule.is_some());
}

#[test]
fn samples_outside_of_the_meters_time_are_refused() {
    let mut late = samples(100);
    late[1].t_deser_end += 10_000 * MS;
    let exchanges: Vec<ExchangePhases> = late.iter().map(ExchangePhases::from).collect();
    let error = energy(&meter(), EnergySide::Client, &exchanges).expect_err("outside").to_string();
    assert!(error.contains("--offset-seconds"), "{error}");
    let shifted = meter().shifted(5 * super::super::SECOND_NS);
    let exchanges: Vec<ExchangePhases> = samples(100).iter().map(ExchangePhases::from).collect();
    assert!(energy(&shifted, EnergySide::Client, &exchanges).is_err());
    assert!(energy(&meter(), EnergySide::Client, &[]).is_err());
}

#[test]
fn every_phase_says_of_which_kind_its_figure_is_or_that_there_is_none() {
    let exchanges: Vec<ExchangePhases> = samples(5).iter().map(ExchangePhases::from).collect();
    let all = energy(&meter(), EnergySide::Client, &exchanges).expect("joined");
    let labels: Vec<String> =
        all.iter().map(|phase| format!("{} {}", phase.value.kind.word(), phase.value.name())).collect();
    let names = ["serialize", "deserialize", "service", "others", "total"];
    assert_eq!(labels, names.map(|name| format!("imported client {name}")));
    let values = || all.iter().map(|phase| &phase.value);
    assert!(values().all(|one| one.unresolved == one.joule.is_none() && !one.coefficients_ref.is_empty()));
    assert_eq!(values().filter(|one| one.unresolved).count(), 1);
    let line = serde_json::to_value(&all[1].value).expect("plain");
    assert_eq!(
        (&line["side"], &line["unresolved"], &line["joule"]),
        (&"client".into(), &true.into(), &serde_json::Value::Null)
    );
}
