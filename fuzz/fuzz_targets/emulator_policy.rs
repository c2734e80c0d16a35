//! Policies: any text is refused, or can be applied, written again and followed.
#![no_main]
use http::Request;
use libfuzzer_sys::fuzz_target;
use stentor_emulators::faults::InjectedFault;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ApnsConfig, ApnsOptions, FcmConfig, ObserverConfig, Policy};

const TOKENS: [&str; 2] = [
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100",
];

fn observer() -> ObserverConfig {
    ObserverConfig { path: None, capacity_tokens: 8 }
}

fuzz_target!(|text: &str| {
    let _ = serde_json::from_str::<InjectedFault>(text);
    let Ok(policy) = serde_json::from_str::<Policy>(text) else { return };
    let written = serde_json::to_string(&policy).unwrap();
    let again: Policy = serde_json::from_str(&written).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
    let config = ApnsConfig {
        policy: policy.clone(),
        observer: observer(),
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    };
    if let Ok(front) = InProcessEmulator::apns(config) {
        for token in TOKENS.iter().cycle().take(6) {
            let request = Request::post(format!("/3/device/{token}")).header("apns-topic", "a.b");
            let _ = front.answer(request.header("apns-push-type", "alert").body(b"{}".as_slice()).unwrap());
        }
    }
    let mut config = FcmConfig { policy, observer: observer(), ..FcmConfig::default() };
    config.vendor.auth.required = false;
    if let Ok(front) = InProcessEmulator::fcm(config) {
        for token in TOKENS.iter().cycle().take(6) {
            let body = format!(r#"{{"message": {{"token": "{token}"}}}}"#);
            let request = Request::post("/v1/projects/p/messages:send").body(body.as_bytes()).unwrap();
            let _ = front.answer(request);
        }
    }
});
