//! Ids: any text is an id or is refused, and an id is written as it was read.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_core::id::{AppId, DeviceId, MessageId};

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<DeviceId>() {
        assert_eq!(id.to_string(), text);
    }
    let _ = text.parse::<AppId>();
    let _ = text.parse::<MessageId>();
});
