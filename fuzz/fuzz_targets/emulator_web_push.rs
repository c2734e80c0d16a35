//! Requests of Web Push: path, headers, identities and encrypted bodies. Every request is accepted or gets a reason.
#![no_main]
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ObserverConfig, WebPushConfig, WebPushOptions};

static FRONTS: LazyLock<[InProcessEmulator; 2]> = LazyLock::new(|| [false, true].map(front));

fn front(require_vapid: bool) -> InProcessEmulator {
    let observer = ObserverConfig { path: None, capacity_tokens: 8 };
    // Each message for a synthetic subscription is decrypted.
    let vendor = WebPushOptions { require_vapid, decrypt_every: 1, ..WebPushOptions::default() };
    InProcessEmulator::web_push(WebPushConfig { observer, vendor, ..WebPushConfig::default() }).unwrap()
}

fuzz_target!(|input: &[u8]| {
    let Some((mode, input)) = input.split_first() else { return };
    let mut lines = input.splitn(9, |byte| *byte == b'\n');
    let method = if mode & 2 == 0 { Method::POST } else { Method::GET };
    let uri = lines.next().unwrap_or_default();
    let Ok(mut request) = Request::builder().method(method).uri(uri).body(&[] as &[u8]) else { return };
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        let header = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value.trim_ascii()));
        if let (Ok(name), Ok(value)) = header {
            request.headers_mut().append(name, value);
        }
    }
    let body = lines.collect::<Vec<_>>().join(&b'\n');
    let request = request.map(|_| body.as_slice());
    let answer =
        FRONTS[usize::from(mode & 1)].answer(request).expect("nothing is reset by the default policy");
    if answer.status() == 201 {
        assert!(answer.body().is_empty() && answer.headers().contains_key("ttl"));
    } else {
        let body: serde_json::Value = serde_json::from_slice(answer.body()).expect("a refusal is JSON");
        assert!(body["reason"].is_string());
    }
});
