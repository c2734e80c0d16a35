//! The table of statements of both standards, in docs/gateway/mqtt.md: it is complete, and its claims are tested.

use std::collections::BTreeMap;
use std::path::Path;

/// Sections of MQTT 5, each with the number of its last statement.
const NEW: &str = "1.5.4 3, 1.5.5 1, 1.5.7 1, 2.1.3 1, 2.2.1 6, 2.2.2 1, 3.1.0 2, 3.1.2 30, 3.1.3 12, 3.1.4 6, 3.2.0 2, 3.2.2 22, 3.3.1 13, \
     3.3.2 20, 3.3.4 10, 3.4.2 3, 3.5.2 3, 3.6.1 1, 3.6.2 3, 3.7.2 3, 3.8.1 1, 3.8.3 5, 3.8.4 8, 3.9.2 2, 3.9.3 2, 3.10.1 1, \
     3.10.3 2, 3.10.4 6, 3.11.2 2, 3.11.3 2, 3.12.4 1, 3.14.0 1, 3.14.1 1, 3.14.2 4, 3.14.4 3, 3.15.1 1, 3.15.2 3, 4.1.0 2, \
     4.2.0 1, 4.3.1 1, 4.3.2 5, 4.3.3 13, 4.4.0 2, 4.5.0 2, 4.6.0 6, 4.7.0 1, 4.7.1 2, 4.7.2 1, 4.7.3 4, 4.8.2 6, 4.9.0 3, \
     4.12.0 7, 4.12.1 2, 4.13.1 1, 4.13.2 1, 6.0.0 4";
/// The only number of these that the standard skips.
const NEW_MISSING: &str = "2.2.1-1";
/// Sections of MQTT 3.1.1.
const OLD: &str = "1.5.3 3, 2.2.2 2, 2.3.1 7, 3.1.0 2, 3.1.2 24, 3.1.3 11, 3.1.4 5, 3.2.0 1, 3.2.2 6, 3.3.1 12, 3.3.2 3, 3.3.4 1, 3.3.5 2, \
     3.6.1 1, 3.8.1 1, 3.8.3 4, 3.8.4 6, 3.9.3 2, 3.10.1 1, 3.10.3 2, 3.10.4 6, 3.12.4 1, 3.14.1 1, 3.14.4 3, 4.1.0 2, 4.3.1 \
     1, 4.3.2 2, 4.3.3 2, 4.4.0 1, 4.5.0 2, 4.6.0 6, 4.7.1 3, 4.7.2 1, 4.7.3 4, 4.8.0 2, 6.0.0 4, 7.0.0 2, 7.1.1 1, 7.1.2 1";
const PAGE: &str = include_str!("../../../../../docs/gateway/mqtt.md");

/// A row of the table.
struct Row {
    new: Vec<&'static str>,
    old: Vec<&'static str>,
    answer: &'static str,
    why: &'static str,
}

fn rows() -> Vec<Row> {
    let (_, table) = PAGE.split_once("| MQTT 5 | 3.1.1 |").expect("the table");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &'static str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut cell = || cells.next().expect("four cells");
        let list = |cell: &'static str| cell.split(", ").filter(|one| !one.is_empty()).collect();
        Row { new: list(cell()), old: list(cell()), answer: cell(), why: cell() }
    };
    lines.map(row).collect()
}

fn all(sections: &str, missing: &str) -> Vec<String> {
    let numbers = sections.split(", ").flat_map(|section| {
        let (name, last) = section.split_once(' ').expect("a section");
        (1..=last.parse::<u32>().expect("a number")).map(move |number| format!("{name}-{number}"))
    });
    numbers.filter(|number| number != missing).collect()
}

/// Collects the test sources of these folders.
fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, into),
            false => into.push_str(&std::fs::read_to_string(path).expect("text")),
        }
    }
}

#[test]
fn every_statement_of_the_standards_has_its_place_in_the_table() {
    for (sections, missing, new) in [(NEW, NEW_MISSING, true), (OLD, "", false)] {
        let mut counts: BTreeMap<String, usize> =
            all(sections, missing).into_iter().map(|number| (number, 0)).collect();
        for row in rows() {
            for number in if new { row.new } else { row.old } {
                *counts.get_mut(number).unwrap_or_else(|| panic!("there is no {number}")) += 1;
            }
        }
        let wrong: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 1).collect();
        assert!(wrong.is_empty(), "not once: {wrong:?}");
    }
}

#[test]
fn every_yes_of_the_table_names_tests_and_everything_else_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = String::new();
    for folder in ["src/mqtt", "tests/it/mqtt", "../stentor-server/tests/it/gateway"] {
        sources(&crates.join(folder), &mut tests);
    }
    for Row { new, old, answer, why } in rows() {
        match answer {
            "yes" => {
                for name in why.split(", ") {
                    let name = name.trim_matches('`');
                    assert!(tests.contains(&format!("fn {name}()")), "{new:?}, {old:?}: no test {name}");
                }
            }
            "no" | "n/a" => assert!(why.len() > 5 && !why.starts_with('`'), "{new:?}, {old:?}: why?"),
            other => panic!("{other} is no answer"),
        }
    }
}
