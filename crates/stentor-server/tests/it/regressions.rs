//! Failures of other push servers, tried on this one with the emulators, over real TLS. The numbers refer to the invariants in
//! docs/invariants.md.

mod few;
mod mutation;
mod outbound;
mod rig;
mod rotation;
mod senders;
mod switch;
mod way;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::Policy;
use stentor_emulators::policy::{AnswerLatency, Script, ScriptedAnswer, ServiceError};

use crate::harness::{Reading, server, server_with};
use rig::{Scene, apns_token, fcm_token};

/// Bandwidth for the quota of these tests, 400 pushes a second of about 200 bytes, with a small margin.
const NARROW_BYTES_PER_SECOND: u64 = 100_000;

/// A policy that answers every token alike.
fn always(refusal: ServiceError) -> Policy {
    let everybody =
        Script { prefix: Some(String::new()), then: ScriptedAnswer::Error(refusal), ..Script::default() };
    Policy { scripts: vec![everybody], ..Policy::default() }
}

/// Returns how many deliveries at one provider ended for a reason.
fn count_of(ledger: &Value, provider: &str, reason: &str) -> u64 {
    let books = ledger["providers"].as_array().expect("a list").iter();
    let books = books.filter(|books| books["provider"] == provider);
    let reasons = books.flat_map(|books| books["reasons"].as_array().expect("a list"));
    reasons.filter(|one| one["reason"] == reason).map(|one| one["count"].as_u64().expect("a count")).sum()
}

#[tokio::test]
async fn r6_a_push_service_that_asks_to_wait_gets_one_probe_a_window_and_then_everything() {
    let window = Duration::from_secs(1);
    let scene =
        Scene::fcm(server().await, always(ServiceError::new("QUOTA_EXCEEDED").retry_after_s(1))).await;
    scene.import_fcm(500).await;
    let first = scene.send(json!("everyone")).await;
    scene.until_parked().await;
    let together = scene.attempts();
    let began = Instant::now();
    let second = scene.send(json!("everyone")).await;
    scene.until_attempts(together + 3).await;
    let (elapsed, attempts) = (began.elapsed(), scene.attempts());
    // The first window began with the first refusal, somewhat before the test saw the lane parked.
    assert!(elapsed >= 2 * window, "3 probes in {elapsed:?}");
    assert_eq!(attempts, together + 3, "{together} together, then one at a time, whatever else is sent");
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    for campaign in [first, second] {
        let ledger = scene.ended(&campaign).await;
        assert_eq!(ledger["totals"]["accepted"], 500, "{ledger}");
        assert_eq!(ledger["totals"]["failed"], 0, "{ledger}");
    }
    let tokens = scene.fcm.sums().tokens;
    assert_eq!(tokens.accepted, 1_000);
    assert!(tokens.attempts <= 1_500 + 5, "{tokens:?}");
}

#[tokio::test]
async fn r6_what_is_handed_over_and_not_yet_sent_stays_here_when_a_push_service_asks_to_wait() {
    let policy = Policy {
        latency: Some(AnswerLatency::Fixed { ms: 300.0 }),
        ..always(ServiceError::new("QUOTA_EXCEEDED").retry_after_s(1))
    };
    let scene = Scene::fcm(server().await, policy).await;
    scene.import_fcm(20_000).await;
    let campaign = scene.send(json!("everyone")).await;
    scene.until_attempts(1).await;
    scene.until_parked().await;
    // As many as slow start allows, because no request was answered before the first refusal.
    let most = stentor_providers::Limits::default().slow_start_inflight_requests as u64;
    assert!(scene.attempts() <= most + 2, "{} of 20000, {most} were in flight", scene.attempts());
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    let ledger = scene.ended(&campaign).await;
    assert_eq!(ledger["totals"]["accepted"], 20_000, "{ledger}");
    assert!(scene.fcm.sums().tokens.attempts <= 20_000 + most + 4, "{:?}", scene.fcm.sums().tokens);
}

#[tokio::test]
async fn r7_dead_tokens_are_asked_once_and_retired_though_retries_are_on() {
    let scene = Scene::fcm(server().await, always(ServiceError::new("UNREGISTERED"))).await;
    scene.import_fcm(500).await;
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!(count_of(&ledger, "fcm", "unregistered"), 500, "{ledger}");
    assert_eq!(scene.attempts(), 500);
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!((ledger["totals"]["accepted"].as_u64(), scene.attempts()), (Some(0), 500), "{ledger}");
}

#[tokio::test]
async fn r8_a_payload_that_is_refused_keeps_the_tokens_and_stops_that_provider_early() {
    let server = server_with(|config| config.pipeline.chunk_max_devices = 100).await;
    let scene = Scene::fcm(server, always(ServiceError::new("INVALID_ARGUMENT"))).await;
    scene.import_fcm(5_000).await;
    scene.server.device(&scene.tenant, "at-the-other-provider").await;
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    let attempts = scene.attempts();
    assert!((10..=1_500).contains(&attempts), "{attempts} of 5000 were asked");
    let at_fcm = ledger["providers"].as_array().expect("a list").iter().find(|one| one["provider"] == "fcm");
    let stop = at_fcm.expect("books")["stop"].to_string();
    assert!(stop.contains("payload_refused") && stop.contains("correct the content"), "{stop}");
    assert_eq!(ledger["totals"]["accepted"], 1, "the other provider goes on: {ledger}");
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!(ledger["totals"]["accepted"], 5_001, "every token was kept: {ledger}");
}

#[tokio::test]
async fn r9_a_token_called_dead_before_it_was_registered_again_is_kept() {
    let scene = Scene::apns(server().await).await;
    scene.import_apns(2).await;
    let since = |token: usize, timestamp_ms: u64| {
        let refusal = ServiceError { timestamp_ms: Some(timestamp_ms), ..ServiceError::new("Unregistered") };
        Script { token: Some(apns_token(token)), then: ScriptedAnswer::Error(refusal), ..Script::default() }
    };
    let now = rig::now_ms();
    let (older, newer) = (since(0, now - 3_600_000), since(1, now + 3_600_000));
    scene.apns.set_policy(Policy { scripts: vec![older, newer], ..Policy::default() }).expect("a policy");
    scene.ended(&scene.send(json!("everyone")).await).await;
    scene.apns.set_policy(Policy::default()).expect("a policy");
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!(ledger["totals"]["accepted"], 1, "{ledger}");
    let accepted = [0, 1].map(|number| scene.apns.counts(&apns_token(number)).accepted);
    assert_eq!(accepted, [1, 0], "the one that registered later than it died is kept");
}

/// Installation ids in the form that Firebase's SDKs give them.
const FIDS: [&str; 2] = ["cJ4vGd1wRk2aB-3_xYz09Q", "dQ90zYx_3-Ba2kRw1dGv4J"];

#[tokio::test]
async fn a_young_installation_id_that_fcm_does_not_know_yet_keeps_its_device() {
    let scene = Scene::fcm(server().await, always(ServiceError::new("UNREGISTERED"))).await;
    scene
        .import(
            [FIDS[0], &fcm_token(0)].map(|token| json!({"platform": "android", "token": token})).into_iter(),
        )
        .await;
    // Too short to wait for another answer.
    let brief = json!({"target": "everyone", "notification": {"title": "Hi"}, "ttl_seconds": 60});
    let sent = scene.server.send(&scene.tenant, Method::POST, "/v1/messages").json(&brief).read().await;
    let ledger = scene.ended(&sent.text("campaign")).await;
    assert_eq!(count_of(&ledger, "fcm", "unregistered"), 2, "{ledger}");
    scene.fcm.set_policy(Policy::default()).expect("a policy");
    let ledger = scene.ended(&scene.send(json!("everyone")).await).await;
    assert_eq!(ledger["totals"]["accepted"], 1, "{ledger}");
    assert_eq!((scene.fcm.counts(FIDS[0]).accepted, scene.fcm.counts(&fcm_token(0)).accepted), (1, 0));
}

#[tokio::test]
async fn the_first_answer_that_an_installation_id_is_unknown_ends_no_delivery() {
    let scene = Scene::fcm(server().await, always(ServiceError::new("UNREGISTERED"))).await;
    scene.import(FIDS.map(|token| json!({"platform": "android", "token": token})).into_iter()).await;
    let campaign = scene.send(json!("everyone")).await;
    scene.until_attempts(2).await;
    let ledger = scene.rested(&campaign).await;
    assert_eq!(
        (&ledger["totals"]["queued"], &ledger["totals"]["rejected"]),
        (&json!(2), &json!(0)),
        "{ledger}"
    );
    assert!(!scene.is_parked().await, "the answers concern these devices alone");
}

#[tokio::test]
async fn r10_a_full_queue_refuses_with_a_reason_and_a_time_and_goes_on_when_it_empties() {
    const ROOM: u64 = 50;
    const ASKED: usize = 2_000;
    let server = server_with(|config| config.pipeline.max_queued_chunks = ROOM).await;
    let scene = Scene::fcm(server, Policy::default()).await;
    scene.fcm.inject(stentor_emulators::faults::InjectedFault::Stall { on: true });
    scene.import_fcm(1).await;
    let one = json!({"token": {"platform": "android", "token": fcm_token(0)}});
    let mut refused = 0;
    for _ in 0..ASKED / 50 {
        let answers = join_all((0..50).map(|_| scene.try_send(one.clone()))).await;
        for answer in answers {
            if answer.status == 202 {
                continue;
            }
            assert_eq!(answer.refusal(), (503, "queue_full".to_owned(), None));
            assert_eq!(answer.headers["retry-after"], "5");
            refused += 1;
        }
    }
    let accepted = ASKED as u64 - refused;
    assert!(
        (ROOM..=2 * ROOM).contains(&accepted),
        "{accepted} kept with room for {ROOM}, one round asks for 50"
    );
    let ready = scene.server.open(Method::GET, "/readyz").read().await;
    assert_eq!(ready.status, 200, "{ready:?}");
    let metrics = scene.server.root(Method::GET, "/metrics").read().await.body.to_string();
    assert!(metrics.contains(&format!("stentor_messages_refused_total {refused}")), "{metrics}");
    assert!(metrics.contains("stentor_queue_oldest_age_seconds") && metrics.contains("stentor_queue_depth"));
    scene.fcm.inject(stentor_emulators::faults::InjectedFault::Stall { on: false });
    scene.until(|| u64::from(scene.fcm.counts(&fcm_token(0)).accepted) >= accepted).await;
    let mut again = scene.try_send(one.clone()).await;
    while again.status == 503 {
        again = scene.try_send(one.clone()).await;
    }
    assert_eq!(again.status, 202, "{again:?}");
}

/// Time until the emulator had decided on the last device, which it does when a request arrives. Measured from an instant
/// certainly before the first request, and from one after it, so that a busy machine cannot look like a broken quota.
struct Paced {
    since_asked: Duration,
    since_first: Duration,
}

/// Devices of the audience, and of a chunk, which is the initial burst.
const PACED_DEVICES: usize = 2_000;
const PACED_CHUNK_DEVICES: usize = 400;
/// A rate that a debug build keeps while other tests run beside it.
const PACED_PER_SECOND: usize = 400;

/// Sends to all devices at the quota behind a latency, and behind limited bandwidth if one is given.
async fn paced(latency_ms: u64, bytes_per_second: Option<u64>) -> Paced {
    let server = server_with(|config| {
        config.pipeline.quota_ramp_ms = 0;
        config.pipeline.chunk_max_devices = PACED_CHUNK_DEVICES;
    })
    .await;
    let latency = AnswerLatency::Fixed { ms: latency_ms as f64 };
    let scene = Scene::fcm(server, Policy { latency: Some(latency), ..Policy::default() }).await;
    let address = match bytes_per_second {
        Some(width) => way::narrow_way(scene.fcm.addr(), width).await,
        None => scene.fcm.addr(),
    };
    scene.put_fcm_at(address, json!(PACED_PER_SECOND * 60)).await;
    scene.import_fcm(PACED_DEVICES).await;
    let started_at = Instant::now();
    let campaign = scene.send(json!("everyone")).await;
    scene.until_attempts(1).await;
    let first = Instant::now();
    scene.until(|| scene.fcm.sums().tokens.accepted >= PACED_DEVICES as u64).await;
    let paced = Paced { since_asked: started_at.elapsed(), since_first: first.elapsed() };
    let ledger = scene.ended(&campaign).await;
    assert_eq!(ledger["totals"]["accepted"], PACED_DEVICES, "{ledger}");
    paced
}

/// Checks that the quota was used and never exceeded. Other processes may take the processors once or twice, but not three times.
async fn keeps_pace(latency_ms: u64, bytes_per_second: Option<u64>) {
    let all_ms = (1_000 * PACED_DEVICES / PACED_PER_SECOND) as u64;
    let at_nine_tenths = Duration::from_millis(all_ms * 10 / 9);
    // The quota paces all devices but the initial burst.
    let burst_ms = (1_000 * PACED_CHUNK_DEVICES / PACED_PER_SECOND) as u64;
    let at_all = Duration::from_millis(all_ms - burst_ms - 100);
    let mut tries_ms = Vec::new();
    while tries_ms.len() < 3 {
        let Paced { since_asked, since_first } = paced(latency_ms, bytes_per_second).await;
        assert!(since_asked >= at_all, "{latency_ms} ms: {since_asked:?} is faster than the quota");
        if since_first <= at_nine_tenths {
            return;
        }
        tries_ms.push(since_first.as_millis());
    }
    panic!("{latency_ms} ms of latency: slower than nine tenths of the quota each time: {tries_ms:?} ms");
}

#[tokio::test]
async fn r11_a_slow_push_service_gets_nine_tenths_of_its_quota_and_not_more_than_all() {
    // Sequentially: together they would need four times the quota from this machine.
    for latency_ms in [0, 50, 200, 1_000] {
        keeps_pace(latency_ms, None).await;
    }
}

#[tokio::test]
async fn r11_a_narrow_way_to_a_push_service_is_no_reason_for_less_than_its_quota() {
    for latency_ms in [0, 200] {
        keeps_pace(latency_ms, Some(NARROW_BYTES_PER_SECOND)).await;
    }
}

#[tokio::test]
async fn a_quota_is_what_the_credential_says_and_is_shown_with_what_is_left_of_it() {
    let scene = Scene::fcm(server().await, Policy::default()).await;
    let shown = |list: &Value| list["credentials"].as_array().expect("a list")[0].clone();
    let path = format!("/v1/apps/{}/credentials", scene.tenant.id);
    scene.put_fcm(Value::Null).await;
    let before = shown(&scene.server.get(&scene.tenant, &path).await);
    assert_eq!(before["summary"]["quota_per_minute"], 600_000);
    scene.put_fcm(json!(6_000)).await;
    scene.import_fcm(5).await;
    scene.ended(&scene.send(json!("everyone")).await).await;
    let after = shown(&scene.server.get(&scene.tenant, &path).await);
    assert_eq!(after["summary"]["quota_per_minute"], 6_000);
    let now = after["quota"]["per_minute_now"].as_u64().expect("a number");
    assert!((600..6_000).contains(&now), "cold: {after}");
    let metrics = scene.server.root(Method::GET, "/metrics").read().await.body.to_string();
    assert!(metrics.contains("stentor_provider_quota_per_minute{provider=\\\"fcm\\\"} 6000"), "{metrics}");
    assert!(metrics.contains("stentor_provider_throttled_seconds_total"), "{metrics}");
    scene.put_fcm(json!("none")).await;
    let lifted = shown(&scene.server.get(&scene.tenant, &path).await);
    assert_eq!(lifted["summary"]["quota_per_minute"], Value::Null);
}
