//! Requests to WNS: access tokens and notifications. A token request gets JSON, and everything else a status of WNS.
#![no_main]
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ObserverConfig, WnsConfig, WnsOptions};

static FRONTS: LazyLock<[InProcessEmulator; 2]> = LazyLock::new(|| [false, true].map(front));

fn front(require_token: bool) -> InProcessEmulator {
    let observer = ObserverConfig { path: None, capacity_tokens: 8 };
    let vendor = WnsOptions { require_token, ..WnsOptions::default() };
    InProcessEmulator::wns(WnsConfig { observer, vendor, ..WnsConfig::default() }).unwrap()
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
    if answer.headers().contains_key("x-wns-status") {
        assert!(answer.body().is_empty() && answer.headers().contains_key("x-wns-msg-id"));
    } else {
        let body: serde_json::Value = serde_json::from_slice(answer.body()).expect("a token request gets JSON");
        assert!(body["access_token"].is_string() || body["error"].is_string());
    }
});
