use super::*;
use crate::statistics::Samples;

fn study() -> Study {
    Study::isikligil_2017().expect("readable")
}

fn published() -> Published {
    Published::isikligil_2017().expect("readable")
}

#[test]
fn the_study_of_2017_has_thirteen_tests_each_with_a_published_rate() {
    let (study, published) = (study(), published());
    let ids: Vec<_> = study.scenarios.iter().map(|scenario| scenario.id.as_str()).collect();
    assert_eq!(ids, ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13"]);
    let rates: Vec<_> = ids.iter().filter_map(|id| published.pushes_per_second(id)).collect();
    let table = [265.0, 195.0, 284.0, 98.0, 501.0, 518.0, 460.0, 413.0, 566.0, 558.0, 801.0, 824.0, 712.0];
    assert_eq!(rates, table);
}

#[test]
fn every_test_sends_a_million_pushes_at_full_scale() {
    let study = study();
    assert!(study.scenarios.iter().all(|scenario| study.pushes(scenario.mix, 1.0) == 1_000_000));
    let (one, both) = (study.devices(Mix::Gcm, 1.0), study.devices(Mix::Both, 1.0));
    assert_eq!(one.gcm + one.apns + both.gcm + both.apns, 3_000_000);
}

#[test]
fn a_scale_never_leaves_a_platform_without_devices() {
    assert_eq!(study().devices(Mix::Both, 1e-9), Devices { gcm: 2, apns: 2 });
    assert_eq!(study().devices(Mix::Gcm, 0.002), Devices { gcm: 2000, apns: 2000 });
}

#[test]
fn the_latency_has_the_mean_that_the_paper_allows() {
    let mean = study().provider.mean_ms();
    assert!((mean - 35.0).abs() < 0.1, "{mean}");
}

#[test]
fn both_platforms_have_twice_the_requests_in_flight() {
    let study = study();
    let inflight: Vec<_> =
        study.scenarios.iter().filter_map(|scenario| scenario.cell().inflight_requests()).collect();
    assert_eq!(inflight, [20, 20, 40, 50, 50, 50, 100, 100, 20, 20, 40, 100, 200]);
}

#[test]
fn the_papers_own_figures_contradict_one_of_its_sentences_and_leave_one_undecided() {
    let (study, published) = (study(), published());
    let claims = study.claims.iter().filter(|claim| claim.group.is_empty());
    let verdicts: Vec<_> = claims.map(|claim| (claim.id.as_str(), claim.judge(&published).verdict)).collect();
    let expected = [
        ("pools", Verdict::Holds),
        ("one-platform", Verdict::Holds),
        // 801 and 824 pushes a second, from one run each.
        ("both-platforms", Verdict::Undecided),
        ("both-beat-one", Verdict::Holds),
        ("best-rate", Verdict::Holds),
        // 98 pushes a second for 7,531 seconds are 738,038 of a million.
        ("out-of-memory", Verdict::Holds),
        // The text says 154, its table 265.
        ("first-rate", Verdict::DoesNotHold),
    ];
    assert_eq!(verdicts, expected);
}

/// Runs of invented tests.
struct Invented(Vec<(&'static str, Vec<f64>)>);

impl Evidence for Invented {
    fn rates(&self, test: &str) -> Option<Samples> {
        let (_, rates) = self.0.iter().find(|(id, _)| *id == test)?;
        Some(rates.iter().copied().collect())
    }

    fn finished_share(&self, test: &str) -> Option<f64> {
        self.rates(test).map(|_| 1.0)
    }

    fn is_of_the_paper(&self) -> bool {
        false
    }
}

fn claim(kind: Kind) -> Claim {
    let [text, source, group, note] = [const { String::new() }; 4];
    Claim { id: "c".into(), text, source, group, kind, note }
}

fn order(pairs: &[[&str; 2]]) -> Claim {
    claim(Kind::Order { pairs: pairs.iter().map(|pair| pair.map(str::to_owned)).collect() })
}

#[test]
fn one_pair_the_other_way_round_is_enough_against_a_claim() {
    let claim = order(&[["a", "b"], ["c", "d"]]);
    let verdict = |c: f64| {
        let rates = vec![("a", vec![2.0]), ("b", vec![1.0]), ("c", vec![c]), ("d", vec![1.0])];
        claim.judge(&Invented(rates)).verdict
    };
    assert_eq!([1.5, 1.01, 0.5].map(verdict), [Verdict::Holds, Verdict::Undecided, Verdict::DoesNotHold]);
    assert_eq!(claim.judge(&Invented(vec![("a", vec![1.0])])).verdict, Verdict::NotTestable);
}

#[test]
fn runs_that_scatter_decide_nothing_and_runs_that_agree_do() {
    let claim = order(&[["a", "b"]]);
    let verdict =
        |a: &[f64], b: &[f64]| claim.judge(&Invented(vec![("a", a.to_vec()), ("b", b.to_vec())])).verdict;
    let (calm, wild) = ([100.0, 101.0, 99.0], [60.0, 100.0, 160.0]);
    assert_eq!(verdict(&[150.0, 151.0, 149.0], &calm), Verdict::Holds);
    assert_eq!(verdict(&[150.0, 151.0, 149.0], &wild), Verdict::Undecided);
    assert_eq!(verdict(&calm, &[150.0, 151.0, 149.0]), Verdict::DoesNotHold);
    assert_eq!(verdict(&calm, &calm), Verdict::Undecided);
}

#[test]
fn a_rate_that_does_not_follow_is_below_a_factor_with_its_interval() {
    let below = |factor| claim(Kind::Below { pairs: vec![["a".into(), "b".into()]], factor });
    let runs = Invented(vec![("a", vec![120.0, 121.0, 119.0]), ("b", vec![100.0, 101.0, 99.0])]);
    assert_eq!(
        [1.5, 1.2, 1.1].map(|factor| below(factor).judge(&runs).verdict),
        [Verdict::Holds, Verdict::Undecided, Verdict::DoesNotHold]
    );
}

#[test]
fn a_rate_elsewhere_says_nothing_of_a_stated_one_and_a_ceiling_is_broken_by_one_test() {
    let runs = Invented(vec![("a", vec![900.0, 901.0, 899.0]), ("b", vec![1.0])]);
    assert_eq!(
        claim(Kind::Stated { test: "a".into(), rate: 900.0 }).judge(&runs).verdict,
        Verdict::NotTestable
    );
    let ceiling =
        |rate| claim(Kind::Ceiling { tests: vec!["b".into(), "a".into()], rate }).judge(&runs).verdict;
    assert_eq!([950.0, 800.0].map(ceiling), [Verdict::Holds, Verdict::DoesNotHold]);
    assert_eq!(claim(Kind::Unfinished { test: "a".into() }).judge(&runs).verdict, Verdict::DoesNotHold);
}

#[test]
fn every_cell_beyond_the_paper_answers_a_question_that_stands_there() {
    let study = study();
    let mut ids: Vec<&str> = study.beyond.iter().map(|cell| cell.id.as_str()).collect();
    ids.extend(study.scenarios.iter().map(|scenario| scenario.id.as_str()));
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "two cells have one name");
    let answered = |group: &Group| study.beyond.iter().any(|cell| cell.group == group.id);
    assert!(study.groups.iter().all(answered));
    for cell in &study.beyond {
        assert!(study.groups.iter().any(|group| group.id == cell.group), "{}", cell.id);
        assert!(cell.producers == 1 || cell.mix != Mix::Both, "{}: the parts are of one platform", cell.id);
        assert!(
            !cell.id.contains([',', '"', ' ']),
            "{}: it is told to `--only` and stands in a table",
            cell.id
        );
        let places = cell.consumers.unwrap_or(cell.apps);
        assert!(places.is_multiple_of(cell.apps), "{}: places cannot be shared evenly", cell.id);
    }
}

#[test]
fn a_cell_is_expected_to_take_what_littles_law_says() {
    let usual = ProviderModel::fixed(50.0);
    let cell = Cell { consumers: Some(50), ..Cell::default() };
    // 100 places, 50 ms: 2,000 a second, and a second for start and end.
    assert_eq!(cell.expected_seconds(usual, 10_000), 6.0);
    assert_eq!(Cell::default().expected_seconds(usual, 10_000), 2.0);
    let levels = Cell { producers: 4, latency_ms: Some(0.0), ..cell };
    assert_eq!(levels.levels(), "latency 0 ms, producers 4");
}

#[test]
fn every_claim_speaks_of_tests_that_exist() {
    let study = study();
    let known = |id: &str| {
        let cells = study.scenarios.iter().map(|one| &one.id).chain(study.beyond.iter().map(|one| &one.id));
        cells.into_iter().any(|one| one == id)
    };
    assert!(study.claims.iter().flat_map(Claim::tests).all(known));
}

#[test]
fn a_figure_that_cannot_be_read_is_named_by_its_line() {
    let error = Published::parse("header\n\na,b\n").expect_err("refused");
    assert_eq!(error.to_string(), "line 3 of the published figures: has too few columns");
}
