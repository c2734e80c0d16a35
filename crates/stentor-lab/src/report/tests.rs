use super::*;
use serde_json::json;

fn row(id: &str, rate: f64) -> Row {
    let mut row = Row {
        id: id.to_owned(),
        repetition: 1,
        consumers: Some(20),
        mix: "gcm".to_owned(),
        pooled: true,
        pushes: 1000,
        pushes_per_second: rate,
        latency_mean_ms: 40.0,
        inflight_mean: Some(19.5),
        ledger_balanced: true,
        known_devices_reached: [1, 1],
        ..Row::default()
    };
    row.derive(Some(20), Some(250.0));
    row
}

fn measured(rows: &[Row]) -> Measured {
    Measured::of(rows, Some(20)).expect("there are runs")
}

fn report(rows: Vec<Row>) -> Report {
    let mut scenarios: Vec<Measured> = Vec::new();
    for row in &rows {
        if scenarios.iter().all(|one| one.row.id != row.id) {
            let of_cell: Vec<Row> = rows.iter().filter(|other| other.id == row.id).cloned().collect();
            scenarios.push(measured(&of_cell));
        }
    }
    Report {
        study: Study::isikligil_2017().expect("readable"),
        published: Published::isikligil_2017().expect("readable"),
        scenarios,
        beyond: Vec::new(),
        runs: rows,
        provenance: json!({"command": "stentor lab run <study>", "cores": 2}),
    }
}

#[test]
fn what_follows_from_a_rate_follows_from_it() {
    let row = row("T9", 400.0);
    assert_eq!((row.ratio, row.bound_pushes_per_second), (Some(1.6), Some(500.0)));
    assert_eq!((row.share_of_bound, row.held_ms, row.published_held_ms), (Some(0.8), Some(50.0), Some(80.0)));
}

#[test]
fn a_run_in_which_anything_is_amiss_is_not_sound() {
    assert!(row("T9", 1.0).is_sound());
    for spoil in [
        (|row: &mut Row| row.lost = 1) as fn(&mut Row),
        |row| row.stuck = 1,
        |row| row.duplicates = 1,
        |row| row.ledger_balanced = false,
        |row| row.known_devices_reached = [0, 1],
    ] {
        let mut row = row("T9", 1.0);
        spoil(&mut row);
        assert!(!row.is_sound(), "{row:?}");
    }
}

#[test]
fn a_run_that_does_not_count_is_in_no_figure_and_stays_visible() {
    let late =
        Row { invalid: "the machine was late".to_owned(), pushes_per_second: 9.0, lost: 1, ..row("T9", 9.0) };
    let rows = [row("T9", 400.0), late, row("T9", 410.0)];
    let one = measured(&rows);
    assert_eq!((one.runs, one.runs_invalid, one.row.pushes_per_second), (2, 1, 405.0));
    assert_eq!((one.rates.values(), one.row.lost), (&[400.0, 410.0][..], 1), "what was lost stays lost");
    let rate = one.rate.expect("two runs");
    assert!(
        rate.low.is_some_and(|low| low < 400.0) && rate.high.is_some_and(|high| high > 410.0),
        "{rate:?}"
    );
    let page = page(&report(rows.to_vec()));
    assert!(page.contains("the machine was late") && page.contains("2 of 3"));
}

#[test]
fn a_cell_of_which_no_run_counts_has_no_rate_and_no_verdict() {
    let late = Row { invalid: "late".to_owned(), ..row("T1", 100.0) };
    let report = report(vec![late, Row { id: "T9".to_owned(), ..row("T9", 500.0) }]);
    assert_eq!((report.scenarios[0].rate, report.scenarios[0].runs), (None, 0));
    assert!(report.rates("T1").is_none() && report.rates("T9").is_some());
}

#[test]
fn a_claim_about_tests_that_were_not_run_is_not_testable() {
    let judged = report(vec![row("T9", 500.0)]).judged();
    assert!(judged.iter().all(|one| one.ours == Verdict::NotTestable), "{judged:?}");
}

#[test]
fn the_drawing_stays_as_it_is() {
    let first = measured(&[row("T9", 400.0), row("T9", 420.0), row("T9", 410.0)]);
    let second = measured(&[Row { consumers: None, pooled: false, ..row("T<1>", 90.0) }]);
    let drawn = draw(&[&first, &second]);
    // Written again by this test when it is missing: delete it, look at the new one, and keep it.
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden/rates.svg");
    if !golden.exists() {
        std::fs::create_dir_all(golden.parent().expect("a folder")).expect("made");
        std::fs::write(&golden, &drawn).expect("written");
        panic!("{} was missing and is written now", golden.display());
    }
    assert_eq!(drawn, std::fs::read_to_string(golden).expect("readable"));
}

#[test]
fn the_page_needs_nothing_else_and_lets_no_text_in_as_markup() {
    let page = page(&report(vec![row("T9", 400.0)]));
    for part in ["<svg", "400.0", "T9", "Differences from the paper", "stentor lab run &lt;study&gt;"] {
        assert!(page.contains(part), "{part} is not there");
    }
    for part in ["<script", "<link", "<img", "src=", "href=", "<study>", "url(", "@import"] {
        assert!(!page.contains(part), "{part} is there");
    }
    let verdicts = page.find("<h2>Verdicts</h2>").expect("verdicts");
    assert!(verdicts < page.find("<h2>Pushes per second</h2>").expect("rates"), "verdicts come first");
}

#[test]
fn claims_can_be_judged_by_our_figures() {
    let mut rows: Vec<Row> = [390.0, 400.0, 410.0].map(|rate| row("T9", rate)).to_vec();
    rows.push(row("T1", 100.0));
    let text = figures(&report(rows), "Table 3");
    let read = crate::claims::figures::Figures::parse(&text).expect("readable");
    let told: Vec<_> =
        read.iter().map(|figure| (figure.experiment.as_str(), figure.metric.as_str())).collect();
    assert_eq!(told, [("T9", "throughput"), ("T1", "throughput")], "no durations below full scale");
    let dossier = crate::claims::Dossier::open("isikligil-2017").expect("readable").expect("there");
    let judged = dossier.judge(Some(&read)).expect("judged");
    assert!(judged.iter().any(|one| one.ours.is_some()));
}

#[test]
fn the_tables_are_also_there_for_a_repository() {
    let text = markdown(&report(vec![row("T9", 400.0)]));
    assert!(text.contains("## Verdicts") && text.contains("| T9 | gcm | 20 | yes | 1 |"), "{text}");
}
