use super::{DeliveryHistory, summed_up};
use serde_json::json;

#[test]
fn the_final_state_counts_wherever_it_stands() {
    let answer = json!({"deliveries": [
        {"state": "queued", "reason": "unanswered", "ambiguous": true},
        {"state": "accepted", "reason": "none", "ambiguous": false}]});
    assert_eq!(
        summed_up(&answer),
        DeliveryHistory { state: Some("accepted".to_owned()), ambiguous: true, unanswered: 1 }
    );
}

#[test]
fn a_delivery_under_way_has_no_final_state() {
    let answer = json!({"deliveries": [{"state": "sending"}]});
    assert_eq!(summed_up(&answer), DeliveryHistory::default());
    assert_eq!(summed_up(&json!({"deliveries": []})), DeliveryHistory::default());
}
