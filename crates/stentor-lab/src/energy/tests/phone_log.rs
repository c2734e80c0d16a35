//! Logs of phones.

use super::super::phone_log::read;
use super::assert_near;
use proptest::prelude::*;

#[test]
fn a_whole_discharge_is_its_own_hours() {
    let log =
        read("seconds,percent,voltage,temperature\n0,100,4190,265\n180,99,4.15,26.4\n36000,0,3306,301\n")
            .expect("a log");
    assert_eq!((log.hours, log.hours_full, log.is_extrapolated), (10.0, Some(10.0), false));
    assert_eq!(log.volt, Some((3.306, 4.19)));
    assert_eq!(log.celsius, Some((26.4, 30.1)));
    assert_eq!(log.lines.len(), 3);
}

#[test]
fn a_part_of_a_discharge_is_marked_as_such() {
    let log = read("level;time_ms\n80;0\n60;7200000\n").expect("a log");
    assert_eq!((log.hours, log.hours_full, log.is_extrapolated), (2.0, Some(10.0), true));
    let still = read("time,percent\n0,80\n60,80\n").expect("a log");
    assert_eq!(still.hours_full, None);
}

#[test]
fn the_history_of_batterystats_is_read() {
    let text = "\
Battery History (2% used, 9KB used of 4096KB, 52 strings using 3KB):
                    0 (15) RESET:TIME: 2026-11-22-01-02-03
                    0 (2) 100 status=discharging health=good plug=none temp=265 volt=4190 +running
              +1m02s003ms (2) 099 volt=4170
            +1h00m00s000ms (2) 090 temp=280 -running
          +1d10h00m00s000ms (2) 000 volt=3306
Per-PID Stats:
";
    let log = read(text).expect("a history");
    assert_eq!((log.lines.len(), log.hours, log.is_extrapolated), (4, 34.0, false));
    assert_near(log.lines[1].seconds, 62.003, 1e-9);
    assert_eq!((log.volt, log.celsius), (Some((3.306, 4.19)), Some((26.5, 28.0))));
}

#[test]
fn every_bad_line_is_named() {
    let cases = [
        ("percent\n1\n", "line 1: a header with time"),
        ("time,percent\n0,101\n", "line 2: 101 % is no charge"),
        ("time,percent\n0,50\n60,70\n", "line 3: the charge rises from 50 to 70 %"),
        ("time,percent\n60,50\n0,40\n", "line 3: the time goes back"),
        ("time,percent\n0,many\n", "line 2: percent \"many\" is no number"),
        ("time,percent\n", "there is no line with time and percent"),
    ];
    for (text, expected) in cases {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(Battery History\n|time,percent\n)?[0-9a-z+()=,. \n]{0,200}") {
        let _ = read(&text);
    }
}
