//! The rule of vendors' words.

use super::{file, lines};
use crate::tidy::vendors::{VendorPlace, check, check_with};

const PLACES: &[VendorPlace] =
    &[VendorPlace { path: "crates/stentor-core/src/provider.rs", words: &[&["fcm"]], reason: "a table" }];

fn found(path: &str, text: &str) -> Vec<usize> {
    lines(&check_with(&file(path, text), PLACES))
}

#[test]
fn a_vendors_word_is_found_in_names_texts_and_comments() {
    let server = "crates/stentor-server/src/service.rs";
    assert_eq!(found(server, "struct FcmCredential;"), [1]);
    assert_eq!(found(server, "fn f() {}\nfn put_apns() {}"), [2]);
    assert_eq!(found(server, "const TEXT: &str = \"see APNs\";"), [1]);
    assert_eq!(found(server, "// as Firebase says"), [1]);
    assert_eq!(found(server, "struct S {\n    team_id: u8,\n}"), [2]);
    assert_eq!(found(server, "fn bundled(team: u8, id: &str) -> bool { apples }"), [0; 0]);
}

#[test]
fn adapters_tests_and_named_places_may_say_it() {
    assert!(found("crates/stentor-providers/src/fcm/mod.rs", "struct Fcm;").is_empty());
    assert!(found("crates/stentor-server/src/service/tests.rs", "struct Fcm;").is_empty());
    assert!(found("crates/stentor-core/src/provider.rs", "enum E { Fcm }").is_empty());
    assert_eq!(found("crates/stentor-core/src/provider.rs", "enum E { Apns }"), [1]);
    assert_eq!(lines(&check(&file("crates/stentor-core/src/chunk.rs", "// FCM"))), [1]);
}
