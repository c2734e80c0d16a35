use super::{facts, listing, thousands};
use serde_json::json;

#[test]
fn numbers_are_grouped_by_three() {
    let grouped = [0, 999, 1000, 1_234_567].map(thousands);
    assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn facts_leave_out_what_is_empty() {
    let text = facts(&json!({"id": "dev_1", "tags": [], "user": null, "topics": ["a", "b"]}));
    assert_eq!(text, "id      dev_1\ntopics  a, b");
}

#[test]
fn a_listing_shows_the_chosen_fields_only() {
    let text = listing(&json!([{"id": "a", "name": "n", "secret": "s"}]), ["id", "name"]);
    assert!(text.contains("id") && text.contains('n') && !text.contains("secret"), "{text}");
}

#[test]
fn an_empty_listing_says_so() {
    assert_eq!(listing(&json!([]), ["id"]), "(none)");
}
