//! REST bodies: any text is a request that can be checked, or is refused.
#![no_main]
use libfuzzer_sys::fuzz_target;
use serde_json::from_str;
use stentor_server::contract::devices::{DeviceChange, DeviceRequest};
use stentor_server::contract::messages::MessageRequest;
use stentor_server::contract::schedules::ScheduleRequest;

fuzz_target!(|text: &str| {
    let _ = from_str::<MessageRequest>(text);
    let _ = from_str::<ScheduleRequest>(text);
    if let Ok(request) = from_str::<DeviceRequest>(text) {
        let _ = request.checked();
    }
    if let Ok(change) = from_str::<DeviceChange>(text) {
        let _ = change.checked();
    }
});
