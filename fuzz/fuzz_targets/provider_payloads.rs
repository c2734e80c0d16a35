//! Payloads: any content is either refused by our own check or accepted by the emulator, which shares no code with it.
#![no_main]
use http::Request;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use std::sync::LazyLock;
use stentor_core::device::{Platform, ProviderKind, PushToken};
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Priority, Ttl};
use stentor_core::name::CollapseKey;
use stentor_core::time::Timestamp;
use stentor_core::target::{Target, TokenTarget};
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ApnsConfig, ApnsOptions, FcmConfig, GcmConfig, HmsConfig, ObserverConfig};
use stentor_providers::{apns, fcm, gcm, hms, live_activity};

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const FID: &str = "cJ4vGd1wRk2aB-3_xYz09Q";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

static FCM: LazyLock<InProcessEmulator> = LazyLock::new(|| {
    let mut config = FcmConfig { observer: observer(), ..FcmConfig::default() };
    config.vendor.auth.required = false;
    InProcessEmulator::fcm(config).unwrap()
});
static APNS: LazyLock<InProcessEmulator> = LazyLock::new(|| {
    let config = ApnsConfig { observer: observer(), vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() }, ..ApnsConfig::default() };
    InProcessEmulator::apns(config).unwrap()
});

static HMS: LazyLock<InProcessEmulator> = LazyLock::new(|| {
    let mut config = HmsConfig { observer: observer(), ..HmsConfig::default() };
    config.vendor.auth.required = false;
    InProcessEmulator::hms(config).unwrap()
});
static GCM: LazyLock<InProcessEmulator> =
    LazyLock::new(|| InProcessEmulator::gcm(GcmConfig { observer: observer(), ..GcmConfig::default() }).unwrap());

fn observer() -> ObserverConfig {
    ObserverConfig { path: None, capacity_tokens: 8 }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    content: Content,
    #[serde(default)]
    priority: Priority,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    collapse_key: Option<CollapseKey>,
}

fuzz_target!(|text: &str| {
    let Ok(Asked { content, priority, ttl, collapse_key }) = serde_json::from_str(text) else { return };
    let target = Target::Token(TokenTarget {
        platform: Platform::Android,
        provider: ProviderKind::Fcm,
        token: PushToken::new(TOKEN).unwrap(),
    });
    let spec = MessageSpec { target, content, priority, ttl, collapse_key };
    let message = Message {
        id: MessageId::from_raw(1),
        app: AppId::from_raw(1),
        spec,
        created_at: NOW,
        due_at: NOW,
        occurrence: None,
    };
    if fcm::payload::check(&message.spec).is_ok() {
        let template = fcm::payload::BodyTemplate::new(&message, NOW);
        for address in [TOKEN, FID] {
            let body = template.with_token(address, |parts| parts.concat());
            let request = Request::post("/v1/projects/p/messages:send").body(body.as_ref()).unwrap();
            let answer = FCM.answer(request).unwrap();
            assert!(answer.status().is_success(), "{:?} for {:?}", answer.body(), body);
        }
    }
    if hms::payload::check(&message.spec).is_ok() {
        let body = hms::payload::template(&message, NOW).with_tokens([TOKEN].into_iter(), |parts| parts.concat());
        let answer = HMS.answer(Request::post("/v2/p/messages:send").body(body.as_ref()).unwrap()).unwrap();
        assert!(answer.status().is_success(), "{:?} for {:?}", answer.body(), body);
    }
    if gcm::payload::check(&message.spec).is_ok() {
        let body = gcm::payload::template(&message, NOW).with_tokens([TOKEN].into_iter(), |parts| parts.concat());
        let request = Request::post("/gcm/send").header("authorization", "key=k");
        let request = request.header("content-type", "application/json").body(body.as_ref()).unwrap();
        let answer = GCM.answer(request).unwrap();
        let taken = answer.status().is_success() && !answer.body().windows(7).any(|part| part == b"\"error\"");
        assert!(taken, "{:?} for {:?}", answer.body(), body);
    }
    let alert = apns::payload::check(&message.spec).is_ok();
    let alert = alert.then(|| apns::payload::Push::new(&message, "com.example.app"));
    let activity = live_activity::payload::check(&message.spec).is_ok();
    let activity = activity.then(|| live_activity::payload::to_tokens(&message, "com.example.app"));
    for push in [alert, activity].into_iter().flatten() {
        let mut request = Request::post(format!("/3/device/{TOKEN}")).body(push.body.as_ref()).unwrap();
        request.headers_mut().extend(push.headers.iter().cloned());
        let answer = APNS.answer(request).unwrap();
        let (head, body) = (&push.headers, &push.body);
        assert!(answer.status().is_success(), "{:?} for {head:?} {body:?}", answer.body());
    }
});
