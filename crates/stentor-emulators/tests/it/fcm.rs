//! FCM: sending, errors, tokens and topics, over HTTP/2 and HTTP/1.1.

use crate::rig;
use serde_json::json;

#[tokio::test]
async fn a_message_is_accepted_over_http_1() {
    let fcm = rig::fcm(json!({})).await;
    let (status, body) = rig::post(fcm.addr(), "/v1/projects/p/messages:send", &rig::to_token("abc")).await;
    assert_eq!(status, 200);
    assert!(body["name"].as_str().unwrap().starts_with("projects/p/messages/"));
    assert_eq!(fcm.counts("abc").accepted, 1);
}
