//! Bad answers to a few deliveries delay only those deliveries; only a push service with mostly bad answers is parked.

use serde_json::json;
use stentor_emulators::Policy;
use stentor_emulators::policy::{Script, ScriptStep, ScriptedAnswer, ServiceError};

use super::rig::{Scene, apns_token, fcm_token};
use crate::harness::{server, server_with};

const DEVICES: usize = 2_000;
/// Of 2,000 tokens about 100: more than enough failures in a row, once they are repeated together.
const FIVE_PERCENT: u32 = 50_000;

/// A policy under which a share of the tokens gets an error: a number of times, or always.
fn some(answer: ServiceError, times: Option<u32>) -> (Policy, Script) {
    let answer = ScriptedAnswer::Error(answer);
    let whole = Script {
        prefix: Some("fcm-token:".to_owned()),
        tokens_per_million: Some(FIVE_PERCENT),
        ..Script::default()
    };
    let script = match times {
        Some(times) => Script { answers: vec![ScriptStep { answer, times }], ..whole },
        None => Script { then: answer, ..whole },
    };
    (Policy { scripts: vec![script.clone()], ..Policy::default() }, script)
}

fn tokens_of(script: &Script) -> (Vec<String>, Vec<String>) {
    (0..DEVICES).map(fcm_token).partition(|token| script.is_about(token))
}

#[tokio::test]
async fn r21_a_rate_of_single_devices_delays_those_devices_and_parks_nobody() {
    let (policy, script) = some(ServiceError::new("QUOTA_EXCEEDED").retry_after_s(1), Some(1));
    let scene = Scene::fcm(server().await, policy).await;
    scene.import_fcm(DEVICES).await;
    let (troubled, healthy) = tokens_of(&script);
    let campaign = scene.send(json!("everyone")).await;
    while healthy.iter().any(|token| scene.fcm.counts(token).accepted == 0) {
        assert!(!scene.is_parked().await, "after {} requests", scene.attempts());
    }
    let ledger = scene.ended(&campaign).await;
    assert_eq!(ledger["totals"]["accepted"], DEVICES, "{ledger}");
    assert_eq!(scene.attempts(), (DEVICES + troubled.len()) as u64, "each of {} twice", troubled.len());
}

#[tokio::test]
async fn r21_devices_that_always_fail_hold_back_neither_single_messages_nor_new_campaigns() {
    let (policy, script) = some(ServiceError::new("INTERNAL"), None);
    let scene = Scene::fcm(server().await, policy).await;
    scene.import_fcm(DEVICES).await;
    let (troubled, healthy) = tokens_of(&script);
    scene.send(json!("everyone")).await;
    // Two rounds of retries: as many failures in a row, and no success between them.
    scene.until_attempts((DEVICES + 2 * troubled.len()) as u64).await;
    for token in &healthy[..20] {
        let single = scene.send(json!({"token": {"platform": "android", "token": token}})).await;
        assert_eq!(scene.ended(&single).await["totals"]["accepted"], 1);
        assert!(!scene.is_parked().await, "after a single message to a healthy device");
    }
    scene.send(json!("everyone")).await;
    let twice = |token: &String| scene.fcm.counts(token).accepted >= 2;
    scene.until(|| healthy.iter().all(twice)).await;
    assert!(!scene.is_parked().await, "after a second campaign");
}

#[tokio::test]
async fn tokens_of_another_sender_park_the_credential_and_end_no_delivery() {
    let scene = Scene::fcm(server().await, super::always(ServiceError::new("SENDER_ID_MISMATCH"))).await;
    scene.import_fcm(DEVICES).await;
    let campaign = scene.send(json!("everyone")).await;
    scene.until_parked().await;
    let ledger = scene.rested(&campaign).await;
    assert_eq!(
        (&ledger["totals"]["rejected"], &ledger["totals"]["failed"]),
        (&json!(0), &json!(0)),
        "{ledger}"
    );
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    scene.put_fcm(json!("none")).await;
    let ledger = scene.ended(&campaign).await;
    assert_eq!(ledger["totals"]["accepted"], DEVICES, "no token was retired: {ledger}");
}

#[tokio::test]
async fn devices_of_the_other_apns_environment_park_the_credential_and_are_kept() {
    let scene = Scene::apns(server().await).await;
    scene.import_apns(DEVICES).await;
    scene.apns.set_policy(super::always(ServiceError::new("BadDeviceToken"))).expect("a policy");
    let campaign = scene.send(json!("everyone")).await;
    scene.until_parked().await;
    assert_eq!(scene.rested(&campaign).await["totals"]["rejected"], 0);
    scene.apns.set_policy(Policy::default()).expect("a policy");
    scene.put_apns().await;
    let ledger = scene.ended(&campaign).await;
    assert_eq!(ledger["totals"]["accepted"], DEVICES, "no token was retired: {ledger}");
    assert_eq!(scene.apns.counts(&apns_token(DEVICES - 1)).accepted, 1);
}

/// Lets a good credential meet only devices of another sender; checks the campaign before and its books when parked, and restores the
/// policy.
async fn good_then_foreign(scene: &Scene, mismatch: Policy, set: impl Fn(Policy), devices: usize) {
    let before = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!(before["totals"]["accepted"], devices, "the credential is good: {before}");
    set(mismatch);
    let campaign = scene.send(json!("everyone")).await;
    scene.until_parked().await;
    let books = scene.rested(&campaign).await;
    assert_eq!((&books["totals"]["rejected"], &books["totals"]["failed"]), (&json!(0), &json!(0)), "{books}");
    set(Policy::default());
}

fn chunks_of(devices: usize) -> impl FnOnce(&mut stentor_server::config::Config) {
    move |config| {
        config.pipeline.chunk_max_devices = devices;
        config.pipeline.credential_probe_ms = 300;
    }
}

#[tokio::test]
async fn a_fcm_credential_that_was_good_and_meets_only_foreign_devices_rests_until_it_is_put_anew() {
    for (devices, chunk) in [(10, 1_000), (10, 4), (1_005, 100)] {
        let server = server_with(chunks_of(chunk)).await;
        let scene = Scene::fcm(server, Policy::default()).await;
        scene.import_fcm(devices).await;
        let set = |policy| scene.fcm.set_policy(policy).expect("a policy");
        good_then_foreign(&scene, super::always(ServiceError::new("SENDER_ID_MISMATCH")), set, devices).await;
        scene.put_fcm(json!("none")).await;
        let after = scene.ended(&scene.send(json!("everyone")).await).await;
        assert_eq!(after["totals"]["accepted"], devices, "no token was retired: {after}");
    }
}

#[tokio::test]
async fn an_apns_credential_that_was_good_and_meets_only_foreign_devices_rests_until_a_probe_gets_through() {
    for (refusal, chunk) in [("DeviceTokenNotForTopic", 1_000), ("BadDeviceToken", 100)] {
        let scene = Scene::apns(server_with(chunks_of(chunk)).await).await;
        scene.import_apns(1_005).await;
        let set = |policy| scene.apns.set_policy(policy).expect("a policy");
        good_then_foreign(&scene, super::always(ServiceError::new(refusal)), set, 1_005).await;
        let after = scene.ended(&scene.send(json!("everyone")).await).await;
        assert_eq!(after["totals"]["accepted"], 1_005, "no token was retired, nothing was put: {after}");
    }
}
