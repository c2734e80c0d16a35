//! FCM's requests: send, access tokens, both topic interfaces. Every request gets a response in JSON.
#![no_main]
use http::{Method, Request};
use libfuzzer_sys::fuzz_target;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{FcmConfig, ObserverConfig};

fuzz_target!(|input: &[u8]| {
    let mut config =
        FcmConfig { observer: ObserverConfig { path: None, capacity_tokens: 8 }, ..FcmConfig::default() };
    config.vendor.auth.required = input.len() % 8 == 7;
    let front = InProcessEmulator::fcm(config).unwrap();
    // Requests are separated by zeros; a later send sees the effects of an earlier topic request.
    for request in input.split(|byte| *byte == 0).take(8) {
        let mut lines = request.splitn(3, |byte| *byte == b'\n');
        let (Some(target), Some(authorization), Some(body)) = (lines.next(), lines.next(), lines.next())
        else {
            continue;
        };
        let (method, target) = match target.split_first() {
            Some((b'G', rest)) => (Method::GET, rest),
            Some((b'D', rest)) => (Method::DELETE, rest),
            _ => (Method::POST, target),
        };
        let request = Request::builder().method(method).uri(target).header("authorization", authorization);
        let Ok(request) = request.body(body) else { continue };
        let answer = front.answer(request).expect("nothing is reset by the default policy");
        serde_json::from_slice::<serde_json::Value>(answer.body()).expect("every answer is JSON");
    }
});
