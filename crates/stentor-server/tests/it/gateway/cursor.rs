//! A device's cursor or last event confirms only the messages that it received, and none that arrived in between.

use super::*;
use crate::harness::durable_server;

fn ids(polled: &Value) -> Vec<String> {
    let messages = polled["messages"].as_array().expect("a list");
    messages.iter().map(|message| message["id"].as_str().expect("an id").to_owned()).collect()
}

fn cursor(polled: &Value) -> String {
    polled["cursor"].as_str().expect("a cursor").to_owned()
}

/// Sends to a device in two seconds: the message gets its id now.
async fn send_later(server: &Server, tenant: &Tenant, device: &Device) -> String {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let body = json!({"target": {"devices": [device.id]}, "data": {"k": "v"}, "send_at": soon.to_string(), "exact": true});
    let sent = server.post(tenant, "/v1/messages", body).await;
    sent["id"].as_str().expect("an id").to_owned()
}

async fn change(server: &Server, tenant: &Tenant, message: &str, how: &str) {
    let path = format!("/v1/campaigns/{}/{how}", message.replace("msg_", "cmp_"));
    server.post(tenant, &path, json!({})).await;
}

#[tokio::test]
async fn a_cursor_does_not_confirm_an_earlier_message_whose_campaign_was_paused() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let device = Device::join(&server, &tenant, json!({})).await;
        let held = send(&server, &tenant, json!({"devices": [device.id]}), "Held").await;
        assert_eq!(totals(&server, &tenant, &held).await, (1, 0), "all of it is accepted");
        change(&server, &tenant, &held, "pause").await;
        let other = send(&server, &tenant, json!({"devices": [device.id]}), "Other").await;
        let polled = device.poll(&server, "wait_seconds=20").await;
        assert_eq!(ids(&polled), std::slice::from_ref(&other));
        let after = format!("wait_seconds=0&after={}", cursor(&polled));
        assert_eq!(ids(&device.poll(&server, &after).await), [""; 0]);
        change(&server, &tenant, &held, "resume").await;
        assert_eq!(ids(&device.poll(&server, "wait_seconds=20").await), std::slice::from_ref(&held));
        assert_eq!(totals(&server, &tenant, &held).await, (1, 0), "it is given, and nobody has confirmed it");
        assert_eq!(totals(&server, &tenant, &other).await, (1, 1));
    }
}

#[tokio::test]
async fn a_cursor_does_not_confirm_an_earlier_message_that_was_due_later() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let late = send_later(&server, &tenant, &device).await;
    let other = send(&server, &tenant, json!({"device": device.id}), "Other").await;
    let polled = device.poll(&server, "wait_seconds=20").await;
    assert_eq!(ids(&polled), std::slice::from_ref(&other));
    assert_eq!(totals(&server, &tenant, &late).await, (1, 0), "it waits for the device now");
    let after = format!("wait_seconds=20&after={}", cursor(&polled));
    assert_eq!(ids(&device.poll(&server, &after).await), std::slice::from_ref(&late));
    assert_eq!(totals(&server, &tenant, &late).await, (1, 0));
}

#[tokio::test]
async fn the_last_event_names_all_that_its_stream_gave_and_nothing_else_also_after_a_restart() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let late = send_later(&server, &tenant, &device).await;
    let mut given = Vec::new();
    for title in ["One", "Two", "Three"] {
        given.push(send(&server, &tenant, json!({"device": device.id}), title).await);
    }
    let mut events = device.events(&server, "").await;
    for message in &given[..2] {
        assert_eq!(&events.next().await.0, message);
    }
    let last = events.last_id.clone();
    drop(events);
    totals(&server, &tenant, &late).await;
    let server = durable_server(server.stop().await).await;
    let request = device.ask(&server, Method::GET, "/gateway/v1/events").header("last-event-id", &last);
    let mut events = Events::of(request).await;
    assert_eq!([events.next().await.0, events.next().await.0], [late.clone(), given[2].clone()]);
    for message in &given[..2] {
        assert_eq!(totals(&server, &tenant, message).await, (1, 1));
    }
    assert_eq!(totals(&server, &tenant, &late).await, (1, 0));
}

#[tokio::test]
async fn the_id_of_a_message_confirms_that_message_alone() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let one = send(&server, &tenant, json!({"device": device.id}), "One").await;
    let two = send(&server, &tenant, json!({"device": device.id}), "Two").await;
    assert_eq!(
        (totals(&server, &tenant, &one).await, totals(&server, &tenant, &two).await),
        ((1, 0), (1, 0))
    );
    let polled = device.poll(&server, &format!("wait_seconds=20&after={two}")).await;
    assert_eq!(ids(&polled), [one]);
    for wrong in ["cur_", "cur_AA!", "msg_1", "x"] {
        let path = format!("/gateway/v1/messages?wait_seconds=0&after={wrong}");
        let read = device.ask(&server, Method::GET, &path).read().await;
        assert!((400..500).contains(&read.status), "{wrong}: {read:?}");
    }
}
