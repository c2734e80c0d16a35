use super::{facts, listing};
use serde_json::json;

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
