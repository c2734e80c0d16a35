//! Plans of users.

use super::*;

const SKELETON: &str = include_str!("../../../../../lab/skeleton/plan.toml");

fn refusal(text: &str) -> String {
    StudyPlan::own(text).expect_err(text).to_string()
}

#[test]
fn the_skeleton_of_a_plan_compares_an_own_subject_with_ours() {
    let own = foreign("rest+json/my-framework-1.0/python3", &[SubjectRole::Server]);
    let plan = StudyPlan::own(SKELETON).expect("it can be run");
    let subjects = ["my-framework", "rust"].map(str::to_owned).to_vec();
    let choice = PlanChoice { subjects, ..PlanChoice::default() };
    let cells = plan.expand(&choice, &[ours(), vec![own]].concat()).expect("sense").cells;
    let pairs: BTreeSet<(&str, &str)> =
        cells.iter().map(|cell| (cell.stack.as_str(), cell.levels["payload"].as_str())).collect();
    let both =
        ["my-framework-1.0/python3", "rust"].into_iter().flat_map(|stack| [(stack, "64 B"), (stack, "4 kB")]);
    assert_eq!(pairs, both.collect());
}

#[test]
fn the_plans_of_the_published_studies_are_examples_under_another_id() {
    for id in PLANNED {
        let plan = shipped(id);
        let own = toml::to_string(&StudyPlan { id: "mine".to_owned(), ..plan.clone() }).expect("written");
        StudyPlan::own(&own).unwrap_or_else(|error| panic!("{id}: {error}"));
        let refused = refusal(&toml::to_string(&plan).expect("written"));
        assert!(refused.contains("choose another id"), "{refused}");
    }
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_with_what_to_change() {
    for (before, after, advice) in [
        ("echo-of-two-sizes", "../mine", "its id has 1 to 64 letters"),
        ("interval_ms = 10", "interval_ms = nan", "interval_ms is from 0 to 3600000"),
        ("forks = 3, forks_min = 2", "forks = 3, forks_min = 4", "quick has 1 to 1000 forks"),
        ("samples = 50", "samples = 0", "standard has 1 to 1000 forks"),
        ("subjects = [{", "subjects = []\n#", "add some, or takes_named = true"),
        ("level = \"64 B\",", "level = \"64 B\", warmup = 1000001,", "at most 1000000 exchanges of warmup"),
        ("level = \"64 B\",", "level = \"64 B\", samples = 0,", "1 to 1000000 samples"),
        ("op = \"echo\"", "op = \"shout\"", "unknown variant"),
        ("interval_ms = 10", "interval = 10", "unknown field"),
    ] {
        assert!(SKELETON.contains(before), "{before}");
        let refused = refusal(&SKELETON.replace(before, after));
        assert!(refused.contains(advice), "{after}: {refused}");
    }
    let twice = [SKELETON, &SKELETON[SKELETON.find("[[experiments]]").expect("one")..]].concat();
    assert!(refusal(&twice).contains("two experiments have the id"), "{}", refusal(&twice));
    assert!(refusal("id = \"mine\"\nlink = \"none\"").contains("it has no experiment"));
}
