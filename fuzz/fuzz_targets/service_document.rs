//! The signed document of a server discovered on the network: accepted only if it is signed by the key that it names.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_server::keys::SignedDocument;

fuzz_target!(|text: &str| {
    let Ok(read) = SignedDocument::read(text) else { return };
    // The signature covers the whole text: no byte before its last point can be changed.
    let (signed, _) = text.trim().rsplit_once('.').expect("three parts");
    for place in (0..signed.len()).step_by(7) {
        let mut changed = text.trim().to_owned().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let Ok(changed) = String::from_utf8(changed) else { continue };
        if let Ok(other) = SignedDocument::read(&changed) {
            assert_eq!(other.document, read.document, "{changed}");
        }
    }
});
