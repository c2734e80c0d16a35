//! Devices over Server-Sent Events that confirm late, twice, never, or foreign messages, and one that is connected twice.

use super::faults::{to, until_delivered};
use super::*;

async fn confirm(server: &Server, device: &Device, messages: &[&str]) -> Value {
    let receipt = device.ask(server, Method::POST, "/gateway/v1/receipts");
    let read = receipt.json(&json!({"messages": messages})).read().await;
    assert_eq!(read.status, 200, "{read:?}");
    read.body["confirmed"].clone()
}

/// Waits for this number of messages.
async fn some(events: &mut Events, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(events.next().await.0);
    }
    ids.sort();
    ids
}

#[tokio::test]
async fn r16_over_a_stream_each_message_is_delivered_once_however_it_is_confirmed() {
    let server = server().await;
    let tenant = server.tenant().await;
    let (device, other) =
        (Device::join(&server, &tenant, json!({})).await, Device::join(&server, &tenant, json!({})).await);
    let foreign = to(&server, &tenant, &other).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(to(&server, &tenant, &device).await);
    }
    sent.sort();
    let mut first = device.events(&server, "").await;
    assert_eq!(some(&mut first, 3).await, sent);
    // A message of another device, and an unknown one.
    assert_eq!(confirm(&server, &device, &[&foreign, "msg_0000000000000"]).await, json!(0));
    // In time, and once more.
    assert_eq!(confirm(&server, &device, &[&sent[0]]).await, json!(1));
    assert_eq!(confirm(&server, &device, &[&sent[0]]).await, json!(0));
    // A second stream replaces the first one, and gives the unconfirmed messages.
    let mut second = device.events(&server, "").await;
    let end = tokio::time::timeout(Duration::from_secs(20), first.response.chunk()).await;
    assert!(matches!(end.expect("in time"), Ok(None) | Err(_)), "the first one ends");
    assert_eq!(some(&mut second, 2).await, sent[1..]);
    // Late, after the streams have ended.
    drop(second);
    assert_eq!(confirm(&server, &device, &[&sent[1]]).await, json!(1));
    let mut third = device.events(&server, "").await;
    assert_eq!(third.next().await.0, sent[2]);
    assert_eq!(confirm(&server, &device, &[&sent[2]]).await, json!(1));
    for message in &sent {
        until_delivered(&server, &tenant, message, 1).await;
    }
    assert_eq!(totals(&server, &tenant, &foreign).await, (1, 0), "another's is untouched");
    assert_eq!(other.events(&server, "").await.next().await.0, foreign);
}
