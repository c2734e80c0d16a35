//! APNs: framing, every reason, provider tokens and the faults of a connection.

use crate::rig::{self, Client, hex};
use serde_json::json;

#[tokio::test]
async fn an_accepted_push_is_headers_alone_with_the_apns_id_echoed() {
    let apns = rig::apns(json!({})).await;
    let mut client = Client::connect(apns.addr()).await;
    let reply = client.push(&hex(1)).await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(reply.body.is_empty());
    assert!(reply.headers.contains_key("apns-id"));
    assert_eq!(apns.counts(&hex(1)).accepted, 1);
}
