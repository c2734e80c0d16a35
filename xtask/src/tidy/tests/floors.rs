//! The rule of floors.

use super::{file, lines};
use crate::tidy::floors::{Floors, check_with};

const HOUSE: Floors = Floors {
    folder: "crates/stentor-server/src/",
    module: &[],
    floors: &[&["ground", "clock"], &["service"], &["face"]],
    back: &[("clock", "service", "a reason")],
    parent: &[("Known", "a reason")],
};

/// The file of the folder itself.
const PARENT: &str =
    "mod face;\npub use face::Passed;\npub use face::Old as New;\npub struct Own;\npub struct Known;";

fn found(path: &str, text: &str) -> Vec<usize> {
    let of = |path: &str, text| file(&format!("crates/stentor-server/src/{path}"), text);
    lines(&check_with(&[of("lib.rs", PARENT), of(path, text)], &HOUSE))
}

#[test]
fn a_module_uses_those_below_it_and_none_above_or_beside_it() {
    assert!(found("face.rs", "use crate::service::A;\nuse crate::ground::B;").is_empty());
    assert_eq!(found("service.rs", "use crate::ground::A;\nuse crate::face::B;"), [2]);
    assert_eq!(found("ground.rs", "use crate::clock::A;"), [1]);
    assert!(found("clock.rs", "use crate::service::A;").is_empty(), "named with its reason");
}

#[test]
fn an_item_of_the_file_above_runs_back_up_unless_it_is_named_or_another_modules() {
    assert_eq!(found("service.rs", "use crate::Own;"), [1]);
    assert_eq!(found("service/deep.rs", "use super::super::Own;"), [1]);
    assert!(found("service.rs", "use crate::Known;").is_empty(), "named with its reason");
    assert_eq!(
        found("service.rs", "use crate::Passed;\nuse crate::New;"),
        [1, 2],
        "the module that has them is above"
    );
    assert!(found("face/deep.rs", "use crate::Passed;").is_empty());
}

#[test]
fn groups_and_paths_and_super_are_followed() {
    assert_eq!(found("service.rs", "use crate::{ground, face::B};"), [1]);
    assert_eq!(found("service/deep.rs", "use super::super::face::A;\nuse super::other::B;"), [1]);
    assert_eq!(found("service/mod.rs", "use super::face::A;"), [1]);
    assert_eq!(found("service.rs", "fn f() -> u8 {\n    crate::face::g()\n}"), [2]);
}

#[test]
fn tests_may_use_anything_and_an_unknown_module_is_told() {
    assert!(found("service/tests.rs", "use crate::face::A;").is_empty());
    assert!(found("service.rs", "#[cfg(test)]\nmod tests {\n    use crate::face::A;\n}").is_empty());
    assert_eq!(found("stray.rs", ""), [1]);
    assert!(found("lib.rs", "mod face;").is_empty());
}
