use super::*;
use crate::plan::StudyPlan;

fn campaigns() -> Campaigns {
    StudyPlan::shipped("isikligil-2017").expect("readable").expect("there").campaigns.expect("campaigns")
}

#[test]
fn the_study_of_2017_has_thirteen_tests_with_a_million_pushes_each_at_full_scale() {
    let study = campaigns();
    let tests: Vec<_> = study.cells.iter().filter(|cell| cell.question.is_empty()).collect();
    let ids: Vec<_> = tests.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13"]);
    assert!(tests.iter().all(|cell| study.pushes(cell.mix, 1.0) == 1_000_000));
    let (one, both) = (study.devices(PlatformMix::Gcm, 1.0), study.devices(PlatformMix::Both, 1.0));
    assert_eq!(one.gcm + one.apns + both.gcm + both.apns, 3_000_000);
    let inflight: Vec<_> = tests.iter().filter_map(|cell| cell.inflight_requests()).collect();
    assert_eq!(inflight, [20, 20, 40, 50, 50, 50, 100, 100, 20, 20, 40, 100, 200]);
}

#[test]
fn a_scale_never_leaves_a_platform_without_devices() {
    assert_eq!(campaigns().devices(PlatformMix::Both, 1e-9), PlatformDevices { gcm: 2, apns: 2 });
    assert_eq!(campaigns().devices(PlatformMix::Gcm, 0.002), PlatformDevices { gcm: 2000, apns: 2000 });
}

#[test]
fn the_latency_has_the_mean_that_the_paper_allows() {
    let mean = campaigns().provider.mean_ms();
    assert!((mean - 35.0).abs() < 0.1, "{mean}");
}

#[test]
fn every_cell_beyond_the_paper_answers_a_question_that_stands_there() {
    let study = campaigns();
    let mut ids: Vec<&str> = study.cells.iter().map(|cell| cell.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), study.cells.len(), "two cells have one name");
    let answered = |question: &OpenQuestion| study.cells.iter().any(|cell| cell.question == question.id);
    assert!(study.questions.iter().all(answered));
    for cell in study.cells.iter().filter(|cell| !cell.question.is_empty()) {
        assert!(study.questions.iter().any(|question| question.id == cell.question), "{}", cell.id);
        assert!(
            cell.producers == 1 || cell.mix != PlatformMix::Both,
            "{}: the parts are of one platform",
            cell.id
        );
        assert!(!cell.id.contains([',', '"', ' ']), "{}: it is told to `--only`, and in a table", cell.id);
        let places = cell.consumers.unwrap_or(cell.apps);
        assert!(places.is_multiple_of(cell.apps), "{}: places cannot be shared evenly", cell.id);
    }
}

#[test]
fn a_cell_is_expected_to_take_what_littles_law_says() {
    let study = Campaigns { provider: ProviderModel::fixed(50.0), ..campaigns() };
    let cell = CampaignCell { consumers: Some(50), ..CampaignCell::default() };
    // 100 slots and 50 ms: 2,000 a second, plus a second for start and end.
    assert_eq!(study.expected_seconds(&cell, 0.01), 6.0);
    assert_eq!(study.expected_seconds(&CampaignCell::default(), 0.01), 2.0);
    let levels = CampaignCell { producers: 4, latency_ms: Some(0.0), ..cell };
    assert_eq!(levels.levels_text(), "latency 0 ms, producers 4");
    let named: Vec<String> = levels.levels().into_iter().map(|(name, level)| name + "=" + &level).collect();
    assert_eq!(named.join(" "), "consumers=50 latency_ms=0.0 mix=gcm+apns pooled=true producers=4");
}
