use super::{Fate, fate};
use serde_json::json;

#[test]
fn the_final_state_counts_wherever_it_stands() {
    let history = json!({"deliveries": [
        {"state": "queued", "reason": "unanswered", "ambiguous": true},
        {"state": "accepted", "reason": "none", "ambiguous": false}]});
    assert_eq!(fate(&history), Fate { state: Some("accepted".to_owned()), ambiguous: true, unanswered: 1 });
}

#[test]
fn a_delivery_under_way_has_no_final_state() {
    let history = json!({"deliveries": [{"state": "sending"}]});
    assert_eq!(fate(&history), Fate::default());
    assert_eq!(fate(&json!({"deliveries": []})), Fate::default());
}
