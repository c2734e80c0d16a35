//! Keys of credentials that change while a campaign runs.

use stentor_emulators::Policy;
use stentor_emulators::policy::AnswerLatency;

use super::*;

const DEVICES: usize = 4_000;

/// Changes the key a few times, each time after some more requests have reached the push service; returns the books.
async fn rotated(scene: &Scene, attempts: impl Fn() -> u64, change: impl AsyncFn()) -> Value {
    let campaign = scene.send(json!("everyone")).await;
    for round in 1..=4 {
        scene.until(|| attempts() >= round * DEVICES as u64 / 10).await;
        change().await;
    }
    assert!(attempts() < DEVICES as u64, "the campaign was over before the last key came");
    scene.ended(&campaign).await
}

fn all_accepted(ledger: &Value) {
    assert_eq!(ledger["totals"]["accepted"], DEVICES, "{ledger}");
    assert_eq!(ledger["state"], "finished", "{ledger}");
}

#[tokio::test]
async fn r18_an_fcm_key_changes_while_a_campaign_runs_and_every_device_gets_it_once() {
    let slow = Policy { latency: Some(AnswerLatency::Fixed { ms: 20.0 }), ..Policy::default() };
    let server = server_with(|config| {
        config.pipeline.quota_ramp_ms = 0;
        config.pipeline.chunk_max_devices = 100;
    })
    .await;
    let scene = Scene::fcm(server, slow).await;
    scene.put_fcm(json!(60_000)).await;
    scene.import_fcm(DEVICES).await;
    let ledger = rotated(&scene, || scene.attempts(), async || scene.renew_fcm(json!(60_000)).await).await;
    all_accepted(&ledger);
    assert_eq!(scene.fcm.sums().tokens.attempts, DEVICES as u64, "nobody was asked twice");
}

#[tokio::test]
async fn r18_an_apns_key_changes_while_a_campaign_runs_and_every_device_gets_it_once() {
    let server = server_with(|config| {
        config.pipeline.quota_ramp_ms = 0;
        config.pipeline.chunk_max_devices = 100;
    })
    .await;
    let scene = Scene::apns(server).await;
    let slow = Policy { latency: Some(AnswerLatency::Fixed { ms: 20.0 }), ..Policy::default() };
    scene.apns.set_policy(slow).expect("a policy");
    scene.put_apns_with(json!(60_000)).await;
    scene.import_apns(DEVICES).await;
    let attempts = || scene.apns.sums().tokens.attempts;
    let ledger = rotated(&scene, attempts, async || scene.put_apns_with(json!(60_000)).await).await;
    all_accepted(&ledger);
    assert_eq!(attempts(), DEVICES as u64, "nobody was asked twice");
}
