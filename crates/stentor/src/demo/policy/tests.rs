use crate::demo::DemoPolicy;
use crate::demo::fleet::{Fleet, Half};
use stentor_emulators::Policy;

#[test]
fn the_emulators_understand_both_policies() {
    for half in Half::BOTH {
        for policy in [DemoPolicy::Realistic, DemoPolicy::AcceptAll] {
            assert!(serde_json::from_value::<Policy>(policy.of(half)).is_ok(), "{half:?} {policy:?}");
        }
    }
}

#[test]
fn about_three_tokens_in_a_hundred_are_dead_and_none_if_all_are_accepted() {
    let fleet = Fleet::new(20_000, 1);
    for half in Half::BOTH {
        let members = || fleet.members().filter(|member| member.half == half);
        let dead = |policy: DemoPolicy| {
            members().filter(|member| policy.is_dead(half, &fleet.token(*member))).count()
        };
        let (realistic, none) = (dead(DemoPolicy::Realistic), dead(DemoPolicy::AcceptAll));
        assert!((200..450).contains(&realistic) && none == 0, "{half:?}: {realistic}, {none}");
    }
}

#[test]
fn a_project_is_never_throttled() {
    let told = DemoPolicy::Realistic.of(Half::Fcm).to_string();
    assert!(!told.contains("QUOTA_EXCEEDED"), "{told}");
}
