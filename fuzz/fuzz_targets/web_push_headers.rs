//! Headers and bodies of senders of Web Push: none panics, and no token proves a key without a signature.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::time::Timestamp;
use stentor_gateway::GatewayKey;
use stentor_gateway::web_push::{PUSH_BODY_MAX_BYTES, PushCapability, PushDraft, PushHeaders, VapidToken};

fuzz_target!(|input: (Option<&str>, Option<&str>, [Option<&str>; 5], &str, &[u8])| {
    let (authorization, crypto_key, [ttl, topic, urgency, content_encoding, encryption], name, body) = input;
    if let Ok(Some(token)) = VapidToken::read(authorization, crypto_key) {
        assert!(token.check(|_| true, Timestamp::from_millis(0)).is_err());
    }
    let headers = PushHeaders { ttl, topic, urgency, prefer: topic, content_encoding, encryption, crypto_key };
    if let Ok(draft) = PushDraft::read(&headers, body) {
        assert!(body.len() <= PUSH_BODY_MAX_BYTES && draft.gateway.contains_key("raw"));
    }
    assert_eq!(PushCapability::read(name, &GatewayKey::new([1; 32])), None);
});
