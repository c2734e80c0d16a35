//! A device registry that changes while a campaign expands it, all of it or a topic.

use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::Policy;
use stentor_emulators::policy::AnswerLatency;
use stentor_server::config::Engine;

use super::rig::{Scene, fcm_token};
use crate::harness::{Reading, server_on};

const DEVICES: usize = 4_000;
const TOPIC: &str = "news";

/// Returns the ids of all devices, in the order of their registration.
async fn ids(scene: &Scene) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = scene.server.get(&scene.tenant, &format!("/v1/devices?limit=1000{after}")).await;
        let devices = page["devices"].as_array().expect("a list").iter();
        ids.extend(devices.map(|device| device["id"].as_str().expect("an id").to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return ids,
        }
    }
}

/// Registrations; every device has the topic.
fn lines(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = Value> {
    numbers.map(|number| json!({"platform": "android", "token": fcm_token(number), "topics": [TOPIC]}))
}

async fn remove(scene: &Scene, id: &str) {
    let gone = scene.server.send(&scene.tenant, Method::DELETE, &format!("/v1/devices/{id}")).read().await;
    assert_eq!(gone.status, 204, "{gone:?}");
}

/// Removes devices from the topic, and subscribes some of them again.
async fn leave(scene: &Scene, ids: &[&String]) {
    let path = format!("/v1/topics/{TOPIC}/subscriptions");
    let some = &ids[..ids.len() / 2];
    for (path, devices) in [(format!("{path}/remove"), ids), (path, some)] {
        let request =
            scene.server.send(&scene.tenant, Method::POST, &path).json(&json!({"devices": devices}));
        let changed = request.read().await;
        assert_eq!((changed.status, &changed.body["changed"]), (200, &json!(devices.len())), "{changed:?}");
    }
}

/// Registers new devices, registers old ones again, removes some or unsubscribes them from the topic, and removes some to register their
/// tokens again, until the audience is complete; returns the number of rounds.
async fn mutate(scene: &Scene, campaign: &str, ids: &[String], by_topic: bool) -> usize {
    for round in 0.. {
        let ledger = scene.server.get(&scene.tenant, &format!("/v1/campaigns/{campaign}")).await;
        assert_eq!(ledger["balanced"], json!(true), "{ledger}");
        if ledger["audience_complete"] == json!(true) || 20 * (round + 1) > DEVICES / 4 {
            return round;
        }
        // From the end backwards, which the campaign has not reached yet.
        let some = |part: usize| (0..20).map(move |place| DEVICES - 1 - part - 4 * (20 * round + place));
        if by_topic {
            leave(scene, &some(0).map(|number| &ids[number]).collect::<Vec<_>>()).await;
        }
        for number in some(0).filter(|_| !by_topic).chain(some(1)) {
            remove(scene, &ids[number]).await;
        }
        let fresh = DEVICES + 100 * round..DEVICES + 100 * (round + 1);
        scene.import(lines(some(1).chain(some(2)).chain(fresh))).await;
    }
    unreachable!("rounds do not end by themselves")
}

async fn a_campaign_walks_through_a_changing_registry(engine: Engine, target: Value) {
    let server = server_on(engine, |config| {
        config.pipeline.chunk_max_devices = 50;
        config.pipeline.expand_max_chunks = 1;
        // Two chunks ahead of the two that are sent, so that it lasts.
        config.pipeline.producer_max_queued_deliveries = 100;
        config.pipeline.max_unsettled_deliveries = 100;
    });
    let latency = Some(AnswerLatency::Fixed { ms: 50.0 });
    let scene = Scene::fcm(server.await, Policy { latency, ..Policy::default() }).await;
    scene.import(lines(0..DEVICES)).await;
    let ids = ids(&scene).await;
    let by_topic = target.get("topic").is_some();
    let campaign = scene.send(target).await;
    let rounds = mutate(&scene, &campaign, &ids, by_topic).await;
    assert!(rounds >= 2, "the audience was complete after {rounds} rounds");
    let ledger = scene.ended(&campaign).await;
    let audience = ledger["audience"].as_u64().expect("a number");
    assert!(audience <= DEVICES as u64 && audience >= (DEVICES - 40 * rounds) as u64, "{ledger}");
    assert_eq!((&ledger["state"], &ledger["balanced"]), (&json!("finished"), &json!(true)), "{ledger}");
    let attempts_of = |number: usize| scene.fcm.counts(&fcm_token(number)).attempts;
    let most = (0..DEVICES + 100 * rounds).map(attempts_of).max();
    assert_eq!(most, Some(1), "each device at most once");
    let late: u32 = (DEVICES..DEVICES + 100 * rounds).map(attempts_of).sum();
    assert_eq!(late, 0, "who came later is not meant");
    let stayed = |number: &usize| matches!((DEVICES - 1 - number) % 4, 2 | 3);
    assert!((0..DEVICES).filter(stayed).all(|number| attempts_of(number) == 1), "who stayed is reached");
    assert_eq!(ledger["totals"]["accepted"].as_u64(), Some(scene.attempts()), "{ledger}");
}

#[tokio::test]
async fn r12_a_registry_that_changes_meanwhile_changes_nothing_for_who_stays_in_memory() {
    a_campaign_walks_through_a_changing_registry(Engine::Memory, json!("everyone")).await;
}

#[tokio::test]
async fn r12_a_registry_that_changes_meanwhile_changes_nothing_for_who_stays_on_disk() {
    a_campaign_walks_through_a_changing_registry(Engine::Sqlite, json!("everyone")).await;
}

#[tokio::test]
async fn r12_a_topic_that_changes_meanwhile_changes_nothing_for_who_stays_in_memory() {
    a_campaign_walks_through_a_changing_registry(Engine::Memory, json!({"topic": TOPIC})).await;
}

#[tokio::test]
async fn r12_a_topic_that_changes_meanwhile_changes_nothing_for_who_stays_on_disk() {
    a_campaign_walks_through_a_changing_registry(Engine::Sqlite, json!({"topic": TOPIC})).await;
}
