use super::{Dead, dead};
use crate::devices::{DevicePopulation, Half};
use crate::policy::AnswerPolicy;
use stentor_emulators::Policy;

#[test]
fn the_emulators_understand_both_policies() {
    for half in Half::BOTH {
        for policy in [AnswerPolicy::Realistic, AnswerPolicy::AcceptAll] {
            assert!(serde_json::from_value::<Policy>(policy.of(half)).is_ok(), "{half:?} {policy:?}");
        }
    }
}

#[test]
fn about_three_tokens_in_a_hundred_are_dead_and_none_if_all_are_accepted() {
    let population = DevicePopulation::new(20_000, 1);
    for half in Half::BOTH {
        let members = || population.members().filter(|member| member.half == half);
        let dead = |policy: AnswerPolicy| {
            members().filter(|member| policy.is_dead(half, &population.token(*member))).count()
        };
        let (realistic, none) = (dead(AnswerPolicy::Realistic), dead(AnswerPolicy::AcceptAll));
        assert!((200..450).contains(&realistic) && none == 0, "{half:?}: {realistic}, {none}");
    }
}

#[test]
fn tokens_meet_each_way_to_be_refused_for_good() {
    let population = DevicePopulation::new(20_000, 1);
    for half in Half::BOTH {
        let tokens: Vec<String> = population
            .members()
            .filter(|member| member.half == half)
            .map(|member| population.token(member))
            .collect();
        for Dead { code, prefixes, .. } in dead(half) {
            let meets = |token: &String| prefixes.iter().any(|prefix| token.starts_with(prefix));
            assert!(tokens.iter().any(meets), "no token meets {code}");
        }
    }
}

#[test]
fn a_project_is_never_throttled() {
    let rendered = AnswerPolicy::Realistic.of(Half::Fcm).to_string();
    assert!(!rendered.contains("QUOTA_EXCEEDED"), "{rendered}");
}
