use super::*;

fn candidate(name: &str) -> ComparedCandidate {
    ComparedCandidate { name: name.to_owned(), time: MeasuredTime::Request }
}

fn fork(candidate: usize, round: u32, seconds: f64) -> ComparedFork {
    let sent = PurposeBytes { header_bytes: 520, payload_bytes: 100, ..PurposeBytes::default() };
    let received = PurposeBytes { header_bytes: 520, payload_bytes: 900, ..PurposeBytes::default() };
    let bytes = Some([sent, received]);
    let first_seconds = Some(3.0 * seconds);
    ComparedFork {
        candidate,
        round,
        seed: 1,
        invalid_reason: None,
        seconds,
        first_seconds,
        exchanges: 10,
        bytes,
    }
}

/// Compares two candidates whose rounds are of very different speed, in each of which the second takes `factor` times as long.
fn comparison(factor: f64) -> Comparison {
    let rounds = [0.010, 0.030, 0.012, 0.050].into_iter().zip(1..);
    let pair = |(seconds, round): (f64, u32)| {
        let noise = if round % 2 == 0 { 1.01 } else { 0.99 };
        [fork(0, round, seconds), fork(1, round, seconds * factor * noise)]
    };
    Comparison {
        candidates: vec![candidate("http://a/"), candidate("http://b/")],
        link: "wifi".to_owned(),
        seed: 1,
        environment: Environment::default(),
        forks: rounds.flat_map(pair).collect(),
        command: "stentor lab measure http://a/ --vs http://b/".to_owned(),
    }
}

#[test]
fn a_ratio_is_found_within_rounds_although_the_rounds_differ_more() {
    let summaries = comparison(1.2).summaries();
    let ratio = summaries[1].ratio.expect("two candidates");
    let (low, high) = (ratio.low.expect("rounds"), ratio.high.expect("rounds"));
    assert!(low > 1.15 && low < 1.2 && high > 1.2 && high < 1.25, "{ratio:?}");
    let time = summaries[0].seconds.expect("forks");
    assert!(time.high.expect("forks") / time.low.expect("forks") > 2.0, "the times alone are hardly known");
    assert!(sentence("b", "a", &ratio).starts_with("b is slower than a: it takes 1.2"));
    let same = comparison(1.0).summaries()[1].ratio.expect("two candidates");
    assert!(sentence("b", "a", &same).starts_with("no difference was shown"), "{same:?}");
}

#[test]
fn a_fork_that_does_not_count_is_in_no_figure_and_its_round_in_no_ratio() {
    let mut late = comparison(1.2);
    late.forks[3].seconds = 9.0;
    late.forks[3].invalid_reason = Some("the link was late".to_owned());
    let summary = &late.summaries()[1];
    assert!(summary.forks == 3 && summary.seconds.expect("forks").mean < 1.0, "{summary:?}");
    assert!((summary.ratio.expect("three rounds").ratio - 1.2).abs() < 0.02);
    let text = markdown(&late);
    assert!(text.contains("| http://b/ | 2 | the link was late |"), "{text}");
    late.forks.truncate(2);
    assert!(late.summaries()[1].ratio.is_none() && !late.is_complete(), "one round has no spread");
}

#[test]
fn bytes_are_means_of_an_exchange_by_purpose_and_way() {
    let bytes = comparison(1.0).summaries()[0].bytes.clone().expect("counted");
    assert_eq!([bytes[0]["payload"], bytes[1]["payload"], bytes[0]["TLS"]], [10.0, 90.0, 0.0]);
    let whole: u64 = by_purpose(&PurposeBytes {
        close_bytes: 3,
        bare_ack_bytes: 4,
        handshake_bytes: 5,
        ..fork(0, 1, 1.0).bytes.expect("some")[0]
    })
    .iter()
    .map(|(_, count)| count)
    .sum();
    assert_eq!(whole, 632, "every byte has one purpose");
}

#[test]
fn the_page_states_the_result_the_times_the_bytes_and_the_command() {
    let page = page(&comparison(1.2));
    for part in
        ["<h2>Result</h2>", "is slower than", "<svg", "Bytes by purpose", "stentor lab measure http://a/"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"), "{page}");
    let mut hostile = comparison(1.2);
    hostile.candidates[0].name = "<script>alert(1)</script>".to_owned();
    assert!(!super::page(&hostile).contains("<script>"), "names of candidates are text");
}
