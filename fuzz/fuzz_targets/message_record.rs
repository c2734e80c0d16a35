//! Stored messages: any text decodes or is refused, and a decoded message keeps its meaning when it is written again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::message::MessageSpec;

fuzz_target!(|text: &str| {
    if let Some(spec) = MessageSpec::decode(text) {
        assert_eq!(MessageSpec::decode(&spec.encode().expect("a record")), Some(spec));
    }
});
