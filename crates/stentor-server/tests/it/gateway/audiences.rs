//! Audiences of gateway devices, replacement of messages, their TTL, and the rate of deliveries.

use std::collections::BTreeSet;
use std::time::Instant;

use super::*;

async fn device(server: &Server, tenant: &Tenant, topics: &[&str]) -> Device {
    Device::join(server, tenant, json!({"topics": topics})).await
}

/// Lists the messages that wait for a device, which must have some.
async fn waiting(server: &Server, device: &Device) -> BTreeSet<String> {
    let polled = device.poll(server, "wait_seconds=20").await;
    let messages = polled["messages"].as_array().expect("a list").iter();
    messages.map(|message| message["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn a_condition_over_topics_reaches_exactly_whom_it_fits_connected_or_not() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let mut devices = Vec::new();
        for topics in [&["a", "b"][..], &["a"], &["b"], &[], &["a", "b"]] {
            devices.push((device(&server, &tenant, topics).await, BTreeSet::new()));
        }
        let mut events = devices[4].0.events(&server, "").await;
        for (condition, meant) in [
            ("'a' in topics && 'b' in topics", [true, false, false, false, true]),
            ("'a' in topics || 'b' in topics", [true, true, true, false, true]),
            ("'a' in topics && !('b' in topics)", [false, true, false, false, false]),
            ("!('a' in topics)", [false, false, true, true, false]),
        ] {
            let message = send(&server, &tenant, json!({"condition": condition}), "Hi").await;
            let count = meant.iter().filter(|is_meant| **is_meant).count() as u64;
            assert_eq!(totals(&server, &tenant, &message).await, (count, 0), "{condition}");
            for ((_, waits), _) in devices.iter_mut().zip(meant).filter(|(_, is_meant)| *is_meant) {
                waits.insert(message.clone());
            }
        }
        let (connected, mut given) = devices.pop().expect("five");
        for (device, waits) in devices {
            assert_eq!(waiting(&server, &device).await, waits);
        }
        given.insert(send(&server, &tenant, json!({"device": connected.id}), "Last").await);
        let mut got = BTreeSet::new();
        for _ in 0..given.len() {
            got.insert(events.next().await.0);
        }
        assert_eq!(got, given);
    }
}

#[tokio::test]
async fn a_quota_of_the_gateways_credential_holds() {
    let server = server_with(|config| {
        config.pipeline.quota_ramp_ms = 0;
        config.pipeline.chunk_max_devices = 5;
    })
    .await;
    let tenant = server.tenant().await;
    let credentials = format!("/v1/apps/{}/credentials", tenant.id);
    let put = server.send(&tenant, Method::PUT, &format!("{credentials}/gateway"));
    assert_eq!(put.json(&json!({"quota": 600})).read().await.status, 204);
    let device =
        |number: usize| json!({"platform": "linux", "provider": "gateway", "token": format!("t-{number}")});
    let devices: Vec<Value> = (0..30).map(device).collect();
    server.post(&tenant, "/v1/devices/bulk", json!({"devices": devices})).await;
    let began = Instant::now();
    let message = send(&server, &tenant, json!("everyone"), "Hi").await;
    assert_eq!(totals(&server, &tenant, &message).await, (30, 0));
    // Ten a second, with a burst of a second's worth; the last chunk may overdraw the remainder.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1_000), "{took:?}");
    let listed = server.get(&tenant, &credentials).await;
    assert_eq!(listed["credentials"][0]["summary"]["quota_per_minute"], 600, "{listed}");
}

#[tokio::test]
async fn of_messages_with_one_collapse_key_a_device_that_was_away_gets_the_newest_as_it_was_sent() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let away = device(&server, &tenant, &[]).await;
        let score = async |title: &str, priority: &str| {
            let body = json!({"target": {"device": away.id}, "notification": {"title": title},
                "collapse_key": "score", "ttl_seconds": 600, "priority": priority});
            let sent = server.post(&tenant, "/v1/messages", body).await;
            let id = sent["id"].as_str().expect("an id").to_owned();
            assert_eq!(totals(&server, &tenant, &id).await, (1, 0));
            id
        };
        let before = score("1:0", "high").await;
        let newest = score("2:0", "normal").await;
        let other = send(&server, &tenant, json!({"device": away.id}), "Over").await;
        assert_eq!(totals(&server, &tenant, &other).await, (1, 0));
        let polled = away.poll(&server, "wait_seconds=20").await;
        let first = &polled["messages"][0];
        assert_eq!((&first["id"], &first["notification"]["title"]), (&json!(newest), &json!("2:0")));
        let left = first["ttl_seconds"].as_u64().expect("seconds");
        assert!(first["priority"] == "normal" && (500..=600).contains(&left), "{first}");
        assert_eq!(waiting(&server, &away).await, BTreeSet::from([newest, other]));
        let history = server.get(&tenant, &format!("/v1/devices/{}/deliveries", away.id)).await;
        assert!(history.to_string().contains(&before), "it was accepted, and is in the history: {history}");
    }
}

#[tokio::test]
async fn what_is_for_now_or_never_reaches_the_connected_and_waits_for_nobody() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let (connected, away) = (device(&server, &tenant, &[]).await, device(&server, &tenant, &[]).await);
        let mut events = connected.events(&server, "").await;
        // The stream knows all waiting messages once it has given one.
        let first = send(&server, &tenant, json!({"device": connected.id}), "First").await;
        assert_eq!(events.next().await.0, first);
        let body = json!({"target": "everyone", "notification": {"title": "Now"}, "ttl_seconds": 0});
        let sent = server.post(&tenant, "/v1/messages", body).await;
        let now = sent["id"].as_str().expect("an id").to_owned();
        assert_eq!(events.next().await.0, now);
        assert_eq!(totals(&server, &tenant, &now).await, (2, 0));
        let after = send(&server, &tenant, json!({"device": away.id}), "After").await;
        assert_eq!(waiting(&server, &away).await, BTreeSet::from([after]));
    }
}
