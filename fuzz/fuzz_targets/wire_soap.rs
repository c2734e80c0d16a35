//! Envelopes, faults and service descriptions: parsed input can be written and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_wire::{DocumentLimits, soap, wsdl};

fuzz_target!(|bytes: &[u8]| {
    let limits = DocumentLimits::default();
    let roomy = DocumentLimits { document_max_bytes: usize::MAX, attributes_max: usize::MAX, ..limits };
    if let Ok(envelope) = soap::read(bytes, &limits, &[("urn:t", "known")]) {
        let _ = envelope.request_content("urn:lab", "echo");
        let _ = envelope.response_content("urn:lab", "echo");
        if let Ok(again) = soap::write(&envelope) {
            // A fault with an unknown code counts as the receiver's, and remains so.
            let read = soap::read(&again, &roomy, &[("urn:t", "known")]);
            match read {
                Ok(read) => assert_eq!(read, envelope),
                // A block for another actor is written without its actor.
                Err(error) => assert!(matches!(error, stentor_wire::WireError::NotUnderstood(_)), "{error}"),
            }
        }
    }
    if let Ok(service) = wsdl::read(bytes, &limits) {
        if let Ok(again) = wsdl::write(&service) {
            assert_eq!(wsdl::read(&again, &roomy), Ok(service));
        }
    }
});
