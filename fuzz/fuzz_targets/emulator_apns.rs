//! APNs' requests, at the push port and at the port for channels: path, headers, provider tokens and bodies. Every request is answered with
//! a reason or accepted.
#![no_main]
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use stentor_emulators::apns::ApnsKey;
use stentor_emulators::fuzzing::InProcessEmulator;
use stentor_emulators::{ApnsConfig, ApnsOptions, ObserverConfig};

/// A public key that signed nothing here.
const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2rwtoV2arBIsp+A7fP+7/a8o0/2D
9tu9z9WOy8esRddWupjI8p7W1o0UoBybD5sac93emIFxyapl6h/4PqN6fA==
-----END PUBLIC KEY-----
";

/// The push port without and with provider tokens, then the port for channels.
static FRONTS: LazyLock<[InProcessEmulator; 4]> = LazyLock::new(|| [0, 1, 2, 3].map(front));

fn front(mode: u8) -> InProcessEmulator {
    let require_token = mode & 1 == 1;
    let public_key_pem = Some(PUBLIC_KEY.to_owned());
    let key = ApnsKey { team_id: "TEAM".to_owned(), key_id: "KEY".to_owned(), public_key_pem };
    let observer = ObserverConfig { path: None, capacity_tokens: 8 };
    let config = ApnsConfig {
        observer,
        vendor: ApnsOptions { keys: vec![key], require_token, ..ApnsOptions::default() },
        ..ApnsConfig::default()
    };
    if mode & 2 == 0 {
        InProcessEmulator::apns(config).unwrap()
    } else {
        InProcessEmulator::apns_management(config).unwrap()
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((mode, input)) = input.split_first() else { return };
    let mut lines = input.split(|byte| *byte == b'\n');
    let method = match mode & 18 {
        0 => Method::POST,
        2 => Method::GET,
        _ => Method::DELETE,
    };
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
    let answer = FRONTS[usize::from((mode & 1) | (mode >> 1 & 2))]
        .answer(request)
        .expect("nothing is reset by the default policy");
    if !answer.status().is_success() {
        let body: serde_json::Value = serde_json::from_slice(answer.body()).expect("a refusal is JSON");
        assert!(body["reason"].is_string());
    }
    let count = |name| answer.headers().get_all(name).iter().count();
    assert_eq!(count("apns-id") + count("apns-request-id"), 1);
});
