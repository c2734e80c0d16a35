//! The bodies that the documentation shows for writers of subjects.

use super::*;
use stentor_wire::{Point, WireError};

const PAGE: &str = include_str!("../../../../../docs/lab/your-own-service.md");
const SEED: u64 = 7;
/// The declaration at the head of each XML body, which the page states once.
const DECLARATION: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
/// The operations, with the factors of their examples.
const EXAMPLES: [(Op, &[(&str, &str)]); 6] = [
    (Op::Echo, &[("payload", "8")]),
    (Op::Sort, &[("items", "3")]),
    (Op::Array, &[("type", "Int"), ("items", "2")]),
    (Op::Array, &[("type", "String"), ("items", "2")]),
    (Op::Array, &[("type", "Object"), ("items", "2")]),
    (Op::Points, &[("poi", "1")]),
];

/// Shortens the fields of points, which would fill the page.
fn shortened(content: Content) -> Content {
    let short = |point: &Point| Point::of(point.fields().map(|field| field.chars().take(3).collect()));
    match content {
        Content::Points(points) => Content::Points(points.iter().map(short).collect()),
        other => other,
    }
}

fn body(written: Result<Vec<u8>, WireError>) -> String {
    let text = String::from_utf8(written.expect("written")).expect("UTF-8");
    text.trim_start_matches(DECLARATION).to_owned()
}

fn example(op: Op, levels: &[(&str, &str)]) -> [(&'static str, Content); 2] {
    let exchange = op.exchange(&factors(levels), SEED).expect("sense");
    [("request", exchange.request), ("answer", shortened(exchange.answer))]
}

#[test]
fn the_page_for_own_services_shows_the_bodies_of_every_operation_as_they_are_sent() {
    let mut rows = Vec::new();
    for (op, levels) in EXAMPLES {
        let set: Vec<String> = levels.iter().map(|(name, level)| format!("`{name}={level}`")).collect();
        for (half, content) in example(op, levels) {
            let [json, xml] =
                ["rest+json", "rest+xml"].map(|name| body(named(name).write_answer(op, &content)));
            rows.push(format!("| `{}` | {} | {half} | `{json}` | `{xml}` |", op.word(), set.join(" ")));
        }
    }
    for dialect in ["xmlrpc", "soap", "soap12"].map(named) {
        let (op, levels) = EXAMPLES[0];
        let [(_, request), (_, answer)] = example(op, levels);
        let (request, answer) = (dialect.write_request(op, &request), dialect.write_answer(op, &answer));
        let row = |half, written| format!("| `{}` | {half} | `{}` |", dialect.name(), body(written));
        rows.extend([row("request", request), row("answer", answer)]);
    }
    let missing: Vec<String> = rows.into_iter().filter(|row| !PAGE.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "the page lacks these rows:\n{}", missing.join("\n"));
}

#[test]
fn the_page_for_own_services_states_the_letters_of_each_field_of_a_point() {
    let exchange = Op::Points.exchange(&factors(&[("poi", "1")]), SEED).expect("sense");
    let Content::Points(points) = exchange.answer else { panic!("points are wanted") };
    let fields = stentor_wire::content::POINT_FIELD_NAMES.iter().zip(points[0].fields());
    let sentence: Vec<String> = fields.map(|(name, text)| format!("`{name}` {}", text.len())).collect();
    let sentence = sentence.join(", ");
    assert!(PAGE.replace('\n', " ").contains(&sentence), "the page lacks: {sentence}");
}
