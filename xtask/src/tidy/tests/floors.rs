//! The rule of floors.

use super::{file, lines};
use crate::tidy::floors::{Floors, check_with};

const HOUSE: Floors = Floors {
    folder: "crates/stentor-server/src/",
    module: &[],
    floors: &[&["ground", "clock"], &["service"], &["face"]],
    back: &[("clock", "service", "a reason")],
};

fn found(path: &str, text: &str) -> Vec<usize> {
    lines(&check_with(&file(&format!("crates/stentor-server/src/{path}"), text), &HOUSE))
}

#[test]
fn a_module_uses_those_below_it_and_none_above_or_beside_it() {
    assert!(found("face.rs", "use crate::service::A;\nuse crate::ground::B;").is_empty());
    assert_eq!(found("service.rs", "use crate::ground::A;\nuse crate::face::B;"), [2]);
    assert_eq!(found("ground.rs", "use crate::clock::A;"), [1]);
    assert!(found("clock.rs", "use crate::service::A;").is_empty(), "named with its reason");
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
