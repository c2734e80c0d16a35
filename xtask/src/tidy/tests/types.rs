//! Names of types.

use super::{file, lines};
use crate::rust_file::RustFile;
use crate::tidy::types::{SharedName, check_with};

const NONE: &[SharedName] = &[];

fn two(first: &str, second: &str) -> [RustFile; 2] {
    [file("crates/a/src/one.rs", first), file("crates/b/src/two.rs", second)]
}

#[test]
fn a_name_that_two_types_have_is_found_where_it_comes_again() {
    for second in
        ["\nstruct A;", "\nenum A {}", "\ntype A = u8;", "\npub trait A {}", "\nfn f() { struct A; }"]
    {
        let findings = check_with(&two("pub struct A;", second), NONE);
        assert_eq!(lines(&findings), [2], "{second}");
        assert_eq!(findings[0].file, "crates/b/src/two.rs");
        assert!(findings[0].sentence.contains("crates/a/src/one.rs:1"), "{}", findings[0]);
    }
    let in_one_file = [file("crates/a/src/one.rs", "struct A;\nmod inner {\n    struct A;\n}")];
    assert_eq!(lines(&check_with(&in_one_file, NONE)), [3]);
}

#[test]
fn names_of_their_own_and_names_in_tests_pass() {
    let in_a_trait = "trait B { type A; }\nimpl B for u8 { type A = u8; }";
    for second in
        ["struct B;", "#[cfg(test)]\nmod tests {\n    struct A;\n}", "fn a() {}", "use one::A;", in_a_trait]
    {
        assert_eq!(check_with(&two("struct A;", second), NONE), [], "{second}");
    }
    let in_tests = [file("crates/a/src/one.rs", "struct A;"), file("crates/a/src/one/tests.rs", "struct A;")];
    assert_eq!(check_with(&in_tests, NONE), []);
}

#[test]
fn a_reason_lets_a_name_be_shared_and_goes_when_it_is_not() {
    let reasons: &[SharedName] = &[("A", "two sides of a wall")];
    assert_eq!(check_with(&two("struct A;", "struct A;"), reasons), []);
    for second in ["struct B;", "#[cfg(test)]\nmod tests {\n    struct A;\n}"] {
        let findings = check_with(&two("struct A;", second), reasons);
        assert_eq!(findings.len(), 1, "{second}");
        assert!(findings[0].sentence.contains("remove its reason"), "{}", findings[0]);
    }
}
