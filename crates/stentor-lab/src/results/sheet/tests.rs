use std::collections::BTreeMap;

use super::super::tests::record;
use super::*;
use crate::record::{ForkRecord, phase};
use crate::statistics::invented::Invented;

/// Two forks of each cell, a tenth above and below 100 ms, four times that with more items, twice that of SOAP.
fn study() -> Results {
    let mut records = Vec::new();
    for (items, of_items) in [("200", 1.0), ("3200", 4.0)] {
        for (subject, of_subject) in [("REST", 1.0), ("SOAP", 2.0)] {
            for (fork, of_fork) in [(1, 1.1), (2, 1.0 / 1.1)] {
                records.push(exact(subject, items, fork, 100.0 * of_items * of_subject * of_fork));
            }
        }
    }
    Results::of(records).expect("one study")
}

fn exact(subject: &str, items: &str, fork: u32, ms: f64) -> ForkRecord {
    let mut one = record(subject, "Int", items, fork, ms, &mut Invented::new(1));
    one.study = "my, own".into();
    one.latency.get_mut(phase::RTT).expect("there").p50 = (ms * 1e6) as u64;
    one
}

/// Returns rows of a metric: the words of some columns, and value, low and high.
fn rows(results: &Results, metric: &str) -> Vec<([String; 5], [f64; 3])> {
    let text = sheet(results);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize().collect::<Result<Vec<BTreeMap<String, String>>, _>>();
    let rows = rows.expect("one width").into_iter().filter(|row| row["metric"] == metric);
    let parsed = rows.map(|row| {
        assert_eq!((row["study"].as_str(), row["fork"].as_str(), row["model"].as_str()), ("my, own", "", ""));
        let words = ["subject", "levels", "unit", "forks", "against"].map(|name| row[name].clone());
        (words, ["value", "low", "high"].map(|name| row[name].parse().unwrap_or(f64::NAN)))
    });
    parsed.collect()
}

fn are_about(found: [f64; 3], wanted: [f64; 3]) -> bool {
    found.iter().zip(wanted).all(|(found, wanted)| {
        (found.is_nan() && wanted.is_nan()) || (found - wanted).abs() < wanted.abs() * 1e-4
    })
}

#[test]
fn ratios_say_against_whom_and_how_sure_they_are() {
    let found = rows(&study(), "ratio");
    let places = ["200", "3200"]
        .map(|items| ["SOAP", &format!("items={items};type=Int"), "", "2", "REST"].map(str::to_owned));
    assert_eq!(found.iter().map(|(words, _)| words.clone()).collect::<Vec<_>>(), places);
    // Two runs each: t of 2 degrees is 4.3027, the standard error of the logarithms ln 1.1 times the root of 2.
    assert!(found.iter().all(|(_, figures)| are_about(*figures, [2.0, 1.119_85, 3.571_90])), "{found:?}");
}

#[test]
fn effects_say_from_which_level_to_which_and_how_sure_they_are() {
    let found = rows(&study(), "effect");
    let [items, subject, both] = &found[..] else { panic!("three effects, not {found:?}") };
    let words = |effect: &str, against: &str| ["", effect, "", "8", against].map(str::to_owned);
    assert_eq!(items.0, words("items", "items=200..3200"));
    assert_eq!(subject.0, words("subject", "subject=REST..SOAP"));
    assert_eq!(both.0, words("items x subject", "items=200..3200;subject=REST..SOAP"));
    // Eight runs, four degrees: t is 2.7764, the standard error of an effect ln 1.1 over 2.
    assert!(are_about(items.1, [4.0, 3.069_98, 5.211_76]), "{items:?}");
    assert!(are_about(subject.1, [2.0, 1.534_99, 2.605_88]), "{subject:?}");
    assert!(are_about(both.1, [1.0, 0.767_49, 1.302_94]), "{both:?}");
}

#[test]
fn shares_of_the_variation_add_up_with_what_differs_between_runs_of_the_same_cell() {
    let found = rows(&study(), "effect_share");
    let shares: Vec<(&str, f64)> =
        found.iter().map(|(words, figures)| (words[1].as_str(), figures[0])).collect();
    let wanted =
        [("items", 78.808), ("subject", 19.702), ("items x subject", 0.0), ("runs of the same cell", 1.490)];
    assert_eq!(shares.iter().map(|one| one.0).collect::<Vec<_>>(), wanted.map(|one| one.0));
    assert!(shares.iter().zip(wanted).all(|(found, wanted)| (found.1 - wanted.1).abs() < 0.01), "{shares:?}");
    assert!(found.iter().all(|(words, _)| words[2] == "%"), "{found:?}");
}

#[test]
fn ratios_of_printed_figures_stand_beside_ours_as_published() {
    let mut records = Vec::new();
    for (subject, ms) in [("REST", 100.0), ("SOAP", 200.0)] {
        records.push(ForkRecord { study: "cai-2009".into(), ..exact(subject, "200", 1, ms) });
    }
    let text = sheet(&Results::of(records).expect("one study"));
    let ratios: Vec<&str> = text.lines().filter(|line| line.contains(",ratio,")).collect();
    let [ours, published] = &ratios[..] else { panic!("two lines, not {ratios:?}") };
    assert!(
        ours.contains(",ratio,,,1.99999") && ours.ends_with(",,,1,measured,,,REST"),
        "a single fork has no interval: {ours}"
    );
    // Table 3: 0.197 over 0.16 seconds.
    assert!(
        published.ends_with(",,,,published,,,REST") && published.contains(",ratio,,,1.23"),
        "{published}"
    );
}
