//! Files and lines of meters.

use super::super::imported::read;
use super::super::meter::{LINE_MAX_BYTES, MeterRecorder, TimeUnit, each_line, parse};
use super::super::{EnergyError, EnergyKind, EnergySide, EnergySource, SECOND_NS};
use super::{all_joules, assert_near};
use proptest::prelude::*;

#[test]
fn volt_times_ampere_is_integrated_by_trapezoids() {
    // 5 V and 0.4 A for a second, then down to nothing in two.
    let file = read("time,volt,ampere\n0,5,0.4\n1,5,0.4\n3,5,0\n", "m.csv").expect("a meter's file");
    assert_near(all_joules(&file.series), 2.0 + 2.0, 1e-12);
    // The first half second, and the last one: a triangle of a fourth of the power.
    assert_near(file.series.joules(0, SECOND_NS / 2).expect("within"), 1.0, 1e-12);
    assert_near(file.series.joules(5 * SECOND_NS / 2, 3 * SECOND_NS).expect("within"), 0.125, 1e-12);
    let value = file.series.value(EnergySide::Client).expect("a value");
    assert_eq!((value.kind, file.is_monotonic), (EnergyKind::Imported, false));
    assert_near(value.watt.expect("resolved"), 4.0 / 3.0, 1e-12);
}

#[test]
fn headers_units_separators_and_remarks_of_meters_are_understood() {
    let bare = read("# an Arduino\n0 ; 5 ; 1\n2 ; 5 ; 1\n", "a").expect("read");
    let milliseconds = read("ampere\ttime_ms\tvolt\n1\t0\t5\n1\t2000\t5\n", "b").expect("read");
    let marked = read("\u{feff}time,volt,ampere\n0,5,1\n2,5,1\n", "of a spreadsheet").expect("read");
    for file in [bare, milliseconds, marked] {
        assert_near(all_joules(&file.series), 10.0, 1e-12);
    }
}

#[test]
fn what_was_recorded_here_is_measured_and_on_the_monotonic_clock() {
    // The second line was received 3 ms late: the least difference of the clocks is the best estimate.
    let text = "time_s,volt,ampere,monotonic_ns\n0,5,1,7000000000\n1,5,1,8003000000\n2,5,1,9000000000\n";
    let file = read(text, "own.csv").expect("read");
    assert_eq!(file.series.origin().kind, EnergyKind::Measured);
    assert_eq!(file.series.span_ns(), Some((7 * SECOND_NS, 9 * SECOND_NS)));
}

#[test]
fn every_bad_line_is_named() {
    let cases = [
        ("time,volt,ampere\n0,5,1\n1,5\n", "line 3: ampere is missing"),
        ("0,5,1\n1,five,1\n", "line 2: volt \"five\" is no number"),
        ("0,5,1\n1,5,NaN\n", "line 2: ampere \"NaN\" is no number"),
        ("0,5,1\n0,5,1\n", "line 2: the time does not rise"),
        ("time,volt\n", "line 1: the header has no column ampere"),
        ("1e12,5,1\n", "line 1: the time 1000000000000 s is beyond"),
        ("", "fewer than two readings"),
        ("time,volt,ampere,monotonic_ns\n0,5,1,x\n", "monotonic_ns \"x\" is no whole number"),
    ];
    for (text, expected) in cases {
        let error = read(text, "bad").expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_recorder_keeps_readings_and_counts_what_is_none() {
    let mut recorded = Vec::new();
    let mut recorder = MeterRecorder::start(&mut recorded, TimeUnit::Milliseconds, 100.0).expect("begun");
    let lines: [&[u8]; 7] = [b"4,0.4\r", b"0,5,1\r", b"10,5,1", b"\xff\xfe", b"", b"40,5,1", b"40,5,1"];
    for line in lines {
        recorder.line(line, 1).expect("kept");
    }
    let recording = recorder.finish().expect("flushed");
    assert_eq!((recording.readings, recording.lines_refused, recording.gaps), (3, 3, 1));
    assert_near(recording.joule, 0.2, 1e-12);
    let text = String::from_utf8(recorded).expect("text");
    assert_eq!(text, "time_s,volt,ampere,monotonic_ns\n0,5,1,1\n0.01,5,1,1\n0.04,5,1,1\n");
}

#[test]
fn noise_without_a_line_end_is_cut() {
    let noise = vec![b'7'; 3 * LINE_MAX_BYTES];
    let mut lengths = Vec::new();
    each_line(&noise[..], |line| {
        lengths.push(line.len());
        Ok::<(), EnergyError>(())
    })
    .expect("read");
    assert_eq!(lengths, [LINE_MAX_BYTES]);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(time,volt,ampere\n)?[0-9a-z,;.\t\n#e+-]{0,200}") {
        let _ = read(&text, "any");
        let _ = parse(&text, TimeUnit::Seconds);
    }

    #[test]
    fn energy_of_a_meter_is_additive(watts in prop::collection::vec(0.0..9.0_f64, 2..50), cut in 0.0..1.0_f64) {
        let lines: Vec<String> = watts.iter().enumerate().map(|(at, ampere)| format!("{at},1,{ampere}")).collect();
        let file = read(&lines.join("\n"), "any").expect("a meter's file");
        let (from, to) = file.series.span_ns().expect("a span");
        let middle = from + ((to - from) as f64 * cut) as i64;
        let part = |from, to| file.series.joules(from, to).expect("within");
        prop_assert!(part(from, middle) >= 0.0 && part(middle, to) >= 0.0);
        prop_assert!((part(from, middle) + part(middle, to) - part(from, to)).abs() < 1e-9);
    }
}
