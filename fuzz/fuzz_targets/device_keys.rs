//! Keys registered by a device, and bodies that it decrypts: none panics, and the device decrypts the original content.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_wire::web_push::{PushKeyPair, PushKeys, seal};

/// The private key and the secret of the device in RFC 8291, appendix A.
const PRIVATE: &str = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (p256dh, auth, bytes) = input;
    if let Some(keys) = PushKeys::read(p256dh, auth) {
        let (key, secret) = keys.texts();
        assert!(PushKeys::read(&key, &secret) == Some(keys.clone()));
        // Points off the curve pass the check of the format.
        let _: Result<Vec<u8>, _> = seal(bytes, &keys);
    }
    let _: Option<PushKeyPair> = PushKeyPair::read(p256dh, auth);
    let device = PushKeyPair::read(PRIVATE, AUTH).expect("the keys of the example");
    let _: Result<Vec<u8>, _> = device.open(bytes);
    let sealed = seal(bytes, &device.public().expect("keys")).expect("sealed");
    assert_eq!(device.open(&sealed).as_deref(), Ok(bytes));
});
