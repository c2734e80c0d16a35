use super::*;
use serde_json::json;

fn row(id: &str, rate: f64) -> Row {
    let mut row = Row {
        id: id.to_owned(),
        consumers: Some(20),
        mix: "gcm".to_owned(),
        pooled: true,
        pushes: 1000,
        pushes_per_second: rate,
        latency_mean_ms: 40.0,
        ledger_balanced: true,
        known_devices_reached: [1, 1],
        ..Row::default()
    };
    row.derive(Some(20), Some(250.0));
    row
}

fn report(rows: Vec<Row>) -> Report {
    Report {
        study: Study::isikligil_2017().expect("readable"),
        published: Published::isikligil_2017().expect("readable"),
        rows,
        beyond: Vec::new(),
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
fn a_row_in_which_anything_is_amiss_is_not_sound() {
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
fn a_claim_about_tests_that_were_not_run_is_not_testable() {
    let judged = report(vec![row("T9", 500.0)]).judged();
    assert!(judged.iter().all(|one| one.ours == Verdict::NotTestable), "{judged:?}");
}

#[test]
fn the_drawing_stays_as_it_is() {
    let drawn = draw(&[row("T9", 400.0), Row { consumers: None, pooled: false, ..row("T<1>", 90.0) }]);
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
    for part in ["<script", "<link", "<img", "src=", "href=", "<study>"] {
        assert!(!page.contains(part), "{part} is there");
    }
}
