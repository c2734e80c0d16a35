//! GCM's requests: messages in both forms, device groups, topic memberships. Every request gets a response in its format.
#![no_main]
use http::{Method, Request, Response, StatusCode};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{GcmConfig, ObserverConfig};

const PATHS: [&str; 6] = [
    "/gcm/send",
    "/fcm/send",
    "/gcm/notification",
    "/gcm/googlenotification",
    "/iid/v1:batchAdd",
    "/gcm/notification?notification_key_name=me",
];

fn check(answer: &Response<impl AsRef<[u8]>>) {
    let is_json = answer.headers()["content-type"].as_bytes().starts_with(b"application/json");
    let body = answer.body().as_ref();
    if !is_json {
        std::str::from_utf8(body).expect("a text is UTF-8");
        return;
    }
    let body: Value = serde_json::from_slice(body).expect("what says that it is JSON is JSON");
    if let (Some(results), StatusCode::OK) = (body.get("results"), answer.status()) {
        let results = results.as_array().expect("results are a list");
        if let (Some(success), Some(failure)) = (body["success"].as_u64(), body["failure"].as_u64()) {
            assert_eq!(results.len() as u64, success + failure, "each token has one result");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let observer = ObserverConfig { path: None, capacity_tokens: 64 };
    let mut config = GcmConfig { observer, ..GcmConfig::default() };
    config.vendor.data_overhead_bytes = 34;
    let front = InProcessEmulator::gcm(config).unwrap();
    // Requests are separated by zeros; a later message sees the effects of an earlier group request.
    for request in input.split(|byte| *byte == 0).take(8) {
        let Some((&kind, body)) = request.split_first() else { continue };
        let path = PATHS[usize::from(kind >> 2) % PATHS.len()];
        let method = if path.contains('?') { Method::GET } else { Method::POST };
        let builder = Request::builder().method(method).uri(path).header("authorization", "key=k");
        let builder = builder.header("project_id", "4711");
        let builder = match kind % 4 {
            0 | 1 => builder.header("content-type", "application/json; charset=UTF-8"),
            2 => builder.header("content-type", "application/x-www-form-urlencoded;charset=UTF-8"),
            _ => builder,
        };
        check(&front.answer(builder.body(body).unwrap()).expect("nothing is reset by the default policy"));
    }
});
