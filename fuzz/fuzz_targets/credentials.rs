//! Credentials: any text is accepted or refused without a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_providers::apns::auth::ProviderTokens;
use stentor_providers::apns::credential::ApnsCredential;
use stentor_providers::fcm::credential::FcmCredential;
use stentor_providers::gcm::credential::GcmCredential;
use stentor_providers::hms::credential::HmsCredential;
use stentor_providers::null::Null;

fuzz_target!(|text: &str| {
    let _ = (FcmCredential::parse(text), HmsCredential::parse(text), GcmCredential::parse(text));
    let _ = Null::open(text);
    if let Ok(credential) = ApnsCredential::parse(text) {
        let _ = ProviderTokens::new(&credential);
    }
});
