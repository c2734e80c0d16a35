use super::{Dead, dead};
use crate::devices::{DevicePopulation, StagedService, StagedServices};
use crate::policy::AnswerPolicy;
use stentor_emulators::Policy;

/// Ten thousand devices of each push service.
fn of_all() -> DevicePopulation {
    let services = StagedServices::new(&StagedService::ALL).unwrap();
    DevicePopulation::new(10_000 * StagedService::ALL.len() as u64, 1).through(services)
}

#[test]
fn the_emulators_understand_both_policies() {
    for service in StagedService::ALL {
        for policy in [AnswerPolicy::Realistic, AnswerPolicy::AcceptAll] {
            assert!(serde_json::from_value::<Policy>(policy.of(service)).is_ok(), "{service:?} {policy:?}");
        }
    }
}

#[test]
fn about_three_tokens_in_a_hundred_are_dead_and_none_if_all_are_accepted() {
    let population = of_all();
    for service in StagedService::ALL {
        let members = || population.members().filter(|member| member.service == service);
        let dead = |policy: AnswerPolicy| {
            members().filter(|member| policy.is_dead(service, &population.token(*member))).count()
        };
        let (realistic, none) = (dead(AnswerPolicy::Realistic), dead(AnswerPolicy::AcceptAll));
        assert!((200..450).contains(&realistic) && none == 0, "{service:?}: {realistic}, {none}");
    }
}

#[test]
fn tokens_meet_each_way_to_be_refused_for_good() {
    let population = of_all();
    for service in StagedService::ALL {
        let tokens: Vec<String> = population
            .members()
            .filter(|member| member.service == service)
            .map(|member| population.token(member))
            .collect();
        for Dead { code, prefixes, .. } in dead(service) {
            let meets = |token: &String| prefixes.iter().any(|prefix| token.starts_with(prefix));
            assert!(tokens.iter().any(meets), "no token meets {code}");
        }
    }
}

#[test]
fn a_project_is_never_throttled() {
    let rendered = AnswerPolicy::Realistic.of(StagedService::Fcm).to_string();
    assert!(!rendered.contains("QUOTA_EXCEEDED"), "{rendered}");
}

#[test]
fn every_passing_error_of_apns_names_its_wait_so_that_no_delivery_waits_for_a_quarter_of_an_hour() {
    let rendered = AnswerPolicy::Realistic.of(StagedService::Apns);
    let errors = rendered["mix"]["errors"].as_array().unwrap();
    assert!(errors.iter().all(|passing| passing["error"]["retry_after_s"].is_u64()), "{rendered}");
}
